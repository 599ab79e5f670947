"""What both roles of iPerf 2 need: the engine's set-up, checks, waits with a bound."""

import gc

POLLIN = 1
_ROW_BYTES = 52


def engine(poller, flows, cfg, time_us, on_row, expect_us=0):
    """An Engine with iperf's interval rows: as many as an eighth of the heap takes, 8 at least.
    `expect_us` is how long a test without a time limit may take."""
    from iperf.engine import Engine  # not before the connections stand

    collect()
    interval = int(cfg["interval"] * 1000000)
    rows = 1
    if interval:
        us = time_us or expect_us
        want = (us // interval + 3) * max(2, len(flows)) if us else 1000
        if not time_us:
            want = min(want, 2000)  # only the client's word for it
        most = gc.mem_free() // 8 // _ROW_BYTES if hasattr(gc, "mem_free") else 100000
        rows = max(8, min(want, most))
    return Engine(poller, flows, time_us=time_us, interval_us=interval, rows=rows, on_row=on_row)


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
    from iperf import hot

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
