"""Each run as the document that `iperf3 -J` prints, for tools that read iperf3's JSON.

The board stands where iperf3's client stands, for iPerf 2 runs too. Keys and units are iperf3 3.12's; a key
whose figure is not known is left out, as iperf3 itself leaves out `retransmits`. What iperf3 has no key for
is under the top-level key `upyperf`.
"""

import json
import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from upyperf.analysis import figures, limits
from upyperf.records import Bench, Direction, Interval, PeerStream, RunResult, Stream, Sum, Way
from upyperf.report.clean import lines, one_line


def _span(start_us: float, end_us: float, size: int) -> dict[str, Any]:
    length = end_us - start_us
    return {
        "start": start_us / 1e6,
        "end": end_us / 1e6,
        "seconds": length / 1e6,
        "bytes": size,
        "bits_per_second": size * 8e6 / length if length > 0 else 0.0,
    }


def _udp_receiver(jitter_us: float | None, lost: int | None, packets: int | None) -> dict[str, Any]:
    """The receiver's figures, as far as they are known."""
    out: dict[str, Any] = {}
    if jitter_us is not None and math.isfinite(jitter_us):
        out["jitter_ms"] = jitter_us / 1e3
    if lost is not None:
        out["lost_packets"] = lost
    if packets is not None:
        out["packets"] = packets
    if lost is not None and packets is not None:
        out["lost_percent"] = 100.0 * lost / packets if packets > 0 else 0.0
    return out


def _interval_row(rows: Sequence[Interval], udp: bool) -> dict[str, Any]:
    """Streams of one direction in one interval, summed; a single stream is its own sum."""
    start, end = min(r.start_us for r in rows), max(r.end_us for r in rows)
    out = _span(start, end, sum(r.bytes for r in rows))
    if udp:
        packets = [r.packets for r in rows if r.packets is not None]
        if rows[0].sender:
            if packets:
                out["packets"] = sum(packets)
        else:
            jitters = [r.jitter_us for r in rows if r.jitter_us is not None]
            lost = [r.lost for r in rows if r.lost is not None]
            out |= _udp_receiver(
                sum(jitters) / len(jitters) if jitters else None,
                sum(lost) if lost else None,
                sum(packets) if packets else None,
            )
    out["omitted"] = all(r.omitted for r in rows)
    out["sender"] = rows[0].sender
    return out


def _intervals(run: RunResult) -> list[dict[str, Any]]:
    """The board's intervals, or the peer's where the board has none."""
    rows = list(run.board.intervals) if run.board else []
    if not rows and run.peer:
        rows = list(run.peer.intervals)
    udp = run.test.proto == "udp"
    both = {r.sender for r in rows} == {True, False}
    out = []
    for group in figures.clusters(rows):
        sending, receiving = ([r for r in group if r.sender is s] for s in (True, False))
        entry: dict[str, Any] = {
            "streams": [
                {"socket": r.id, **_interval_row([r], udp)}
                for r in sorted(group, key=lambda r: (not r.sender, r.id))
            ],
            "sum": _interval_row(sending or receiving, udp),
        }
        if both and sending and receiving:
            entry["sum_bidir_reverse"] = _interval_row(receiving, udp)
        out.append(entry)
    return out


def _with_peer(stream: Stream, run: RunResult) -> Stream:
    """The stream with the peer's figures: its own, else the direction's where it is the only stream."""
    if stream.peer is not None or run.board is None:
        return stream
    if sum(s.sender == stream.sender for s in run.board.streams) != 1:
        return stream
    way = "send" if stream.sender else "receive"
    total = next((d.peer or d.reported for d in run.directions if d.way == way), None)
    if total is None:
        return stream
    peer = PeerStream(
        bytes=total.bytes, us=total.us, packets=total.packets, lost=total.lost, jitter_us=total.jitter_us
    )
    return stream.model_copy(update={"peer": peer})


def _tcp_stream(stream: Stream) -> dict[str, Any]:
    own = {"socket": stream.id, **_span(0, stream.us, stream.bytes), "sender": stream.sender}
    out: dict[str, Any] = {"sender" if stream.sender else "receiver": own}
    if stream.peer is not None:
        us = stream.peer.us if stream.peer.us is not None else stream.us
        other = {"socket": stream.id, **_span(0, us, stream.peer.bytes), "sender": stream.sender}
        out["receiver" if stream.sender else "sender"] = other
    # iperf3 names the sender first.
    return {name: out[name] for name in ("sender", "receiver") if name in out}


def _udp_stream(stream: Stream) -> dict[str, Any]:
    receiver = stream.peer if stream.sender else stream
    packets = stream.packets
    if packets is None and stream.peer is not None:
        packets = stream.peer.packets
    figures_ = _udp_receiver(
        receiver.jitter_us if receiver else None, receiver.lost if receiver else None, packets
    )
    if not stream.sender and stream.ooo is not None:
        figures_["out_of_order"] = stream.ooo
    return {
        "udp": {
            "socket": stream.id,
            **_span(0, stream.us, stream.bytes),
            **figures_,
            "sender": stream.sender,
        }
    }


def _sums(direction: Direction, udp: bool) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """`sum_sent` and `sum_received` of one direction; None where that end gave no figure."""
    theirs = direction.peer or direction.reported
    sends = direction.way == "send"
    sent, received = (direction.board, theirs) if sends else (theirs, direction.board)

    def one(total: Sum | None, at_sender: bool) -> dict[str, Any] | None:
        if total is None:
            return None
        out = _span(0, total.us, total.bytes)
        if udp:
            if at_sender:
                out |= _udp_receiver(0.0, 0, total.packets)
            else:
                out |= _udp_receiver(total.jitter_us, total.lost, total.packets)
        # In TCP iperf3 says here whether this end is the sender, in UDP whether the sum is the sender's.
        out["sender"] = at_sender if udp else sends
        return out

    return one(sent, True), one(received, False)


