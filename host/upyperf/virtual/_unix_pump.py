"""The process of a `unix` board: the serial port (a pty) on one side, MicroPython on the other.

Started by unix.py as a plain script (standard library only, so that it is up in milliseconds) with
one JSON argument; see main(). It lives until its standard input is closed, which happens at the
latest when the process that started it ends; MicroPython dies with it.

What it does beside copying bytes:
- the interrupt character (micropython.kbd_intr) becomes SIGINT while MicroPython runs code;
- MicroPython is started again after every reset, with the same file system and the same input queue;
- while nobody has the port open, output is dropped, as a UART does it; while somebody has, it waits.
"""

import contextlib
import ctypes
import json
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
import tty
from typing import Any

_BUFFER = 1 << 16  # bytes that wait in each direction before the sender is held up
_INTERRUPT_GAP = 0.1  # s; MicroPython ends itself at a second SIGINT while the first one is pending
_CLOSED_POLL = 0.01  # s between looks whether somebody opened the port
_PR_SET_PDEATHSIG = 1

# Exit codes of unix_repl/server.py -> (REPL of the next process)
_RESETS = {10: "raw", 11: "friendly", 12: "friendly"}
_READY = b"\x16"  # sent by the REPL server when it is told so, before it runs boot.py
_STARTS = 5  # that many processes in a row that end by themselves at once: give up


