"""Events: the one stream that terminal, files, page and gate all read (records.jsonl).

Section 7 of docs/contracts.md is the source of the names; units as in upyperf.records.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Discriminator, Field, Tag, TypeAdapter

from upyperf.records import BoardResult, Interval, Model, RunResult, Stream, Sum, Test, now


class Event(Model):
    """Anything that happened; kinds not listed below keep their fields as extras."""

    model_config = ConfigDict(extra="allow")
    t: str = Field(default_factory=now)
    source: Literal["board", "peer", "host"]
    kind: str
    run: str | None = None


class IntervalEvent(Event, Interval):
    """An interval row, from the board or from the peer's own output."""

    kind: Literal["interval"] = "interval"


class BoardResultEvent(Event):
    """The board's result; the fields are those of BoardResult, without `intervals`."""

    source: Literal["board"] = "board"
    kind: Literal["result"] = "result"

    def result(self) -> BoardResult:
        """The fields as a BoardResult. Raises pydantic.ValidationError."""
        return BoardResult.model_validate(self.model_extra or {})


class PeerResultEvent(Event):
    """The peer's result as its output says."""

    source: Literal["peer"] = "peer"
    kind: Literal["result"] = "result"
    program: str
    sent: Sum | None = None
    received: Sum | None = None
    streams: list[Stream] = Field(default_factory=list)


class ErrorEvent(Event):
    """A failure on the board, at the peer or on the host; `kind` is "error"."""

    kind: Literal["error"] = "error"
    error: str
    """The error kind of docs/contracts.md section 1."""
    text: str
    errno: int | None = None


class RunStartEvent(Event):
    """The host starts a test."""

    source: Literal["host"] = "host"
    kind: Literal["run-start"] = "run-start"
    test: Test
    repeat: int = 1
    index: int = 1
    of: int = 1


class RunEndEvent(Event):
    """The host is done with a test; the whole result."""

    source: Literal["host"] = "host"
    kind: Literal["run-end"] = "run-end"
    result: RunResult


class NoteEvent(Event):
    """One line for the reader of the log."""

    kind: Literal["note"] = "note"
    text: str


def _tag(value: Any) -> str:
    fields = value if isinstance(value, dict) else vars(value)
    kind, source = fields.get("kind"), fields.get("source")
    if kind == "result":
        return f"{source}-result" if source in ("board", "peer") else "other"
    return str(kind) if kind in ("interval", "error", "run-start", "run-end", "note") else "other"


AnyEvent = Annotated[
    Annotated[IntervalEvent, Tag("interval")]
    | Annotated[BoardResultEvent, Tag("board-result")]
    | Annotated[PeerResultEvent, Tag("peer-result")]
    | Annotated[ErrorEvent, Tag("error")]
    | Annotated[RunStartEvent, Tag("run-start")]
    | Annotated[RunEndEvent, Tag("run-end")]
    | Annotated[NoteEvent, Tag("note")]
    | Annotated[Event, Tag("other")],
    Discriminator(_tag),
]
EVENT: TypeAdapter[Event] = TypeAdapter(AnyEvent)


def parse_event(fields: dict[str, Any]) -> Event:
    """One event from its JSON object. Raises pydantic.ValidationError."""
    return EVENT.validate_python(fields)


def parse_events(lines: Iterable[str]) -> list[Event]:
    """Events of a records.jsonl; a last line torn by a crash is left out.

    Raises ValueError (with the line number) for a bad line that is not the last.
    """
    rows = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    events: list[Event] = []
    for position, (number, line) in enumerate(rows):
        try:
            events.append(parse_event(json.loads(line)))
        except ValueError as error:
            if position == len(rows) - 1:
                break
            raise ValueError(f"line {number} is not an event: {error}") from None
    return events


def event_schema() -> dict[str, Any]:
    """JSON Schema of one line of records.jsonl."""
    return EVENT.json_schema(mode="serialization")
