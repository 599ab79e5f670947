"""A serial port on which nothing waits for ever.

Wire looks like a pyserial object to mpremote's transport, which itself waits without end in several
places (micropython PR#16616): every call here ends at the current deadline at the latest.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

import serial

from upyperf.errors import UpyperfError
from upyperf.link import lines


class WireTimeout(Exception):
    """The deadline has passed; `seen` is what came in meanwhile and was not taken."""


class Wire:
    """`port` is an open pyserial object whose timeout is short, `name` what messages call it.

    Every method raises UpyperfError `serial-lost` once the port has failed, and the reading and
    writing ones WireTimeout when the deadline set by within() has passed.
    """

    def __init__(self, port: Any, name: str) -> None:
        self.port = port
        self.name = name
        self._ahead = bytearray()
        self._deadline = 0.0
        self._lost: str | None = None

    @contextlib.contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Let everything in this block end within `seconds`; inside another such block the earlier
        deadline holds."""
        before = self._deadline
        deadline = time.monotonic() + seconds
        self._deadline = min(before, deadline) if before else deadline
        try:
            yield
        finally:
            self._deadline = before

    def left(self) -> float:
        """Seconds until the deadline, at least 0."""
        return max(0.0, self._deadline - time.monotonic())

    # -- what mpremote uses of a serial object

    def inWaiting(self) -> int:
        """Number of bytes that can be read at once."""
        self._check()
        with self._failures():
            return len(self._ahead) + int(self.port.in_waiting)

    def read(self, size: int = 1) -> bytes:
        """Exactly `size` bytes."""
        data = self.receive()
        while len(data) < size:
            data += self.receive()
        self.unread(data[size:])
        return data[:size]

    def write(self, data: bytes) -> int:
        """Send all of `data`."""
        self._check()
        with self._failures():
            self.port.write(data)
        return len(data)

    # -- ours

    def interrupt(self) -> None:
        """Send Ctrl-C; may be called by another thread than the one that reads."""
        with self._failures():
            self.port.write(b"\x03")

    def receive(self) -> bytes:
        """What came in, at least one byte."""
        if self._ahead:
            return self._take()
        while not (data := self.poll()):
            self._check()
        return data

    def poll(self) -> bytes:
        """What came in within the port's own short timeout; may be empty."""
        if self._lost:
            raise UpyperfError("serial-lost", self._lost)
        data = self._take()
        with self._failures():
            return data + bytes(self.port.read(max(1, self.port.in_waiting)))

    def _take(self) -> bytes:
        data = bytes(self._ahead)
        self._ahead.clear()
        return data

    def unread(self, data: bytes) -> None:
        """Give back bytes that were read too far."""
        self._ahead[:0] = data

    def read_until(self, ending: bytes, seconds: float) -> bytes:
        """All bytes up to and with `ending`, or what came within `seconds` (without an exception
        then, unless the deadline has passed as well)."""
        end = time.monotonic() + seconds
        seen = bytearray()
        while True:
            data = self.poll()
            start = max(0, len(seen) - len(ending))
            seen += data
            at = seen.find(ending, start)
            if at >= 0:
                self.unread(bytes(seen[at + len(ending) :]))
                return bytes(seen[: at + len(ending)])
            if time.monotonic() >= end:
                return bytes(seen)

    def reset(self, levels: lines.Lines) -> None:
        """Reset the board by DTR and RTS."""
        with self._failures():
            lines.reset(self.port, levels)

    def close(self) -> None:
        """Close the port; never raises."""
        lines.close_port(self.port)

    def _check(self) -> None:
        if self._lost:
            raise UpyperfError("serial-lost", self._lost)
        if time.monotonic() > self._deadline:
            raise WireTimeout

    @contextlib.contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except serial.SerialTimeoutException:
            raise WireTimeout from None
        except Exception as error:
            # OSError for most, but termios.error and pyserial's own mistakes on a port that
            # vanished (TypeError on a closed descriptor) mean the same.
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            self._lost = (
                f"the serial link to {self.name} went away ({reason}): "
                "check cable, hub and power of the board, then run again"
            )
            raise UpyperfError("serial-lost", self._lost) from None
