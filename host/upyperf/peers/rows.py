"""Rows of iperf's text output: what both versions have in common, and how rows become results.

A printed figure has three or more significant digits. Bytes and rate are printed apart,
so that the better one is taken: whichever has the smaller rounding error (`-f k`, which we
ask for, gives the rate of a fast link five digits or more).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from upyperf.records import Interval, Stream, Sum

_SIZE = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_RATE = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}

SIZE_PATTERN = r"(?P<size>[\d.]+)\s+(?P<size_unit>[KMGT]?)Bytes"
RATE_PATTERN = (
    r"(?P<rate>[\d.]+(?:e[+-]?\d+)?|-?nan|inf)\s+(?P<rate_unit>[KMGT]?)(?P<rate_kind>bits|Bytes)/sec"
)
LOSS_PATTERN = (
    r"(?P<jitter>-?[\d.]+|-?nan)\s+ms\s+(?P<lost>-?\d+)\s*/\s*(?P<total>-?\d+)\s+"
    r"\((?P<percent>[^)%]*)%\)"
)


@dataclass(frozen=True)
class Row:
    """One printed row. `sender` says whether the printing program sent; None: not told."""

    id: str
    sender: bool | None
    start_us: int
    end_us: int
    bytes: int
    packets: int | None = None
    lost: int | None = None
    ooo: int | None = None
    jitter_us: float | None = None
    retries: int | None = None
    omitted: bool = False
    final: bool = False
    total: bool = False
    """A [SUM] row."""
    reported: bool = False
    """A figure that the other end sent over, not counted by the printing program."""


def number(text: str) -> float | None:
    """The value of a printed number; None for nan and inf."""
    value = float(text)
    return value if value == value and abs(value) != float("inf") else None


def _half_digit(text: str) -> float:
    """Half a unit of the last printed digit."""
    decimals = len(text.partition(".")[2]) if "e" not in text else 0
    return 0.5 * 10.0**-decimals


def best_bytes(
    size: str, size_unit: str, rate: str, rate_unit: str, rate_kind: str, us: int, us_error: float
) -> int:
    """Bytes of a row, from its size or from rate times duration: whichever is rounded less.

    `us_error` is half a unit of the printed times, in microseconds.
    """
    size_value, rate_value = number(size) or 0.0, number(rate)
    by_size = size_value * _SIZE[size_unit]
    if rate_value is None or not size_value or not rate_value or us <= 0:
        return round(by_size)
    per_second = rate_value * (_RATE[rate_unit] if rate_kind == "bits" else _SIZE[rate_unit] * 8)
    by_rate = per_second * us / 8e6
    error_of_size = _half_digit(size) / size_value if size_unit else 0.0
    error_of_rate = _half_digit(rate) / rate_value + us_error / us
    return round(by_size if error_of_size <= error_of_rate else by_rate)


def interval_of(row: Row, board_sends: bool, stream_id: int) -> Interval:
    """A row as an interval record; `sender` there means: the board sends."""
    return Interval(
        id=stream_id,
        sender=board_sends,
        start_us=row.start_us,
        end_us=row.end_us,
        bytes=row.bytes,
        packets=row.packets,
        lost=row.lost,
        ooo=row.ooo,
        jitter_us=row.jitter_us,
        retries=row.retries,
        omitted=row.omitted,
    )


@dataclass
class Gatherer:
    """Collects the rows of one test into intervals and totals.

    `default_sender` is for rows that do not tell their direction: whether the printing
    program sends. `on_interval` gets each interval as it comes.
    """

    default_sender: bool
    on_interval: Callable[[Interval], None] | None = None
    intervals: list[Interval] = field(default_factory=list)
    _numbers: dict[tuple[str, bool], int] = field(default_factory=dict)
    _finals: dict[tuple[str, bool], Row] = field(default_factory=dict)
    _rows: dict[tuple[str, bool], list[Row]] = field(default_factory=dict)
    _sent_packets: dict[str, int] = field(default_factory=dict)
    _ooo: dict[str, int] = field(default_factory=dict)

    def add(self, row: Row) -> None:
        """Take a row; SUM rows and the other end's figures are not kept."""
        if row.total or row.reported:
            return
        sender = self.default_sender if row.sender is None else row.sender
        key = (row.id, sender)
        stream = self._numbers.setdefault(key, len(self._numbers) + 1)
        rows = self._rows.setdefault(key, [])
        # iperf 2 does not mark its last row: it starts at 0 again after other rows.
        if row.final or (row.start_us == 0 and rows and not row.omitted and not rows[-1].omitted):
            self._finals[key] = row
            return
        rows.append(row)
        if row.end_us > row.start_us:
            interval = interval_of(row, not sender, stream)
            self.intervals.append(interval)
            if self.on_interval:
                self.on_interval(interval)

    def add_sent(self, ident: str, packets: int) -> None:
        """ "[  1] Sent 175 datagrams"."""
        self._sent_packets[ident] = packets

    def add_ooo(self, ident: str, count: int) -> None:
        """ "… datagrams received out-of-order"; the last one is of the whole test."""
        self._ooo[ident] = count

    @property
    def finished(self) -> int:
        """Streams whose last row has come."""
        return len(self._finals)

    def streams(self) -> list[Stream]:
        """The total of each stream, from its last row or else from what its rows add up to."""
        out = []
        for key, stream in self._numbers.items():
            ident, sender = key
            row = self._finals.get(key)
            rows = self._rows[key]
            # After an abort iperf3 3.12 prints an end like 2664 s; intervals are 60 s at most.
            if row is None or (rows and row.end_us > rows[-1].end_us + 61_000_000):
                row = _added(rows)
            if row is None or (row.bytes == 0 and not rows):
                # iperf3 3.12 -s prints 0 bytes for a test that is over within its first interval.
                continue
            packets = row.packets
            if sender and ident in self._sent_packets:
                packets = self._sent_packets[ident]
            ooo = self._ooo.get(ident) if not sender and packets is not None else None
            out.append(
                Stream(
                    id=stream,
                    sender=not sender,
                    bytes=row.bytes,
                    us=row.end_us - row.start_us,
                    packets=packets,
                    lost=None if sender else row.lost,
                    ooo=row.ooo if ooo is None else ooo,
                    jitter_us=None if sender else row.jitter_us,
                    retries=row.retries,
                )
            )
        return out


def _added(rows: list[Row]) -> Row | None:
    counted = [row for row in rows if not row.omitted]
    if not counted:
        return None
    last = counted[-1]

    def added(name: str) -> int | None:
        values = [getattr(row, name) for row in counted]
        return None if None in values else sum(values)

    return replace(
        last,
        start_us=counted[0].start_us,
        bytes=sum(row.bytes for row in counted),
        packets=added("packets"),
        lost=added("lost"),
        ooo=added("ooo"),
        retries=added("retries"),
    )


def summed(streams: list[Stream], board_sends: bool) -> Sum | None:
    """The sum over the streams of one direction; None when there is none."""
    chosen = [stream for stream in streams if stream.sender == board_sends]
    if not chosen:
        return None

    def added(name: str) -> int | None:
        values = [getattr(stream, name) for stream in chosen]
        known = [value for value in values if value is not None]
        return sum(known) if known else None

    jitters = [stream.jitter_us for stream in chosen if stream.jitter_us is not None]
    return Sum(
        bytes=sum(stream.bytes for stream in chosen),
        us=max(stream.us for stream in chosen),
        packets=added("packets"),
        lost=added("lost"),
        ooo=added("ooo"),
        dup=added("dup"),
        jitter_us=sum(jitters) / len(jitters) if jitters else None,
        retries=added("retries"),
    )
