"""What both roles of iPerf 2 need: the engine's set-up, checks, waits with a bound."""

import gc

from iperf import clock, hot
from iperf.engine import Engine
from iperf.errors import IperfError

_ROW_BYTES = 52
_CLOCK_SET_S = 1577836800  # 2020: no board's clock is earlier once it was set
NOTE_CLOCK = (
    "the board's clock is not set: the jitter that an iperf 2.1.8 server shows needs some 500 datagrams "
    "to come true (set the clock, or send more)"
)


def engine(poller, flows, cfg, time_us, on_row, expect_us=0):
    """An Engine with iperf's interval rows: as many as an eighth of the heap takes, 32 at least.
    `expect_us` is how long a test without a time limit may take."""
    interval = int(cfg["interval"] * 1000000)
    rows = 1
    if interval:
        us = time_us or expect_us
        want = (us // interval + 3) * max(2, len(flows)) if us else 1000
        if not time_us:
            want = min(want, 2000)  # only the client's word for it
        most = gc.mem_free() // 8 // _ROW_BYTES if hasattr(gc, "mem_free") else 100000
        rows = max(32, min(want, most))
    return Engine(poller, flows, time_us=time_us, interval_us=interval, rows=rows, on_row=on_row)


def note_clock(cfg):
    """Say in the result that the board's clock is not set (iperf 2.1.8 then shows a wrong jitter)."""
    if clock.wall_us()[0] < _CLOCK_SET_S:
        cfg["adapted"].append(NOTE_CLOCK)


def collect():
    """Collect garbage where memory is scarce (CPython's heap is not, and a collection takes long there)."""
    if hasattr(gc, "mem_free"):
        gc.collect()


def room(layer, length=0):
    """Bytes of the buffer that takes any datagram: what the layer can, within a little of the heap (what
    comes through a listening socket is allocated once more)."""
    collect()
    n = layer.caps()["udp_max"]
    if hasattr(gc, "mem_free"):
        n = min(n, max(gc.mem_free() // 16, 1500))
    return max(n, length)


def count(flow, n):
    """Add n bytes that moved outside the hot loop."""
    flow.c[hot.C_BYTES] += n
    flow.fold()


def shift_end(flow, us):
    """The flow ended `us` before it was noticed: its last data count."""
    if us > 0:
        flow.end_us = max(flow.start_us, flow.end_us - us)


def receiving(flows):
    return [f for f in flows if not f.sender]


def all_done(flows):
    for f in flows:
        if not f.done:
            return False
    return True


def closed(n, who, what):
    """The IperfError of a connection that broke with errno n."""
    if n in (12, 105):
        return IperfError("memory", "the board ran out of memory for the network (errno %d)" % n, n)
    if n == 111:
        return IperfError("refused", "%s refused the datagrams: no iperf server listens there (iperf -s -u)"
                          % who, n)  # fmt: skip
    if n in (113, 101, 118):
        return IperfError("unreachable", "no route to %s: check address, subnet and gateway" % who, n)
    return IperfError("closed", "%s broke the connection %s (errno %d): was it stopped?" % (who, what, n), n)
