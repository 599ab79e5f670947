"""The test itself of our iPerf 3 server, until the client has said that it is over."""

import gc

from iperf import clock
from iperf.engine import Engine
from iperf.errors import IperfError
from iperf.flow import Flow
from iperf.v3 import wire

_GRACE_S = 40  # what iperf3's own server grants beyond the test's time (iperf.md B7)


def run(test):
    """Run the streams of test.socks; what they counted goes into test.res."""
    cfg = test.cfg
    ctl = test.ctl
    _flows(test)
    # in one segment: Nagle would hold the second back for the delayed ACK of the first, 40 ms
    ctl.write(bytes((wire.TEST_START, wire.TEST_RUNNING)))
    ctl.poller.unregister(ctl.sock)
    gc.collect()
    free = gc.mem_free() if hasattr(gc, "mem_free") else None
    whole = cfg["time"] + cfg["omit"] + _GRACE_S if cfg["time"] else 0

    def control():
        return test.client_said(ctl.try_state())

    def row(fields):
        test.emit("interval", fields)

    test.engine = engine = Engine(
        test.layer.Poller(), test.flows, time_us=int(whole * 1000000) if not cfg["omit"] else 0,
        omit_us=int(cfg["omit"] * 1000000), interval_us=int(cfg["interval"] * 1000000),
        rows=_rows(), on_row=row if test.server.live else None,
        watch=((ctl.sock, control), (test.server.listener, test.another_client)),
        idle_us=int(test.server.cfg["rcv_timeout"] * 1000000),
    )  # fmt: skip
    test.emit("running", {})
    try:
        reason = engine.run()
        if reason in ("eof", "fin"):
            _wait_for_end(test)
    except OSError as e:
        test.keep()
        _wait_for_end(test)
        if e.args and e.args[0] == 12:
            raise IperfError("memory", "no memory left for the network (ENOMEM)", 12) from None
    finally:
        engine.finish()
        ctl.poller.register(ctl.sock, 1)
        test.res.heap = {"free_before": free, "free_after": gc.mem_free()} if free is not None else None
    test.keep()
    if not test.ended:
        test.refuse(160)
        raise IperfError("timeout", "%s did not end its test in time: the test is given up" % test.who)
    test.flows = []
    test.engine = None


def _flows(test):
    cfg = test.cfg
    total = len(test.socks)
    header = wire.udp_header(cfg["udp_counters_64bit"]) if cfg["udp"] else None
    ids = wire.stream_ids(total)
    many = len(test.bufs) == total
    for k, sock in enumerate(test.socks):
        sending = cfg["reverse"] or (cfg["bidir"] and k >= cfg["parallel"])
        buf = test.bufs[k] if many else test.bufs[1] if cfg["bidir"] and not sending else test.bufs[0]
        if sending and header is not None:
            buf[:16] = bytes(16)
            buf[header.o[0]] = header.first
        test.flows.append(Flow(ids[k], sock, sending, buf, header, cfg["bandwidth"] if sending else 0))


def _rows():
    """Rows of the ring: 64, fewer where that is more than an eighth of the heap."""
    return min(64, max(8, gc.mem_free() // 8 // 52)) if hasattr(gc, "mem_free") else 64


def _wait_for_end(test):
    """All streams have ended: the client's word must follow."""
    t0 = clock.ticks_us()
    poll = test.layer.Poller()
    poll.register(test.ctl.sock, 1)
    poll.register(test.server.listener, 1)
    try:
        while not test.client_said(test.ctl.try_state()):
            if clock.ticks_diff(clock.ticks_us(), t0) > 10000000:
                return
            test.another_client()
            poll.wait(200)
    finally:
        poll.unregister(test.server.listener)
        poll.unregister(test.ctl.sock)
