"""The serial log: what was sent to the board and what it answered, with secrets masked.

One line each: time (UTC), then ">" sent code, "<" output, "!" error text, "#" what the link did.
"""

from __future__ import annotations

import contextlib
import json
import threading
from datetime import UTC, datetime
from pathlib import Path

from upyperf.link.output import Lines

MASK = "***"


class Transcript:
    """`path` is appended to; None keeps no log. Every line is on disk once it is complete."""

    def __init__(self, path: Path | None) -> None:
        self._file = None
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = open(path, "a", encoding="utf-8", errors="backslashreplace")  # noqa: SIM115
        self._secrets: list[str] = []
        self._received = Lines()
        self._lock = threading.Lock()

    def secret(self, value: str) -> None:
        """From now on `value` is masked, as it is and as Python and JSON literals write it."""
        forms = set()
        for part in [value, *value.splitlines()]:
            if part:
                forms |= {part, repr(part)[1:-1], ascii(part)[1:-1], json.dumps(part)[1:-1]}
                # MicroPython's repr() quotes as Python's does, but always prefers ' over ".
                forms.add(ascii(part)[1:-1].replace("'", "\\'"))
        # Longest first: else a part that is masked would leave the rest of a longer one.
        self._secrets = sorted({*self._secrets, *forms}, key=len, reverse=True)

    def mask(self, text: str) -> str:
        """`text` with every registered secret replaced by MASK."""
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        return text

    def sent(self, code: str) -> None:
        """Code that was sent."""
        self._write(">", code.splitlines())

    def received(self, data: bytes) -> None:
        """Output of the board; kept until its line is complete."""
        self._write("<", self._received.feed(data))

    def error(self, text: str) -> None:
        """Error text of the board."""
        self.flush()
        self._write("!", text.splitlines())

    def note(self, text: str) -> None:
        """Something that the link did."""
        self.flush()
        self._write("#", [text])

    def flush(self) -> None:
        """Write an unfinished line of output."""
        self._write("<", self._received.flush())

    def close(self) -> None:
        """Write what is left and close the file; may be called again."""
        self.flush()
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()
            self._file = None

    def _write(self, mark: str, lines: list[str]) -> None:
        if self._file is None or not lines:
            return
        now = datetime.now(UTC).strftime("%H:%M:%S.%f")[:-3]
        # A log that cannot be written (disk full) is no reason to end a measurement.
        with self._lock, contextlib.suppress(OSError):
            for line in lines:
                self._file.write(f"{now} {mark} {_printable(self.mask(line))}\n")
            self._file.flush()


def _printable(line: str) -> str:
    return "".join(c if c.isprintable() or c == "\t" else f"\\x{ord(c):02x}" for c in line)
