"""A scripted board on a pty: a small raw REPL whose code CPython runs, with a fault of its own choice.

It stands for what a unix board never does: boot slowly, ignore Ctrl-C, answer late, print by itself.
"""

from __future__ import annotations

import builtins
import contextlib
import io
import os
import pty
import select
import threading
import time
import traceback
import tty
from types import SimpleNamespace

BANNER = b"raw REPL; CTRL-B to exit\r\n>"
FRIENDLY = b"MicroPython v1.24.0 on 2024-10-25; Fake board with FAKE1\r\n>>> "


class _Implementation(tuple[object, ...]):
    def __new__(cls, machine: str) -> _Implementation:
        new = super().__new__(cls, ("micropython", (1, 24, 0)))
        new._machine = machine
        return new

    _machine: str


class FakeBoard:
    """Use as a context manager; `device` is the pty's name.

    boot_s: seconds until the REPL answers; input before that is lost;
    deaf: number of Ctrl-Cs that the running main.py swallows (None: it never ends);
    chatter_s: it prints `chatter` every so many seconds by itself, whatever it does;
    latency_s: every answer comes so much later; rate: bytes/s of its answers;
    raw_paste: whether it knows raw-paste mode's refusal ("R\\x00") or is older than it;
    mute: nothing ever comes back; echo: only what was sent comes back; noise: comes instead of answers;
    machine, platform: what identify() is told.
    """

    def __init__(
        self,
        *,
        boot_s: float = 0.0,
        deaf: int | None = 0,
        chatter: bytes = b"Turning the LED ON!\r\n",
        chatter_s: float = 0.0,
        latency_s: float = 0.0,
        rate: float = 0.0,
        raw_paste: bool = True,
        mute: bool = False,
        echo: bool = False,
        noise: bytes = b"",
        prefix: bytes = b"",
        machine: str = "Fake board with FAKE1",
        platform: str = "fake",
    ) -> None:
        self.boot_s = boot_s
        self.deaf = deaf
        self.chatter = chatter
        self.chatter_s = chatter_s
        self.latency_s = latency_s
        self.rate = rate
        self.raw_paste = raw_paste
        self.mute = mute
        self.echo = echo
        self.noise = noise
        self.prefix = prefix
        self.machine = machine
        self.platform = platform
        self.received = bytearray()
        self.ran: list[str] = []
        self.globals: dict[str, object] = {}
        self._queue: list[tuple[float, bytes]] = []
        self._raw = False
        self._line = bytearray()
        self._running = deaf != 0
        self._sleeping = False
        self._stop = threading.Event()
        self.master, slave = pty.openpty()
        tty.setraw(slave)
        self._slave = slave
        self.device = os.ttyname(slave)
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> FakeBoard:
        self._started = time.monotonic()
        self._booted = self.boot_s == 0
        self._next_chatter = self._started + self.chatter_s
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.unplug()

    def unplug(self) -> None:
        """The device goes away: whoever has it open gets EIO."""
        if not self._stop.is_set():
            self._stop.set()
            self._thread.join()
            os.close(self._slave)
            os.close(self.master)

    def _serve(self) -> None:
        due = 0.0
        while not self._stop.is_set():
            now = time.monotonic()
            if not self._booted and now - self._started >= self.boot_s:
                self._booted = True
                self._say(FRIENDLY)
            if self.chatter_s and now >= self._next_chatter:
                self._next_chatter = now + self.chatter_s
                self._queue.append((0.0, self.chatter))
            while self._queue and self._queue[0][0] <= now and now >= due:
                data = self._queue.pop(0)[1]
                if self.rate:
                    piece, rest = data[:64], data[64:]
                    if rest:
                        self._queue.insert(0, (0.0, rest))
                    data = piece
                    due = now + len(piece) / self.rate
                with contextlib.suppress(BlockingIOError):
                    os.write(self.master, data)
            if select.select([self.master], [], [], 0.002)[0]:
                with contextlib.suppress(OSError):
                    self._take(os.read(self.master, 4096))

    def _say(self, data: bytes) -> None:
        self._queue.append((time.monotonic() + self.latency_s, data))

    def _take(self, data: bytes) -> None:
        self.received += data
        if self.echo:
            self._say(data)
        if self.mute or self.echo or not self._booted:
            return
        if self.noise:
            self._say(self.noise)
            return
        for c in data:
            self._byte(c)

    def _byte(self, c: int) -> None:
        if self._sleeping:
            if c == 3:
                self._sleeping = False
                self._say(b"\x04Traceback (most recent call last):\r\nKeyboardInterrupt: \r\n\x04>")
            return
        if self._running:
            if c == 3 and self.deaf is not None:
                self.deaf -= 1
                if self.deaf < 0:
                    self._running = False
                    self._say(b"Traceback (most recent call last):\r\nKeyboardInterrupt: \r\n" + FRIENDLY)
            return
        if not self._raw:
            if c == 1:
                self._raw = True
                self._line.clear()
                self._say(b"\r\n" + self.prefix + BANNER)
            elif c in (3, 13):
                self._say(b"\r\n>>> ")
            return
        if c == 1:
            if self._line == b"\x05A" and self.raw_paste:
                self._say(b"R\x00")
            else:
                self._say(self.prefix + BANNER)
            self._line.clear()
        elif c == 2:
            self._raw = False
            self._say(b"\r\n" + FRIENDLY)
        elif c == 3:
            self._line.clear()
        elif c == 4:
            self._execute(bytes(self._line))
            self._line.clear()
        else:
            self._line.append(c)

    def _import(self, name: str, *rest: object) -> object:
        if name == "sys":
            return SimpleNamespace(
                implementation=_Implementation(self.machine), platform=self.platform, version="3.4.0"
            )
        return __import__(name, *rest)  # type: ignore[arg-type]

    def _execute(self, code: bytes) -> None:
        if not code:
            self._say(b"OK\r\nMPY: soft reboot\r\n" + BANNER)
            self.globals.clear()
            return
        self.ran.append(code.decode())
        self._say(b"OK")
        if b"sleep_for_ever" in code:
            self._sleeping = True
            return
        out = io.StringIO()
        error = ""
        self.globals["__builtins__"] = {
            **vars(builtins),
            "print": lambda *a, **k: print(*a, file=out, **k),
            "__import__": self._import,
        }
        try:
            exec(compile(code, "<stdin>", "exec"), self.globals)
        except BaseException as e:
            error = "Traceback (most recent call last):\n" + traceback.format_exception_only(e)[-1]
        body = out.getvalue().replace("\n", "\r\n").encode()
        self._say(body + b"\x04" + error.replace("\n", "\r\n").encode() + b"\x04>")
