"""Which theoretical bound applies to a run, from what is recorded about link, window and target."""

from typing import Any

from upyperf.analysis import bounds
from upyperf.analysis.bounds import Bound
from upyperf.records import Bench, RunResult, Way

_IPERF3_UDP_DEFAULT_BPS = 1 << 20  # iperf3's own default of -b for UDP: 1 Mibit/s (iperf 2's is the same)


def option(run: RunResult, name: str) -> Any:
    """The effective option of a run: what the board says it used, else what was planned."""
    if run.board is not None and run.board.options.get(name) is not None:
        return run.board.options[name]
    return run.test.options.get(name)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _lwip(bench: Bench, name: str) -> float | None:
    """An lwIP option of the board by its name in lwIP (case and prefix aside); None when not known."""
    for key, value in (bench.info.lwip or {}).items() if bench.info else ():
        if key.upper() == name:
            return _number(value)
    return None


def _udp_length(run: RunResult, way: Way) -> int | None:
    """Bytes in a datagram: as measured where a sender counted both, else as asked for."""
    for direction in run.directions:
        if direction.way == way:
            for total in (direction.board, direction.peer, direction.reported):
                if total is not None and total.packets and total.bytes and not total.lost:
                    return max(1, round(total.bytes / total.packets))
    length = _number(option(run, "length"))
    return int(length) if length and length >= 1 else None


def all_bounds(bench: Bench, run: RunResult, way: Way) -> list[Bound]:
    """Every bound that is known for one direction of a run, the tightest first.

    A wired link needs its line rate (BoardRef.link_mbit); window/RTT needs a round trip
    (NetworkRef.rtt_us) and a window (the -w option, else lwIP's TCP_WND or TCP_SND_BUF). Of a virtual
    board in virtual time nothing is said: its seconds are not the wire's.
    """
    if bench.board.time == "virtual":
        return []
    found: list[Bound] = []
    streams = max(1, int(_number(option(run, "parallel")) or 1))
    udp = run.test.proto == "udp"
    line_bps = (bench.board.link_mbit or 0) * 1e6
    if line_bps > 0:
        if udp:
            length = _udp_length(run, way)
            found.append(bounds.udp_goodput(line_bps, length) if length else bounds.udp_goodput(line_bps))
        else:
            mss = _number(option(run, "mss")) or _lwip(bench, "TCP_MSS") or 1460
            found.append(bounds.tcp_goodput(line_bps, int(min(1460, max(1, mss)))))
    if not udp and bench.network.rtt_us and bench.network.rtt_us > 0:
        window = _number(option(run, "window")) or _lwip(bench, "TCP_SND_BUF" if way == "send" else "TCP_WND")
        if window and window > 0:
            found.append(bounds.window_rtt(int(window) * streams, bench.network.rtt_us))
    target = _number(option(run, "bandwidth"))
    if target is None and udp and run.test.role == "client":
        target = _IPERF3_UDP_DEFAULT_BPS
    if target and target > 0:
        found.append(bounds.target_rate(target * streams))
    return sorted(found, key=lambda bound: bound.bps)
