"""Frames from the board, decoded (docs/contracts.md, section 2).

A frame is `#U <seq> <length> <crc32> <json>` on a line of its own; all else is board
output. Loss and damage are seen by sequence number, length and CRC.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable
from typing import Any

MARK = "#U "
_HEAD = re.compile(r"#U (\d+) (\d+) ([0-9a-f]{8}) (.*)", re.DOTALL)


class TornFrame(ValueError):
    """A line that is meant as a frame but is damaged; the text says how."""


def decode(line: str) -> tuple[int, dict[str, Any]]:
    """Sequence number and record of one frame line (line end already removed).

    Raises TornFrame.
    """
    match = _HEAD.fullmatch(line)
    if not match:
        raise TornFrame("no frame header")
    seq, length, crc, body = int(match[1]), int(match[2]), match[3], match[4]
    data = body.encode("utf-8", "surrogateescape")
    if len(data) != length:
        raise TornFrame(f"{len(data)} of {length} characters")
    if f"{zlib.crc32(data):08x}" != crc:
        raise TornFrame("wrong CRC")
    try:
        record = json.loads(body)
    except ValueError as error:
        raise TornFrame(f"no JSON: {error}") from None
    if not isinstance(record, dict) or not isinstance(record.get("k"), str):
        raise TornFrame("no record")
    return seq, record


class JobRecords:
    """The records of one job, gathered line by line and checked for gaps.

    `on_record(record)` is called once for each record, in the order of arrival;
    `on_output(line)` for each line that is no frame. A second pass (`agent.again()`)
    is fed to the same object after `retry()`: what came well the first time is kept.
    """

    def __init__(
        self,
        on_record: Callable[[dict[str, Any]], None] | None = None,
        on_output: Callable[[str], None] | None = None,
    ) -> None:
        self.records: dict[int, dict[str, Any]] = {}
        self.torn = 0
        self._on_record = on_record
        self._on_output = on_output

    def feed(self, line: str) -> None:
        """Take one line of board output."""
        line = line.rstrip("\r\n")
        start = line.find(MARK)
        if start < 0:
            self._output(line)
            return
        if start:
            # A print without a newline, or the end of a torn line, before the frame.
            self._output(line[:start])
        try:
            seq, record = decode(line[start:])
        except TornFrame as error:
            # The line end may have been lost between two frames: the second is whole.
            second = line.find(MARK, start + len(MARK))
            if second >= 0:
                self.torn += 1
                self._output(line[start:second])
                self.feed(line[second:])
                return
            self.torn += 1
            self._output(f"{line[start:]}  [torn frame: {error}]")
            return
        if seq not in self.records:
            self.records[seq] = record
            if self._on_record:
                self._on_record(record)

    def _output(self, line: str) -> None:
        if line and self._on_output:
            self._on_output(line)

    @property
    def done(self) -> dict[str, Any] | None:
        """The job's last record, or None while it has not come."""
        for record in self.records.values():
            if record["k"] == "done":
                return record
        return None

    @property
    def missing(self) -> list[int] | None:
        """Sequence numbers that did not come; None when the end itself did not come."""
        done = self.done
        if done is None:
            return None
        return [seq for seq in range(int(done.get("records", 0))) if seq not in self.records]

    @property
    def complete(self) -> bool:
        """Whether every record of the job is here."""
        return self.missing == []

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        """The records of one kind in the order of their sequence numbers."""
        return [r for _, r in sorted(self.records.items()) if r["k"] == kind]
