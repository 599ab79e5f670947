"""A program of the PC, run beside a test: its output is always drained, its end always bounded."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from upyperf.errors import UpyperfError

KEPT_CHARS = 64 * 1024
# iperf 2 takes a second to obey TERM; what it had to say is said when we stop it.
STOP_STEPS = ((signal.SIGTERM, 0.3), (signal.SIGKILL, 5.0))


def _environment() -> dict[str, str]:
    """Ours, without the Wi-Fi credentials: a peer has no use for them."""
    return {name: value for name, value in os.environ.items() if not name.startswith("UPYPERF_WIFI")}


class Process:
    """Runs a program and hands on each line it prints, stdout and stderr alike.

    Both pipes are read in threads of their own, so that a long run cannot stall on a full
    pipe. `on_line` is called from those threads. Raises UpyperfError of kind peer when the
    program cannot be started.
    """

    def __init__(
        self,
        argv: Sequence[str],
        on_line: Callable[[str], None],
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.argv = list(argv)
        self.last_output = time.monotonic()
        self._on_line = on_line
        self._lock = threading.Lock()
        self._kept: deque[str] = deque()
        self._kept_chars = 0
        self._errors: deque[str] = deque(maxlen=20)
        # kill -9 of ours leaves no server behind: it gets TERM from the kernel (prctl(2), PR_SET_PDEATHSIG).
        guard = shutil.which("setpriv")
        try:
            if shutil.which(self.argv[0]) is None:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
            self._popen = subprocess.Popen(
                [*([guard, "--pdeathsig", "TERM"] if guard else []), *self.argv],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**_environment(), "LC_ALL": "C", **(env or {})},
                # Ctrl-C at the terminal is for us: we end the program ourselves, in order.
                start_new_session=True,
            )
        except OSError as error:
            raise UpyperfError("peer", f"cannot start {self.argv[0]}: {error.strerror}") from None
        self._threads = [
            threading.Thread(target=self._drain, args=(stream, is_error), daemon=True)
            for stream, is_error in ((self._popen.stdout, False), (self._popen.stderr, True))
        ]
        for thread in self._threads:
            thread.start()

    def _drain(self, stream: object, is_error: bool) -> None:
        assert hasattr(stream, "readline")
        while raw := stream.readline():
            line = raw.decode("utf-8", "replace").rstrip("\r\n")
            with self._lock:
                self.last_output = time.monotonic()
                self._kept.append(line)
                self._kept_chars += len(line) + 1
                while self._kept_chars > KEPT_CHARS and len(self._kept) > 1:
                    self._kept_chars -= len(self._kept.popleft()) + 1
                if is_error and line.strip():
                    self._errors.append(line.strip())
            self._on_line(line)

    @property
    def text(self) -> str:
        """What it printed (the last 64 KiB)."""
        with self._lock:
            return "\n".join(self._kept)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._popen.pid

    @property
    def last_error(self) -> str | None:
        """The last line on its stderr that says something ("iperf3: exiting" does not)."""
        with self._lock:
            telling = [line for line in self._errors if not line.endswith(": exiting")]
            return telling[-1] if telling else None

    def poll(self) -> int | None:
        """Its exit status, None while it runs."""
        return self._popen.poll()

    def wait(self, timeout: float) -> int | None:
        """Its exit status, None when it still runs after `timeout` s."""
        try:
            status = self._popen.wait(timeout)
        except subprocess.TimeoutExpired:
            return None
        self._join()
        return status

    def _join(self) -> None:
        for thread in self._threads:
            thread.join(timeout=2.0)

    def stop(self) -> None:
        """End it (TERM, then KILL), by its own pid and within a bounded time."""
        for number, grace in STOP_STEPS:
            if self.poll() is not None:
                break
            with contextlib.suppress(ProcessLookupError):
                self._popen.send_signal(number)
            if self.wait(grace) is not None:
                break
        self._join()
        for stream in (self._popen.stdout, self._popen.stderr):
            if stream is not None and not any(thread.is_alive() for thread in self._threads):
                stream.close()