class Board:
    """One board: `command` starts MicroPython (list of str), `arguments` go to the REPL server."""

    def __init__(
        self, command: list[str], root: str, state: str, unique_id: str, env: dict[str, str]
    ) -> None:
        self.command = command
        self.root = root
        self.state = state
        self.unique_id = unique_id
        self.env = env
        self.to_pc = bytearray()
        self.to_board = bytearray()
        self.opened = False
        self.ready = False
        self.last_output = b""
        self.interrupt_at = 0.0  # monotonic time at which a SIGINT is due; 0 = none
        self.interrupted = 0.0
        self.quick_ends = 0
        self.started = 0.0
        self.child: subprocess.Popen[bytes] | None = None

        self.port, port_slave = pty.openpty()
        tty.setraw(port_slave)
        self.device = os.ttyname(port_slave)
        os.close(port_slave)  # so that a hang-up on self.port tells that nobody has the port open
        self.inner, self.inner_slave = pty.openpty()
        self.raw_attributes = _raw_attributes(self.inner_slave)
        for fd in (self.port, self.inner):
            os.set_blocking(fd, False)
        self.sigchld, wake = os.pipe()
        os.set_blocking(self.sigchld, False)
        os.set_blocking(wake, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)

    # -- MicroPython's process

    def start(self, repl: str) -> None:
        termios.tcsetattr(self.inner_slave, termios.TCSANOW, self.raw_attributes)
        self.started = time.monotonic()
        self.interrupt_at = 0.0
        self.child = subprocess.Popen(
            [*self.command, self.root, self.state, repl, self.unique_id, "" if self.ready else "report"],
            stdin=self.inner_slave,
            stdout=self.inner_slave,
            stderr=self.inner_slave,
            cwd=self.root,
            env=self.env,
            start_new_session=True,
            preexec_fn=_die_with_parent,
        )
        log(f"MicroPython started, pid {self.child.pid}, {repl} REPL")

    def reap(self) -> None:
        """Start MicroPython again when it has ended."""
        if self.child is None:
            return
        code = self.child.poll()
        if code is None:
            return
        self.kill()  # what the program has started with os.system()
        log(f"MicroPython pid {self.child.pid} ended with {code}")
        self.drain()
        repl = _RESETS.get(code)
        if repl is None:
            quick = time.monotonic() - self.started < 2
            self.quick_ends = self.quick_ends + 1 if quick else 1
            if not self.ready or self.quick_ends >= _STARTS:
                text = self.last_output.decode(errors="backslashreplace").strip()
                raise BoardError(f"MicroPython ended at once with status {code}: {text}")
            self.to_pc += f"\r\nMPY: MicroPython ended with status {code}; hard reset\r\n".encode()
        self.start(repl or "friendly")

    def kill(self) -> None:
        if self.child is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.child.pid, signal.SIGKILL)

    # -- bytes

    def drain(self) -> None:
        """Take what MicroPython has written; more only when there is room for it."""
        while len(self.to_pc) < _BUFFER:
            try:
                data = os.read(self.inner, 4096)
            except BlockingIOError:
                return
            if not self.ready:
                self.last_output = (self.last_output + data)[-2000:]
                if _READY not in self.last_output:
                    continue
                data = self.last_output.split(_READY, 1)[1]
                self.ready = True
                report({"device": self.device})
            self.to_pc += data

    def from_pc(self, data: bytes) -> None:
        char = self.interrupt_char()
        if char and char in data:
            data = data.replace(char, b"")
            self.interrupt_at = max(time.monotonic(), self.interrupted + _INTERRUPT_GAP)
            self.interrupt()
        self.to_board += data

    def interrupt_char(self) -> bytes:
        """The character that interrupts the program now; empty when every byte is data."""
        attributes = termios.tcgetattr(self.inner)
        if not attributes[3] & termios.ISIG:
            return b""
        char = attributes[6][termios.VINTR]
        return char if isinstance(char, bytes) else bytes((char,))

    def interrupt(self) -> None:
        """Send the SIGINT that is due, unless the program has ended meanwhile."""
        if not self.interrupt_at or time.monotonic() < self.interrupt_at:
            return
        self.interrupt_at = 0.0
        if self.interrupt_char() and self.child is not None:
            self.interrupted = time.monotonic()
            self.child.send_signal(signal.SIGINT)

    def close_port(self) -> None:
        """Nobody has the port open any more: forget what nobody will read."""
        self.opened = False
        self.to_pc.clear()
        with contextlib.suppress(OSError):
            fd = os.open(self.device, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
            termios.tcflush(fd, termios.TCIFLUSH)
            os.close(fd)

    # -- the loop

    def run(self) -> None:
        """Serve until standard input is closed. Raises BoardError when MicroPython does not run."""
        self.start("friendly")
        poll = select.poll()
        poll.register(0, select.POLLIN)
        poll.register(self.sigchld, select.POLLIN)
        poll.register(self.inner, 0)
        registered = False
        while True:
            if not self.opened:
                self.to_pc.clear()
            if registered != self.opened:
                registered = self.opened
                if registered:
                    poll.register(self.port, 0)
                else:
                    poll.unregister(self.port)
            poll.modify(
                self.inner,
                (select.POLLIN if len(self.to_pc) < _BUFFER else 0)
                | (select.POLLOUT if self.to_board else 0),
            )
            if registered:
                poll.modify(
                    self.port,
                    (select.POLLIN if len(self.to_board) < _BUFFER else 0)
                    | (select.POLLOUT if self.to_pc else 0),
                )
            events = dict(poll.poll(self.wait_ms()))
            if 0 in events:
                return
            if self.sigchld in events:
                os.read(self.sigchld, 512)
            self.reap()
            self.interrupt()
            inner = events.get(self.inner, 0)
            if inner & select.POLLIN:
                self.drain()
            if inner & select.POLLOUT and self.to_board:
                with contextlib.suppress(BlockingIOError):
                    del self.to_board[: os.write(self.inner, self.to_board)]
            self.serve_port(events.get(self.port, 0))

    def wait_ms(self) -> int | None:
        waits = []
        if not self.opened:
            waits.append(_CLOSED_POLL)
        if self.interrupt_at:
            waits.append(max(0.0, self.interrupt_at - time.monotonic()))
        return int(min(waits) * 1000) + 1 if waits else None

    def serve_port(self, events: int) -> None:
        if not self.opened:
            probe = select.poll()
            probe.register(self.port, select.POLLIN)
            state = dict(probe.poll(0)).get(self.port, 0)
            self.opened = not state & select.POLLHUP
            if state & select.POLLIN:
                events = state
        if events & (select.POLLIN | select.POLLHUP):
            try:
                self.from_pc(os.read(self.port, 4096))
            except BlockingIOError:
                pass
            except OSError:  # EIO: closed, and everything that was sent before is read
                if self.opened:
                    self.close_port()
                return
        if self.to_pc and self.opened and not events & select.POLLHUP:
            with contextlib.suppress(BlockingIOError):
                del self.to_pc[: os.write(self.port, self.to_pc)]


class BoardError(Exception):
    """MicroPython cannot be run; the text is one line for the user."""


def _raw_attributes(fd: int) -> list[Any]:
    tty.setraw(fd)
    return termios.tcgetattr(fd)


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def log(text: str) -> None:
    """A line for the board's log (standard error)."""
    now = time.strftime("%Y-%m-%dT%H:%M:%S")
    print(now, text, file=sys.stderr, flush=True)


def report(message: dict[str, str]) -> None:
    """One JSON line for unix.py: {"device": "/dev/pts/4"} once booted, or {"error": text}."""
    print(json.dumps(message), flush=True)


def main() -> int:
    """Run a board; argv[1] is JSON: command (list), root, state, unique_id, env (dict)."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in the terminal is the parent's business
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    board = Board(**json.loads(sys.argv[1]))
    try:
        board.run()
    except (BoardError, OSError) as error:
        log(str(error))
        with contextlib.suppress(OSError):
            report({"error": str(error)})
        return 1
    finally:
        board.kill()
    return 0


if __name__ == "__main__":
    sys.exit(main())
