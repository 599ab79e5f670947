"""The raw REPL over mpremote's serial transport, with a deadline on everything."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable

from mpremote.transport import TransportError
from mpremote.transport_serial import SerialTransport

from upyperf.errors import UpyperfError
from upyperf.link.output import Splitter
from upyperf.link.wire import Wire, WireTimeout

Sink = Callable[[bytes], None]

_BANNER = b"raw REPL; CTRL-B to exit\r\n>"
_FIRST_WAIT = 1.0  # s for an answer to Ctrl-A before Ctrl-C and Ctrl-A are sent again
_LONGEST_WAIT = 3.0
_SHOWN = 60  # characters of a board's output in a message
_DOUBT = 0.05  # s of silence that tell an end from output that looks like one


class RawRepl(SerialTransport):  # type: ignore[misc]
    """mpremote's transport on a Wire; its own opening and waiting are replaced.

    Methods raise UpyperfError `board` (no answer, no raw REPL), `serial-lost`; WireTimeout when
    code does not end in time.
    """

    def __init__(self, wire: Wire) -> None:
        # Not mpremote's: that one opens the port itself, without line policy and timeouts.
        self.serial = wire
        self.wire = wire
        self.device_name = wire.name
        self.in_raw_repl = False
        self.use_raw_paste = True
        self.mounted = False
        self.is_pty = True  # makes read_until() wait in Wire.read(), which has the deadline
        self._ended = False  # the last code has ended, so that the prompt is there or on its way

    @property
    def ready(self) -> bool:
        """Whether the board waits at the raw REPL's prompt."""
        return self.in_raw_repl and self._ended

    def enter(self, timeout: float) -> bytes:
        """Interrupt what runs and enter the raw REPL; returns what the board printed before.

        Ctrl-C and Ctrl-A are sent again and again: a board may still boot, or its program may catch
        the first interrupts.
        """
        seen = bytearray()
        wait = _FIRST_WAIT
        self.in_raw_repl = False
        with self.wire.within(timeout):
            try:
                while True:
                    self.wire.write(b"\r\x03\r\x01")
                    seen += self.wire.read_until(_BANNER, min(wait, self.wire.left()))
                    if seen.endswith(_BANNER) and self._answers():
                        break
                    if not self.wire.left():
                        raise WireTimeout
                    wait = min(wait * 1.5, _LONGEST_WAIT)
            except WireTimeout:
                raise UpyperfError("board", _no_repl(self.wire.name, bytes(seen), timeout)) from None
        self.in_raw_repl = True
        self._ended = True
        self.wire.unread(b">")
        return bytes(seen).replace(_BANNER, b"").replace(b"\x04", b"")

    def _answers(self) -> bool:
        """Have the board say a word that it cannot have said before, so that all it had to say to
        earlier Ctrl-As, and the banner of a reboot, are behind us."""
        word = secrets.token_hex(8).encode()
        self.wire.write(b"print('%s',end='')\x04" % word)
        end = word + b"\x04\x04>"
        return self.wire.read_until(end, min(_LONGEST_WAIT, self.wire.left())).endswith(end)

    def run(self, code: str, timeout: float, sink: Sink) -> bytes:
        """Run code, give its output to `sink` as it comes; returns the error text (empty: none).

        Raises WireTimeout when it does not end within `timeout` s.
        """
        with self.wire.within(timeout):
            self._start(code)
            splitter = Splitter()
            while True:
                while not splitter.done:
                    self._feed(splitter.feed(self.wire.receive()), sink)
                if not splitter.doubtful or not (more := self._more()):
                    break
                self._feed(splitter.not_yet() + splitter.feed(more), sink)
        self.wire.unread(splitter.rest)
        self._ended = True
        # A program that called sys.exit() has rebooted the board; then no prompt waits.
        self.in_raw_repl = splitter.rest.startswith(b">")
        return splitter.error

    def start(self, code: str, timeout: float) -> None:
        """Run code without waiting for its end (such as a reset)."""
        with self.wire.within(timeout):
            self._start(code)

    def _start(self, code: str) -> None:
        self._ended = False
        try:
            self.exec_raw_no_follow(code)
        except TransportError as error:
            raise UpyperfError(
                "board", f"the board on {self.wire.name} does not keep to the raw REPL ({error}): reset it"
            ) from None

    def _more(self) -> bytes:
        end = time.monotonic() + _DOUBT
        while time.monotonic() < end:
            if data := self.wire.poll():
                return data
        return b""

    @staticmethod
    def _feed(data: bytes, sink: Sink) -> None:
        if data:
            sink(data)

    def reset_soft(self, timeout: float) -> bytes:
        """Soft reset at the raw REPL's prompt; returns what boot.py printed."""
        self.in_raw_repl = False
        with self.wire.within(timeout):
            try:
                self.wire.write(b"\x03\x04")
                seen = self.wire.read_until(_BANNER, timeout)
                if not seen.endswith(_BANNER):
                    raise WireTimeout
            except WireTimeout:
                raise UpyperfError(
                    "board",
                    f"the board on {self.wire.name} did not come back from a soft reset within "
                    f"{timeout:g} s: does its boot.py end?",
                ) from None
        self.in_raw_repl = True
        self._ended = True
        self.wire.unread(b">")
        return seen[: -len(_BANNER)].removeprefix(b">").removeprefix(b"OK\r\n")

    def leave(self, timeout: float) -> None:
        """Interrupt what may run and go back to the friendly REPL, without waiting."""
        with self.wire.within(timeout):
            self.wire.write(b"\r\x03\x02")
        self.in_raw_repl = False


def _no_repl(name: str, seen: bytes, timeout: float) -> str:
    head = f"no raw REPL on {name} within {timeout:g} s: "
    if not seen:
        return head + "nothing came back; is the board powered, is this its port, does it run MicroPython?"
    if not seen.strip(b"\r\n\x01\x03"):
        return head + "the port only echoes what is sent; it is no MicroPython board"
    # Control characters that we sent come back from an echoing shell as ^C or as they are.
    strange = sum(c >= 0x80 or (c < 32 and c not in b"\r\n\t\x1b\x08\x01\x03\x04") for c in seen)
    if strange > len(seen) / 3:
        return head + "what comes is unreadable; is the baud rate right?"
    last = seen[-400:].decode(errors="backslashreplace").split()
    shown = " ".join("".join(c if c.isprintable() else "?" for c in word) for word in last)[-_SHOWN:]
    return head + (
        f"the board goes on with {shown!r}; press its reset button, "
        "and let its main.py or boot.py end at Ctrl-C"
    )
