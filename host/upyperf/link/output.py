"""Takes apart what a board sends while it runs code from the raw REPL: output, 04, error text, 04, ">".

Output may hold any byte, 04 included, which mpremote takes for the end. Here an 04 ends the output
only if what follows can be MicroPython's error text and is closed by 04 and the next prompt.
"""

from __future__ import annotations

import re

_EOF = b"\x04"
_REBOOT = b"MPY: soft reboot"
_TRACEBACK = b"Traceback (most recent call last):"
_NAME = re.compile(rb"[A-Za-z_][\w.]*(:[^\x04]*)?\r?\Z")
_LONGEST_NAME = 200  # bytes; a longer first line without a traceback is no error text


class Splitter:
    """feed() gives back the output as far as it is certain; `done` tells that the code has ended.

    error: the error text, empty when there was none;
    rest: bytes behind the end (the prompt and what follows);
    doubtful: the output held an 04, so that the end may be output as well: when more bytes come,
    the caller says so with not_yet().
    """

    def __init__(self) -> None:
        self.done = False
        self.error = b""
        self.rest = b""
        self.doubtful = False
        self._buffer = bytearray()
        self._after_eof = False

    def feed(self, data: bytes) -> bytes:
        """Take in what came; returns output."""
        self._buffer += data
        output = bytearray()
        while self._buffer and not self.done:
            if not self._after_eof:
                text, eof, rest = self._buffer.partition(_EOF)
                output += text
                self._buffer = rest
                if not eof:
                    break
                self._after_eof = True
            verdict = self._judge()
            if verdict is None:
                break
            if not verdict:
                output += _EOF
                self._after_eof = False
                self.doubtful = True
        return bytes(output)

    def not_yet(self) -> bytes:
        """The end was output after all; returns what is output of it, then feed() goes on."""
        self.done = False
        self._after_eof = False
        self._buffer[:0] = self.error + _EOF + self.rest
        return _EOF + self.feed(b"")

    def _judge(self) -> bool | None:
        """Whether the bytes behind an 04 are the end; None when more must come to tell."""
        text, eof, rest = self._buffer.partition(_EOF)
        if not _may_be_error(bytes(text), bool(eof)):
            return False
        if not eof or not rest:
            return None
        if rest.startswith(b">") or rest.startswith(_REBOOT):
            self.done = True
            self.error = bytes(text)
            self.rest = bytes(rest)
            self._buffer.clear()
            return True
        return None if _REBOOT.startswith(rest) else False


def _may_be_error(text: bytes, complete: bool) -> bool:
    if not text:
        return True
    line, newline, _ = text.partition(b"\n")
    if not newline:
        if complete:
            return False
        return _TRACEBACK.startswith(line[: len(_TRACEBACK)]) or (
            len(line) < _LONGEST_NAME and _NAME.match(line) is not None
        )
    if complete and not text.endswith(b"\n"):
        return False
    return line.rstrip(b"\r") == _TRACEBACK or _NAME.match(line) is not None


class Lines:
    """Cuts output into lines of text, each decoded as a whole, so that no character is torn by a read.

    Bytes that are not UTF-8 become \\xNN."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def feed(self, data: bytes) -> list[str]:
        """The lines that are complete now, without their ends."""
        *complete, last = data.split(b"\n")
        lines = []
        for piece in complete:
            self._pieces.append(piece)
            lines.append(self._join())
        if last:
            self._pieces.append(last)
        return lines

    def flush(self) -> list[str]:
        """The last line if it has no end."""
        return [self._join()] if self._pieces else []

    def _join(self) -> str:
        line = b"".join(self._pieces).decode(errors="backslashreplace")
        self._pieces.clear()
        return line.removesuffix("\r")


def text(data: bytes) -> str:
    """Output as text: line ends are "\\n", bytes that are not UTF-8 become \\xNN."""
    return data.replace(b"\r\n", b"\n").decode(errors="backslashreplace")
