"""What the modes with a stream back to the client share."""

from iperf.errors import IperfError


def joined(c, f):
    """A stream of the server's own has come: it joins the test of the client c."""
    c.engine.add(f)
    c.res.conns.append((f.id, f.sock.local, f.sock.remote))


def no_callback(c):
    return IperfError("peer", "%s did not connect back to port %d: a firewall on the way, or a server "
                      "that knows no %s" % (c.who, c.cfg["listen_port"], c.kind))  # fmt: skip


def no_data(c):
    return IperfError("peer", "%s sent nothing: iperf 2.0 servers know no %s (dual and tradeoff they do)"
                      % (c.who, c.kind))  # fmt: skip


def no_answer(c):
    return IperfError("timeout", "%s does not answer: no server, UDP filtered on the way, or one that knows "
                      "no reverse test" % c.who)  # fmt: skip


def silent(c, us):
    what = "datagram" if c.cfg["udp"] else "data"
    return IperfError("timeout", "%s went silent: no %s for %d s" % (c.who, what, us // 1000000))