def _end(run: RunResult) -> dict[str, Any]:
    udp = run.test.proto == "udp"
    streams = [_with_peer(s, run) for s in run.board.streams] if run.board else []
    end: dict[str, Any] = {"streams": [_udp_stream(s) if udp else _tcp_stream(s) for s in streams]}
    known = sorted(run.directions, key=lambda d: d.way != "send")
    for n, direction in enumerate(known):
        suffix = "_bidir_reverse" if n else ""
        sent, received = _sums(direction, udp)
        if udp and (received or sent):
            total = dict(received or sent or {})
            total["sender"] = direction.way == "send"
            end["sum" + suffix] = total
        if sent:
            end["sum_sent" + suffix] = sent
        if received:
            end["sum_received" + suffix] = received
    cpu = _cpu(run)
    if cpu:
        end["cpu_utilization_percent"] = cpu
    return end if known or streams else {}


def _cpu(run: RunResult) -> dict[str, Any]:
    """iperf3's keys where the board's `cpu` names them, as such or without "cpu_util_"."""
    out: dict[str, Any] = {}
    for key, value in ((run.board.cpu or {}) if run.board else {}).items():
        name = key.removeprefix("cpu_util_")
        if isinstance(value, int | float) and not isinstance(value, bool):
            if name in ("total", "user", "system"):
                out["host_" + name] = value
            elif name.startswith(("host_", "remote_")):
                out[name] = value
    return out


def _start(bench: Bench, run: RunResult) -> dict[str, Any]:
    info, board, test = bench.info, run.board, run.test
    remote = one_line((board.host if board else None) or bench.network.pc_address or "")
    port = board.port if board else None
    start: dict[str, Any] = {
        "connected": [
            {
                "socket": stream.id,
                "local_host": one_line(bench.network.board_address or bench.board.name),
                "remote_host": remote,
                **({"remote_port": port} if port is not None else {}),
            }
            for stream in (board.streams if board else [])
        ],
        "version": f"upyperf {one_line(bench.host.upyperf)} (iperf {test.version})",
        "system_info": " ".join(one_line(v) for v in (info.machine, "MicroPython", info.micropython) if v)
        if info
        else one_line(bench.board.name),
    }
    if run.started:
        try:
            at = datetime.fromisoformat(run.started).astimezone(UTC)
        except ValueError:
            pass
        else:
            start["timestamp"] = {
                "time": at.strftime("%a, %d %b %Y %H:%M:%S GMT"),
                "timesecs": int(at.timestamp()),
            }
    if board is None or (run.error is not None and not board.streams):
        return start
    peer_place = {
        "host": one_line(board.host or ""),
        **({"port": board.port} if board.port is not None else {}),
    }
    start["connecting_to" if test.role == "client" else "accepted_connection"] = peer_place

    def option(name: str, default: Any = 0) -> Any:
        value = limits.option(run, name)
        return default if value is None else value

    mss = option("mss") or (info.lwip or {}).get("TCP_MSS") if info else option("mss")
    if test.proto == "tcp" and mss:
        start["tcp_mss_default"] = mss
    start["target_bitrate"] = option("bandwidth")
    start["sock_bufsize"] = option("window")
    start["test_start"] = {
        "protocol": test.proto.upper(),
        "num_streams": option("parallel", 1),
        "blksize": option("length"),
        "omit": option("omit"),
        "duration": option("time"),
        "bytes": option("num_bytes"),
        "blocks": option("blocks"),
        "reverse": int(test.mode == "receive"),
        "tos": option("tos"),
        "target_bitrate": option("bandwidth"),
        "bidir": int(test.mode not in ("send", "receive")),
    }
    return start


def _extra(bench: Bench, run: RunResult) -> dict[str, Any]:
    """What iperf3 has no key for."""

    def totals(way: Way) -> dict[str, Any] | None:
        for direction in run.directions:
            if direction.way == way:
                return direction.model_dump(mode="json")
        return None

    return {
        "bench": bench.id,
        "run": run.id,
        "test": run.test.name,
        "iperf_version": run.test.version,
        "mode": run.test.mode,
        "role": run.test.role,
        "repeat": run.repeat,
        "status": run.status,
        "board": bench.board.model_dump(mode="json"),
        "virtual": figures.virtual_mark(bench),
        "peer_program": run.peer.program if run.peer else None,
        "directions": {way: totals(way) for way in figures.ways_of(run)},
        "counters": run.board.counters if run.board else {},
        "heap": run.board.heap.model_dump() if run.board and run.board.heap else None,
        "adapted": run.board.adapted if run.board else [],
        "error_kind": run.error.kind if run.error else None,
        "notes": run.notes,
    }


def document(bench: Bench, run: RunResult) -> dict[str, Any]:
    """One run as iperf3 -J's document. Times in s, jitter in ms, rates in bit/s."""
    out: dict[str, Any] = {
        "start": _start(bench, run),
        "intervals": _intervals(run),
        "end": _end(run),
        "title": figures.label_of(run.test),
    }
    if run.board is not None and run.board.peer_text:
        out["server_output_text"] = lines(run.board.peer_text)
    if run.error is not None:
        out["error"] = one_line(run.error.text)
    out["upyperf"] = _extra(bench, run)
    return out


def _finite(value: Any) -> Any:
    """JSON knows no infinity: such a figure is not known."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(k): _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    return value


def render(bench: Bench, run: RunResult) -> str:
    """The document as JSON text, ASCII only."""
    return json.dumps(_finite(document(bench, run)), indent=2, ensure_ascii=True, allow_nan=False) + "\n"
