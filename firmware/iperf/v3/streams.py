"""The data connections of an iPerf 3 client, each with its greeting."""

from iperf import clock
from iperf.errors import IperfError
from iperf.v3 import wire

_HELLO_MS = 500
_HELLO_TRIES = 6


def run(client):
    """Open the connections of the test into client.socks."""
    cfg = client.cfg
    if cfg["file"]:
        client.source = _open(cfg["file"])
    n = cfg["parallel"] * (2 if cfg["bidir"] else 1)
    for _ in range(n):
        client.socks.append(_udp(client) if cfg["udp"] else _tcp(client))
    client.emit("connected", {"local": client.socks[0].local, "remote": [cfg["host"], cfg["port"]],
                              "streams": wire.stream_ids(n)})  # fmt: skip


def _open(path):
    try:
        return open(path, "rb").readinto
    except OSError as e:
        raise IperfError("usage", "cannot read the file %s: %s" % (path, e)) from None


def _tcp(client):
    cfg = client.cfg
    sock = client.layer.tcp_connect(cfg["host"], cfg["port"], cfg, int(cfg["connect_timeout"] * 1000))
    c = type(client.ctl)(client.layer, sock, client.who)
    c.write(client.cookie)
    c.poller.unregister(sock)
    return sock


def _udp(client):
    """A connected datagram socket for which the hello was answered; hello and answer may be lost."""
    cfg = client.cfg
    sock = client.layer.udp_connect(cfg["host"], cfg["port"], cfg)
    poller = client.layer.Poller()
    poller.register(sock, 1)
    try:
        for _ in range(_HELLO_TRIES):
            sock.write(wire.UDP_HELLO)
            t0 = clock.ticks_us()
            while True:
                left = _HELLO_MS - clock.ticks_diff(clock.ticks_us(), t0) // 1000
                if left <= 0:
                    break
                poller.wait(left)
                data = sock.recv_datagram(cfg["length"])
                if data:  # 4 bytes; or data already, when only the answer was lost
                    return sock
            if _began(client):
                return sock  # the server has all its streams: only the answer was lost
    except OSError as e:
        sock.close()
        raise _silent(client, 0, e) from None
    finally:
        poller.unregister(sock)
    sock.close()
    raise _silent(client, _HELLO_TRIES)


def _began(client):
    """Look at the control connection between two greetings; True when the server started the test."""
    s = client.ctl.try_state()
    if s is None:
        return False
    if s not in (wire.TEST_START, wire.TEST_RUNNING):
        client.bad_state(s)
    client.pending.append(s)
    return True


def _silent(client, tries, e=None):
    from iperf.v3 import why

    return why.no_greeting(client.who, client.cfg["port"], tries, e)
