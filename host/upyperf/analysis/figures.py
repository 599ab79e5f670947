"""The figures of a run, one row a direction: what every report shows, taken from the records once."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from upyperf.analysis import bounds, ends, limits
from upyperf.analysis.bounds import Bound
from upyperf.analysis.units import format_rate, format_time_us, loss_percent
from upyperf.records import Bench, Direction, Interval, RunResult, Sum, Test, Way

_STALLED = 0.01
"""Share of a test that pacing may give up on unsaid."""
_WAYS: dict[str, tuple[Way, ...]] = {"send": ("send",), "receive": ("receive",)}


@dataclass(frozen=True)
class Point:
    """The rate of one direction in one interval: seconds from the start of the test, bit/s."""

    start_s: float
    end_s: float
    bps: float
    omitted: bool = False


@dataclass(frozen=True)
class Row:
    """One direction of one run with both ends' figures.

    Rates in bit/s of payload, times in microseconds, None = not known. `delivered_bps` is the figure at
    the receiving end, the one that counts; jitter and loss are the receiver's, retries the sender's.
    """

    run: RunResult
    way: Way
    direction: Direction
    board_bps: float | None
    peer_bps: float | None
    peer_name: str
    delivered_bps: float | None
    jitter_us: float | None
    lost: int | None
    packets: int | None
    ooo: int | None
    retries: int | None
    enomem: int | None
    stall_us: int | None
    limits: list[Bound] = field(default_factory=list)
    impossible: list[Bound] = field(default_factory=list)
    """The bounds above which a figure of this direction lies."""

    @property
    def bound(self) -> Bound | None:
        """The tightest bound known."""
        return self.limits[0] if self.limits else None

    @property
    def loss_percent(self) -> float | None:
        """Lost datagrams in percent of those sent, as the receiver counted."""
        if self.lost is None or self.packets is None:
            return None
        return loss_percent(self.lost, self.packets)

    @property
    def label(self) -> str:
        """The row's name for people, e.g. "iPerf 3 TCP receive", "iPerf 2 UDP bidir send"."""
        return label_of(self.run.test, self.way)

    @property
    def key(self) -> str:
        """The row's name for programs, e.g. "iperf3.tcp.receive", "iperf2.udp.bidir.send"."""
        return key_of(self.run.test, self.way)


def key_of(test: Test, way: Way | None = None) -> str:
    """ "version.proto.direction" of a test, for both-way tests with the direction behind it."""
    parts = [f"iperf{test.version}", test.proto, test.mode]
    if way is not None and test.mode not in _WAYS:
        parts.append(way)
    return ".".join(parts)


def label_of(test: Test, way: Way | None = None) -> str:
    """The same for people: "iPerf 3 TCP send"; the role where the board serves, the layer beside `socket`."""
    parts = [f"iPerf {test.version}", test.proto.upper(), test.mode]
    if way is not None and test.mode not in _WAYS:
        parts.append(way)
    if test.layer != "socket":
        # The one free word in a label, which goes into tables and plots as it is.
        parts.append(re.sub(r"[^A-Za-z0-9_.-]", "?", test.layer)[:40])
    if test.role == "server":
        parts.append("(server)")
    return " ".join(parts)


def ways_of(run: RunResult) -> tuple[Way, ...]:
    """The directions a run has or should have had."""
    if run.directions:
        return tuple(d.way for d in run.directions)
    return _WAYS.get(run.test.mode, ("send", "receive"))


def _bps(total: Sum | None) -> float | None:
    return total.bits_per_second if total else None


def _impossible(run: RunResult, known: list[Bound], sender: Sum | None, receiver: Sum | None) -> list[Bound]:
    """The bounds that the figures of one direction break.

    Only what the receiver got has crossed the link: a sender also counts what still lies in its buffers.
    A target rate binds the sender, to within the block that it may be ahead.
    """
    broken = []
    for bound in known:
        if bound.of_sender:
            block = float(limits.option(run, "length") or 0)
            if sender and sender.packets:
                block = sender.bytes / sender.packets
            judged, slack = sender, block * 8e6 / sender.us if sender and sender.us > 0 else 0.0
        else:
            judged, slack = receiver, 0.0
        rate = _bps(judged)
        if rate is not None and bounds.is_above(rate - slack, bound):
            broken.append(bound)
    return broken


