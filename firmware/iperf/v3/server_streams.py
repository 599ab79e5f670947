"""The data connections that a client of our iPerf 3 server opens."""

from iperf import clock
from iperf.errors import IperfError
from iperf.v3 import wire
from iperf.v3.control import Closed, Control


def run(test):
    """Take the connections of the test into test.socks."""
    cfg = test.cfg
    total = cfg["parallel"] * (2 if cfg["bidir"] else 1)
    if cfg["udp"]:
        # bound before the client is told, or its first datagram finds nobody (iperf.md B8)
        _bind(test)
    test.ctl.send_state(wire.CREATE_STREAMS)
    for k in range(total):
        test.socks.append(_udp(test, k + 1 < total) if cfg["udp"] else _tcp(test))
    test.emit("connected", {"local": test.socks[0].local, "remote": test.remote,
                            "streams": wire.stream_ids(total)})  # fmt: skip


def _wait(test, poll, t0, what):
    """Wait for a stream while watching the control connection. Raises Closed, IperfError."""
    if clock.ticks_diff(clock.ticks_us(), t0) > 10000000:
        raise IperfError("timeout", "%s did not open its %s within 10 s" % (test.who, what))
    poll.wait(200)
    if test.ctl.sock.ready:
        test.client_said(test.ctl.try_state())


def _tcp(test):
    listener = test.server.listener
    poll = test.layer.Poller()
    poll.register(listener, 1)
    poll.register(test.ctl.sock, 1)
    t0 = clock.ticks_us()
    try:
        while True:
            got = listener.accept()
            if got is None:
                _wait(test, poll, t0, "data connections")
                continue
            sock = got[0]
            sock.configure(test.cfg)
            c = Control(test.layer, sock, test.who)
            try:
                if bytes(c.read(wire.COOKIE_SIZE, 2000, "its cookie")) == test.cookie:
                    c.poller.unregister(sock)
                    return sock
                c.write(bytes((wire.ACCESS_DENIED,)))
            except (Closed, IperfError):
                pass
            c.close()
    finally:
        poll.unregister(listener)
        poll.unregister(test.ctl.sock)


def _bind(test):
    cfg = test.server.cfg
    test.udp = test.layer.udp_bind(cfg["bind"], cfg["port"], test.cfg)


def _udp(test, more):
    poll = test.layer.Poller()
    poll.register(test.udp, 1)
    poll.register(test.ctl.sock, 1)
    t0 = clock.ticks_us()
    hello = bytearray(64)
    try:
        while True:
            got = test.udp.recvfrom_into(hello)
            if got is None:
                _wait(test, poll, t0, "UDP stream")
                continue
            break
    finally:
        poll.unregister(test.udp)
        poll.unregister(test.ctl.sock)
    sock = test.udp.connect(got[1])
    test.udp = None
    if more:
        _bind(test)
    sock.write(wire.UDP_REPLY)
    return sock
