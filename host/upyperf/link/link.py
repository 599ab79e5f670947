"""A live connection to a board: code goes in, output comes out, and nothing waits for ever."""

from __future__ import annotations

import ast
import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from upyperf.errors import UpyperfError
from upyperf.link import files, identity
from upyperf.link.identity import Identity
from upyperf.link.lines import Lines
from upyperf.link.output import Lines as OutputLines
from upyperf.link.output import text
from upyperf.link.ports import open_device
from upyperf.link.rawrepl import RawRepl
from upyperf.link.transcript import Transcript
from upyperf.link.wire import Wire, WireTimeout

OnLine = Callable[[str], None]

_CLOSE_TIMEOUT = 1.0  # s
_RESET_TIMEOUT = 5.0  # s for the board to take in the command to reset
_REOPEN_PAUSE = 0.2  # s between tries to open a port that a reset took away
_SLOWEST = 10.0  # baud / this = bytes/s that a line surely carries


class BoardExecError(UpyperfError):
    """Code raised an exception on the board. output: what it printed before; traceback: all of
    MicroPython's text. Kind `memory` for MemoryError, else `board`."""

    def __init__(self, output: str, traceback: str, reason: str) -> None:
        kind = "memory" if reason.startswith("MemoryError") else "board"
        hint = "give it less to do or free heap first" if kind == "memory" else "see the serial log"
        super().__init__(kind, f"the board raised {reason}: {hint}")
        self.output = output
        self.traceback = traceback


