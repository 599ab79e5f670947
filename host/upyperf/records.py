"""The data model: what one run and one bench are (the events on the way: upyperf.events).

Written as pydantic models so that `results.json` has one definition and one JSON Schema.
Units: bytes; times inside a run in microseconds (`*_us`); rates in
bit/s, always computed from bytes and microseconds, never stored apart from them. Wall
times are ISO-8601 strings in UTC with milliseconds. `None` means "not known".
Sections 2, 3 and 7 of docs/contracts.md are the source of the field names.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, computed_field

SCHEMA_VERSION = 1
DISAGREEMENT_LIMIT = 0.02
"""Relative difference of the two ends' figures above which a run is flagged."""

Role = Literal["client", "server"]
Proto = Literal["tcp", "udp"]
Mode = Literal["send", "receive", "bidir", "dual", "tradeoff"]
Way = Literal["send", "receive"]
Status = Literal["ok", "error", "interrupted", "skipped"]


def now() -> str:
    """The present as ISO-8601 UTC with milliseconds, e.g. 2026-01-02T03:04:05.678Z."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Model(BaseModel):
    """Base: unknown keys of a newer schema are ignored, so that old readers go on."""

    model_config = ConfigDict(extra="ignore")


class Sum(Model):
    """What one end counted in one direction (a stream, or the sum over its streams)."""

    bytes: int
    us: int = 0
    packets: int | None = None
    lost: int | None = None
    ooo: int | None = None
    dup: int | None = None
    jitter_us: float | None = None
    retries: int | None = None
    enomem: int | None = None
    stall_us: int | None = None

    @computed_field  # type: ignore[prop-decorator]
    @property
    def bits_per_second(self) -> float | None:
        """Mean rate in bit/s; None when no time passed."""
        return self.bytes * 8e6 / self.us if self.us > 0 else None

    @property
    def lost_fraction(self) -> float | None:
        """Lost datagrams over datagrams sent (0..1); None when not known."""
        if self.lost is None or not self.packets:
            return None
        return self.lost / self.packets


class PeerStream(Model):
    """What the peer said about one stream, through the protocol."""

    bytes: int
    us: int | None = None
    packets: int | None = None
    lost: int | None = None
    jitter_us: float | None = None


class Stream(Sum):
    """One stream as the board counted it; `sender` says whether the board sent."""

    id: int
    sender: bool
    peer: PeerStream | None = None


class Interval(Model):
    """One stream in one reporting interval, times from the start of the test.

    `sender` says whether the board sent, in the rows that the peer printed too.
    """

    id: int
    sender: bool
    start_us: int
    end_us: int
    bytes: int
    packets: int | None = None
    lost: int | None = None
    ooo: int | None = None
    jitter_us: float | None = None
    retries: int | None = None
    enomem: int | None = None
    omitted: bool = False

    @computed_field  # type: ignore[prop-decorator]
    @property
    def bits_per_second(self) -> float | None:
        """Mean rate over the interval in bit/s; None when it has no length."""
        us = self.end_us - self.start_us
        return self.bytes * 8e6 / us if us > 0 else None


class ErrorInfo(Model):
    """A failure: its kind (docs/contracts.md section 1) and one line of text."""

    kind: str
    text: str
    errno: int | None = None


class Heap(Model):
    """Free bytes of the MicroPython heap before and after the run."""

    free_before: int
    free_after: int


class BoardResult(Model):
    """The result of one run as the board reports it (docs/contracts.md section 3)."""

    version: int
    role: Role
    proto: Proto
    mode: str
    layer: str | None = None
    host: str | None = None
    port: int | None = None
    options: dict[str, Any] = Field(default_factory=dict)
    adapted: list[str] = Field(default_factory=list)
    streams: list[Stream] = Field(default_factory=list)
    sent: Sum | None = None
    received: Sum | None = None
    peer_sent: Sum | None = None
    peer_received: Sum | None = None
    peer_text: str | None = None
    intervals: list[Interval] = Field(default_factory=list)
    intervals_dropped: int = 0
    heap: Heap | None = None
    cpu: dict[str, Any] | None = None
    counters: dict[str, Any] = Field(default_factory=dict)
    error: ErrorInfo | None = None


class PeerResult(Model):
    """The result of one run as the program on the PC printed it."""

    program: str
    """Program and version, e.g. "iperf3 3.12" or "upyperf's own iperf (CPython 3.11)"."""
    sent: Sum | None = None
    received: Sum | None = None
    streams: list[Stream] = Field(default_factory=list)
    intervals: list[Interval] = Field(default_factory=list)
    text: str | None = None
    """Its output, as printed (the last 64 KiB of it)."""
    error: ErrorInfo | None = None


class BoardInfo(Model):
    """What the board answered about itself (the agent's `board` record)."""

    micropython: str = ""
    machine: str = ""
    platform: str = ""
    mpy: int | None = None
    heap_free: int | None = None
    heap_alloc: int | None = None
    layers: list[str] = Field(default_factory=list)
    lwip: dict[str, Any] | None = None
    nics: list[Any] = Field(default_factory=list)
    rssi: int | None = None
    """Wi-Fi signal strength in dBm."""
    freq_hz: int | None = None
    unique_id: str | None = None
    iperf: str | None = None


class BoardRef(Model):
    """The board a bench ran on, as its board.toml names it."""

    name: str
    title: str = ""
    kind: Literal["virtual", "hardware"]
    time: Literal["wall", "virtual"] = "wall"
    mcu: str | None = None
    twin_of: str | None = None
    figures: str | None = None
    """What the figures of a virtual board mean, where its board.toml says it ("simulated: …")."""
    port: str | None = None
    """The serial device used."""
    connection: str | None = None
    link_mbit: float | None = None
    """Line rate of the wired link in Mbit/s (10, 100, 1000); None for Wi-Fi, loopback or not known."""


class NetworkRef(Model):
    """How board and PC reach each other."""

    interface: str | None = None
    pc_address: str | None = None
    board_address: str | None = None
    mode: str | None = None
    """loopback, dhcp, static, server or virtual."""
    rtt_us: float | None = None
    """Median round trip between board and PC in microseconds, where the runner measured it."""
    notes: list[str] = Field(default_factory=list)


class HostRef(Model):
    """The PC the bench ran on."""

    hostname: str
    platform: str
    python: str
    upyperf: str
    tools: dict[str, str | None] = Field(default_factory=dict)


class Test(Model):
    """One planned test: what the board does, against which protocol, with which options.

    `options` are the keyword arguments of `iperf.client`/`iperf.server` on the board, host
    and port excepted; durations in seconds, rates in bit/s, lengths in bytes.
    """

    __test__: ClassVar[bool] = False  # pytest would take it for a class of tests

    name: str
    version: Literal[2, 3] = 3
    proto: Proto = "tcp"
    mode: Mode = "send"
    role: Role = "client"
    layer: str = "socket"
    options: dict[str, Any] = Field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """Planned length of the test in s, omitted time included (10 is iperf's default)."""
        if self.options.get("num_bytes") or self.options.get("blocks"):
            base = float(self.options.get("time") or 30)
        else:
            base = float(self.options.get("time") or 10)
        factor = 2 if self.mode == "tradeoff" else 1
        return base * factor + float(self.options.get("omit") or 0)


class Direction(Model):
    """Both ends' figures of one direction, side by side, as the board sees it.

    `board` is what the board counted, `peer` what the peer's own output says, `reported`
    what the peer told the board through the protocol. `difference` is relative (0.01 = 1 %),
    of the rates for TCP; for UDP of the bytes, lost datagrams added back, since loss is
    shown on its own and is no disagreement.
    """

    way: Way
    board: Sum | None = None
    peer: Sum | None = None
    reported: Sum | None = None
    difference: float | None = None
    flagged: bool = False
    exempt: str | None = None
    """Why a difference is not judged, e.g. "virtual time"."""

    @property
    def delivered(self) -> Sum | None:
        """The figures at the receiving end, which are the ones that count."""
        if self.way == "receive":
            return self.board or self.peer
        return self.peer or self.reported or self.board


class RunResult(Model):
    """One test run: plan, both ends' results, and how they compare."""

    id: str
    test: Test
    repeat: int = 1
    status: Status = "ok"
    error: ErrorInfo | None = None
    started: str = ""
    ended: str = ""
    board: BoardResult | None = None
    peer: PeerResult | None = None
    directions: list[Direction] = Field(default_factory=list)
    notes: list[str] = Field(default_factory=list)
    lost_records: int = 0
    """Records that came torn or not at all, even after asking again."""

    @property
    def flagged(self) -> bool:
        """Whether the two ends disagree by more than DISAGREEMENT_LIMIT in a direction."""
        return any(d.flagged for d in self.directions)


class Bench(Model):
    """Everything of one call of bench or run: the content of results.json."""

    schema_version: int = SCHEMA_VERSION
    id: str
    """Name of the results folder, <UTC time>-<board>."""
    started: str
    ended: str = ""
    board: BoardRef
    info: BoardInfo | None = None
    network: NetworkRef = Field(default_factory=NetworkRef)
    host: HostRef
    plan: str = ""
    command: list[str] = Field(default_factory=list)
    config: dict[str, Any] = Field(default_factory=dict)
    """What else shapes the figures: flashed firmware, how the modules were deployed …"""
    runs: list[RunResult] = Field(default_factory=list)
    notes: list[str] = Field(default_factory=list)
    error: ErrorInfo | None = None
    exit_code: int = 0


def schema() -> dict[str, Any]:
    """JSON Schema of results.json."""
    return Bench.model_json_schema(mode="serialization")
