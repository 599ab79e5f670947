"""The streams that an iPerf 2 server sends: on the client's own connection, or back to its listener."""

from iperf import hot
from iperf.errors import IperfError
from iperf.flow import Flow
from iperf.v2 import wire

_DEFAULT_US = 10000000
_LONGEST_US = 86400000000


def sender(session, sock, req):
    """The direction from us: paced, as long as the client asked."""
    udp = session.cfg["udp"]
    rate = req.rate
    if udp:
        n = min(max(req.length or 1470, 16), session.server.udp_max)
        header = wire.header(wire.NEW, True, 1)
        buf = bytearray(n)
        buf[3] = 1
        f = Flow(session.next_id(), sock, True, buf, header, rate or 1048576)
    else:
        f = Flow(session.next_id(), sock, True, session.server.send_buffer(req.length), rate=rate)
    session.watched(f)
    if f.paced:
        f.quiet_us += 3 * f.p[hot.P_GAP]
    f.quota = req.num_bytes
    session.engine.add(f)
    if not req.num_bytes:
        us = f.start_us + min(req.time_us or _DEFAULT_US, _LONGEST_US)
        f.stop = (us // 1000000, us % 1000000)
    return f


def connect(session, req):
    """Dual and tradeoff: a stream of its own to the client's listener."""
    s = session.server
    port = req.port
    try:
        if not port or not session.ip:
            raise IperfError("protocol", "the client asked for a connection back, but named no port")
        if session.cfg["udp"]:
            sock = s.layer.udp_connect(session.ip, port, session.cfg)
        else:
            sock = s.layer.tcp_connect(session.ip, port, session.cfg, 2000)
        session.open.append(sock)
        f = sender(session, sock, req)
        session.res.conns.append((f.id, sock.local, sock.remote))
    except IperfError as e:
        session.failed(e.kind, "could not connect back to the client's port %d: %s" % (port, e.text))
    except MemoryError:
        session.failed("memory", "no memory for the stream back to the client")
