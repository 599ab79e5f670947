"""Reads the final lines that the real iperf 2 prints with -f k and without -i."""

from __future__ import annotations

import re
from dataclasses import dataclass

_LINE = re.compile(
    r"^\[ *(\*?\d+)\] *([\d.]+) *- *([\d.]+) sec +([\d.]+) KBytes +([\d.]+) Kbits/sec"
    r"(?: +(-?[\d.]+|nan|-nan) ms +(-?\d+)/ *(-?\d+))?", re.M,
)  # fmt: skip


@dataclass(frozen=True)
class Line:
    """One total: bytes (whole KiB), seconds, and of datagrams jitter in ms, lost and all."""

    id: str
    seconds: float
    bytes: float
    jitter_ms: float | None
    lost: int | None
    total: int | None


def lines(text: str) -> list[Line]:
    """The totals of streams (no sums, no server reports)."""
    return _read(_without_reports(text))


def reports(text: str) -> list[Line]:
    """The lines below "Server Report:" of a client."""
    found = []
    for part in text.split("Server Report:")[1:]:
        found += _read(part)[:1]
    return found


def _without_reports(text: str) -> str:
    """The text without the line that follows each "Server Report:"."""
    head, *rest = text.split("Server Report:")
    for part in rest:
        match = _LINE.search(part)
        head += part[match.end() :] if match else part
    return head


def _read(text: str) -> list[Line]:
    return [
        Line(
            id=m[1], seconds=float(m[3]) - float(m[2]), bytes=float(m[4]) * 1024,
            jitter_ms=float(m[6]) if m[6] else None, lost=int(m[7]) if m[7] else None,
            total=int(m[8]) if m[8] else None,
        )
        for m in _LINE.finditer(text)
    ]  # fmt: skip