class Link:
    """Made by connect(). All methods raise UpyperfError: `serial-lost` when the port went away,
    `board` when the board does not answer in time; after the latter the link may be used on.

    Not for several threads at once, but for interrupt().
    """

    def __init__(self, device: str, baud: int, timeout: float, transcript: Transcript, levels: Lines) -> None:
        self.device = device
        self._baud = baud
        self._timeout = timeout
        self._levels = levels
        self._transcript = transcript
        self._running = threading.Event()
        self._repl = self._open()

    def _open(self) -> RawRepl:
        port = open_device(self.device, self._baud, self._timeout, self._levels)
        self._transcript.note(f"opened {self.device} at {self._baud} baud")
        return RawRepl(Wire(port, self.device))

    # -- running code

    def exec(self, code: str, timeout: float = 10.0, on_line: OnLine | None = None) -> str:
        """Run code on the board; returns its output with "\\n" as line end.

        on_line gets every line of output as soon as it is complete. Raises BoardExecError when the
        code raised, UpyperfError `board` when it did not end within `timeout` s (it still runs then;
        the next call interrupts it).
        """
        self._enter()
        self._transcript.sent(code)
        return self._run(code, timeout, on_line)

    def _run(self, code: str, timeout: float, on_line: OnLine | None = None) -> str:
        output = bytearray()
        lines = OutputLines()

        def take(data: bytes) -> None:
            output.extend(data)
            self._transcript.received(data)
            if on_line:
                for line in lines.feed(data):
                    on_line(line)

        transfer = len(code) * _SLOWEST / self._baud
        self._running.set()
        try:
            error = self._repl.run(code, timeout + transfer, take)
        except WireTimeout:
            self._transcript.note(f"no end within {timeout:g} s")
            raise UpyperfError(
                "board",
                f"the board on {self.device} did not finish within {timeout:g} s: "
                f"it is stuck, or needs more time",
            ) from None
        finally:
            self._running.clear()
            self._transcript.flush()
        if on_line:
            for line in lines.flush():
                on_line(line)
        if error:
            self._raise(text(bytes(output)), text(error))
        return text(bytes(output))

    def _raise(self, output: str, traceback: str) -> None:
        self._transcript.error(traceback)
        reason = traceback.strip().splitlines()[-1].rstrip(": ") if traceback.strip() else "an error"
        raise BoardExecError(output, traceback, self.mask(reason))

    def eval(self, expr: str, timeout: float = 10.0) -> object:
        """The value of an expression on the board, for values that repr() writes as literals.

        Raises UpyperfError `board` for any other value."""
        answer = self.exec(f"print(repr({expr}))", timeout).strip()
        try:
            return ast.literal_eval(answer)
        except (ValueError, SyntaxError):
            shown = self.mask(answer[:60])
            raise UpyperfError("board", f"the board answered {shown!r}, which is not a literal") from None

    # -- files

    def put(self, path: str, data: bytes) -> None:
        """Write a file on the board, with its folders, and check what is there by its hash.

        Raises UpyperfError `board` when it cannot be written or differs afterwards."""
        self._transcript.note(f"put {path}, {len(data)} bytes")
        files.put(self._quiet, path, data)

    def put_tree(self, files_by_path: Mapping[str, bytes]) -> list[str]:
        """Write the files that are not there yet with the same content; returns the paths written.

        One question to the board tells which are there (by SHA-256). Raises as put()."""
        written = files.put_tree(self._quiet, files_by_path)
        self._transcript.note(f"put {len(written)} of {len(files_by_path)} files: {', '.join(written)}")
        return written

    def _quiet(self, code: str, timeout: float) -> str:
        """Run without a line in the transcript for what was sent: it is data."""
        self._enter()
        return self._run(code, timeout)

    # -- the board's state

    def identify(self) -> Identity:
        """What the board says it is. Raises UpyperfError `board` when it is no MicroPython."""
        answer = self.exec(identity.CODE).strip()
        try:
            return Identity.parse(ast.literal_eval(answer))
        except (ValueError, SyntaxError, TypeError):
            shown = self.mask(answer[:60])
            raise UpyperfError(
                "board", f"the board on {self.device} does not say what it is: {shown!r}"
            ) from None

    def soft_reset(self, timeout: float | None = None) -> str:
        """Soft reset: a new interpreter, boot.py run again (main.py not); returns what it printed."""
        self._enter()
        printed = self._repl.reset_soft(timeout or self._timeout)
        self._transcript.note("soft reset")
        self._transcript.received(printed)
        self._transcript.flush()
        return text(printed)

    def hard_reset(self, method: str = "machine.reset", timeout: float | None = None) -> None:
        """Reset the chip, wait until the board is back (USB ports vanish meanwhile) and at the prompt.

        method: "machine.reset", or "dtr-rts" for boards with the usual ESP circuit.
        """
        end = time.monotonic() + (timeout or self._timeout)
        self._transcript.note(f"hard reset by {method}")
        try:
            if method == "dtr-rts":
                self._repl.wire.reset(self._levels)
            else:
                self._enter()
                with contextlib.suppress(WireTimeout):  # gone before it could say a word
                    self._repl.start("import machine\nmachine.reset()", _RESET_TIMEOUT)
                time.sleep(_REOPEN_PAUSE)
        except UpyperfError as error:
            if error.kind != "serial-lost":
                raise
        self._repl.in_raw_repl = False
        while True:
            left = max(0.1, end - time.monotonic())
            try:
                self._enter(left)
                return
            except UpyperfError as error:
                if error.kind != "serial-lost" or time.monotonic() > end:
                    raise
            self._reopen(end)

    def _reopen(self, end: float) -> None:
        self._repl.wire.close()
        while True:
            time.sleep(_REOPEN_PAUSE)
            try:
                self._repl = self._open()
                return
            except UpyperfError:
                if time.monotonic() > end:
                    raise

    def interrupt(self, timeout: float | None = None) -> str:
        """Stop what runs on the board.

        Called by another thread while exec() runs: sends Ctrl-C, and that exec() ends with
        BoardExecError (KeyboardInterrupt); returns "". Else, such as after a Ctrl-C on this PC broke
        exec() off: stops the board's program, brings back the prompt and returns the output that was
        still to come.
        """
        self._transcript.note("interrupt")
        if self._running.is_set():
            with contextlib.suppress(WireTimeout):  # then exec() ends by its own timeout
                self._repl.wire.interrupt()
            return ""
        return self._enter(timeout, force=True)

    def _enter(self, timeout: float | None = None, force: bool = False) -> str:
        """Be at the raw REPL's prompt; returns what the board printed before."""
        if self._repl.ready and not force:
            return ""
        try:
            printed = self._repl.enter(timeout or self._timeout)
        except UpyperfError as error:
            raise UpyperfError(error.kind, self.mask(error.text)) from None
        self._transcript.received(printed)
        self._transcript.flush()
        return text(printed)

    # -- secrets

    def secret(self, value: str) -> None:
        """Mask `value`, plain or as a literal, in the serial log and in messages from now on."""
        self._transcript.secret(value)

    def mask(self, message: str) -> str:
        """`message` without the secrets."""
        return self._transcript.mask(message)

    # -- the end

    def close(self) -> None:
        """Leave the raw REPL and close the port. Never raises; may be called again."""
        try:
            self._repl.leave(_CLOSE_TIMEOUT)
        except (UpyperfError, WireTimeout):
            pass
        finally:
            self._repl.wire.close()
            self._transcript.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def connect(
    device: str,
    *,
    baud: int = 115200,
    timeout: float = 15.0,
    log: Path | None = None,
    dtr: bool | None = None,
    rts: bool | None = None,
) -> Link:
    """Open a board's port and bring the board to its raw REPL, whatever it does at the moment.

    device: a port, a pyserial URL, id:SERIAL, port:PATH or auto (see ports.py); timeout: s, for the
    board to answer, here and for resets; log: file that the serial log is appended to; dtr, rts:
    levels of the lines after opening (see lines.py).
    Raises UpyperfError `board` (no port, no REPL) or `serial-lost`.
    """
    transcript = Transcript(log)
    try:
        link = Link(device, baud, timeout, transcript, Lines(dtr, rts))
    except BaseException:
        transcript.close()
        raise
    try:
        link._enter()
    except BaseException as error:
        transcript.note(str(error))
        link.close()
        raise
    return link
