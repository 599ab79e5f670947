"""The test itself of an iPerf 3 client, from the first datum to the last."""

import gc

from iperf.engine import Engine
from iperf.errors import IperfError
from iperf.flow import Flow
from iperf.v3 import wire
from iperf.v3.control import Closed


def run(client):
    """Run the streams of client.socks; what they counted goes into client.res."""
    cfg = client.cfg
    ctl = client.ctl
    _flows(client)
    ctl.poller.unregister(ctl.sock)
    quota = client.quota
    gc.collect()
    free = gc.mem_free() if hasattr(gc, "mem_free") else None

    def control():
        s = ctl.try_state()
        if s is None:
            return False
        client.bad_state(s)

    def row(fields):
        client.emit("interval", fields)

    client.engine = engine = Engine(
        client.layer.Poller(), client.flows, time_us=0 if quota else int(cfg["time"] * 1000000),
        omit_us=int((cfg["omit"] or 0) * 1000000), quota=quota, interval_us=int(cfg["interval"] * 1000000),
        rows=_rows(cfg, len(client.flows)), on_row=row if client.live else None,
        watch=((ctl.sock, control),), idle_us=120000000,
    )  # fmt: skip
    try:
        reason = engine.run()
    except OSError as e:
        raise _stream_failed(client, e) from None
    finally:
        engine.finish()
        ctl.poller.register(ctl.sock, 1)
        client.res.heap = {"free_before": free, "free_after": gc.mem_free()} if free is not None else None
    client.keep()
    if reason == "idle":
        raise IperfError("timeout", "no data moved for 120 s: the test is given up")
    if reason == "eof" and not (cfg["file"] or all(f.sender for f in client.flows)):
        _read_what_ended_it(client)
    ctl.drain_from([f.sock for f in client.flows if not f.sender and not f.done], client.bufs[-1])
    ctl.send_state(wire.TEST_END)
    client.flows = []
    client.engine = None


def _flows(client):
    cfg = client.cfg
    senders = 0 if cfg["reverse"] else cfg["parallel"]
    header = wire.udp_header(cfg["udp_counters_64bit"]) if cfg["udp"] else None
    ids = wire.stream_ids(len(client.socks))
    for k, sock in enumerate(client.socks):
        sending = k < senders
        if cfg["udp"] and not cfg["reverse"]:
            buf = client.bufs[k]  # numbers and time stamps are the stream's own
        else:
            buf = client.bufs[1] if cfg["bidir"] and not sending else client.bufs[0]
        if sending and header is not None:
            buf[:16] = bytes(16)
            buf[header.o[0]] = header.first
        client.flows.append(Flow(ids[k], sock, sending, buf, header, cfg["bandwidth"] if sending else 0,
                                 client.source if sending else None))  # fmt: skip


def _rows(cfg, flows):
    """Rows of the ring: the whole test where it fits in an eighth of the heap, 8 at least."""
    if not cfg["interval"]:
        return 1
    want = int((cfg["time"] + (cfg["omit"] or 0)) / cfg["interval"] + 3) * flows
    most = gc.mem_free() // 8 // 52 if hasattr(gc, "mem_free") else 100000
    return max(8, min(want if cfg["time"] else 100000, most, 100000))


def _stream_failed(client, e):
    """A stream's socket failed: the control connection may say why."""
    client.keep()
    try:
        _read_what_ended_it(client)
    except IperfError as why:
        return why
    from iperf.v3 import why

    return why.stream_failed(client.who, e)


def _read_what_ended_it(client):
    try:
        s = client.ctl.state(2000)
    except Closed:
        raise client.closed() from None
    except IperfError:
        return
    client.bad_state(s)