def _row(bench: Bench, run: RunResult, way: Way) -> Row:
    direction = next((d for d in run.directions if d.way == way), None) or Direction(way=way)
    theirs = direction.peer or direction.reported
    receiver, sender = (direction.board, theirs) if way == "receive" else (theirs, direction.board)
    # Not every program prints every figure: what one account of the receiver lacks, the other may tell.
    accounts = [direction.board] if way == "receive" else [direction.peer, direction.reported]
    udp = run.test.proto == "udp"

    def counted(name: str) -> Any:
        values = [getattr(a, name) for a in accounts if a is not None and udp]
        return next((v for v in values if v is not None), None)

    packets = counted("packets")
    if packets is None and udp and sender is not None:
        packets = sender.packets
    if direction.peer is not None and run.peer is not None:
        peer_name = run.peer.program
    elif direction.reported is not None:
        peer_name = "as reported to the board"
    else:
        peer_name = run.peer.program if run.peer else ""
    known = limits.all_bounds(bench, run, way)
    return Row(
        run=run,
        way=way,
        direction=direction,
        board_bps=_bps(direction.board),
        peer_bps=_bps(theirs),
        peer_name=peer_name,
        delivered_bps=_bps(direction.delivered),
        jitter_us=counted("jitter_us"),
        lost=counted("lost"),
        packets=packets,
        ooo=counted("ooo"),
        retries=direction.board.retries if direction.board and way == "send" else None,
        enomem=direction.board.enomem if direction.board and way == "send" else None,
        stall_us=direction.board.stall_us if direction.board and way == "send" else None,
        limits=known,
        impossible=_impossible(run, known, sender, receiver),
    )


def rows(bench: Bench, runs: Iterable[RunResult] | None = None) -> list[Row]:
    """The rows of a bench in the order of its runs; a run without figures still has its row."""
    return [_row(bench, run, way) for run in (bench.runs if runs is None else runs) for way in ways_of(run)]


def clusters(intervals: list[Interval]) -> Iterator[list[Interval]]:
    """Intervals of several streams grouped by their time, each stream at most once in a group."""
    cluster: list[Interval] = []
    seen: set[int] = set()
    for row in sorted(intervals, key=lambda i: (i.start_us, i.id)):
        apart = cluster and 2 * (row.start_us - cluster[0].start_us) > row.end_us - row.start_us
        if row.id in seen or apart:
            yield cluster
            cluster, seen = [], set()
        cluster.append(row)
        seen.add(row.id)
    if cluster:
        yield cluster


def curve(intervals: Iterable[Interval], sender: bool) -> list[Point]:
    """The rate over time of all streams of one direction together.

    A short piece at the end (under a tenth of the usual interval) is left out: over some milliseconds
    a rate says nothing. Intervals without length are left out too.
    """
    chosen = [i for i in intervals if i.sender == sender and i.end_us > i.start_us]
    if not chosen:
        return []
    usual = median(i.end_us - i.start_us for i in chosen)
    points = []
    for group in clusters(chosen):
        longest = max(i.end_us - i.start_us for i in group)
        if longest * 10 < usual:
            continue
        points.append(
            Point(
                start_s=min(i.start_us for i in group) / 1e6,
                end_s=max(i.end_us for i in group) / 1e6,
                bps=sum(i.bytes * 8e6 / (i.end_us - i.start_us) for i in group),
                omitted=all(i.omitted for i in group),
            )
        )
    return points


def curves(run: RunResult, way: Way) -> tuple[list[Point], list[Point]]:
    """The curves of one direction: as the board counted, and as the peer did (maybe empty)."""
    sends = way == "send"
    board = curve(run.board.intervals, sends) if run.board else []
    peer = curve(run.peer.intervals, sends) if run.peer else []
    return board, peer


def warnings(row: Row) -> list[str]:
    """Sentences on what is doubtful about a row: the ends disagree, a figure above its bound."""
    found: list[str] = []
    said = ends.explain(row.direction, row.run.test.proto)
    if said:
        found.append(said)
    for bound in row.impossible:
        found.append(
            f"above the bound of {bound.what} ({bound.how}): the figure cannot be true of this link; "
            "is the link what board.toml says, are both clocks right?"
            if not bound.of_sender
            else f"above the {bound.what} of {format_rate(bound.bps)}: the pacing of the sender does not hold"
        )
    if row.stall_us and row.direction.board and row.stall_us > _STALLED * row.direction.board.us:
        share = 100 * row.stall_us / row.direction.board.us
        found.append(
            f"pacing gave up on {format_time_us(row.stall_us)} ({share:.0f} % of the test): the board cannot "
            "send at this rate, or was held up (a busy PC does this to a virtual board); lost time is not "
            "caught up in bursts"
        )
    if row.run.test.mode not in _WAYS:
        found = [f"{row.way}: {line}" for line in found]
    return found


def remarks(run: RunResult) -> list[str]:
    """The notes of a run beside those that `warnings` and the board's own list of adaptions give."""
    said = set(run.board.adapted) if run.board else set()
    said |= {text for d in run.directions if (text := ends.explain(d, run.test.proto))}
    return [note for note in run.notes if note not in said]


def virtual_mark(bench: Bench) -> str | None:
    """What to say of a bench that did not run on hardware; None for hardware in wall time."""
    parts = []
    if bench.board.twin_of:
        parts.append(f"twin of {bench.board.twin_of} ({bench.board.name}), not the hardware")
    if bench.board.figures:
        parts.append(bench.board.figures)
    elif not parts and bench.board.kind == "virtual":
        parts.append("virtual board: its figures are those of this PC, not of any hardware")
    if bench.board.time == "virtual":
        parts.append("virtual time: the two ends' seconds differ, so their figures are not compared")
    return "; ".join(parts) or None
