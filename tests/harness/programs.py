"""Runs the real iperf and iperf3 programs on loopback, each with a lifetime that it cannot outlive."""

from __future__ import annotations

import os
import random
import re
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from peers import Peer

LOOPBACK = "127.0.0.1"
LIFETIME_S = 60


def free_port(kind: socket.SocketKind = socket.SOCK_STREAM) -> int:
    """A port of loopback that nothing listens at just now, for TCP and UDP alike.

    Below the ports that the kernel gives to connections, and each test process has a range of its own:
    nobody takes the port between here and its server's bind.
    """
    process = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
    for _ in range(200):
        port = 10000 + 2000 * (process % 10) + random.randrange(2000)
        try:
            with socket.socket(type=kind) as first:
                first.bind((LOOPBACK, port))
                other = socket.SOCK_DGRAM if kind == socket.SOCK_STREAM else socket.SOCK_STREAM
                with socket.socket(type=other) as second:
                    second.bind((LOOPBACK, port))
        except OSError:
            continue
        return port
    raise OSError("no port that is free for TCP and UDP")


def is_bound(port: int, *, udp: bool) -> bool:
    """Whether some socket listens (TCP) or is bound (UDP) at ``port``; read, not probed: a probe would
    be a test to the server."""
    listening = "07" if udp else "0A"
    for table in ("udp", "udp6") if udp else ("tcp", "tcp6"):
        for line in Path("/proc/net", table).read_text().splitlines()[1:]:
            local, state = line.split()[1], line.split()[3]
            if state == listening and int(local.rpartition(":")[2], 16) == port:
                return True
    return False


@dataclass
class Server:
    """A real server that runs."""

    peer: Peer
    port: int
    process: subprocess.Popen[bytes]
    log: IO[bytes]
    host: str = LOOPBACK

    def output(self) -> str:
        """What it printed so far, errors included."""
        return Path(self.log.name).read_text(errors="replace")

    def wait(self, timeout_s: float = 10) -> str:
        """Wait until it ended by itself (``-1``); returns what it printed."""
        self.process.wait(timeout_s)
        return self.output()

    def stop(self, number: signal.Signals = signal.SIGTERM) -> str:
        """End it; returns what it printed."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(5)
        return self.output()

    def expect(self, pattern: str, timeout_s: float = 10) -> re.Match[str]:
        """Wait until the output has a match (raises AssertionError with the output otherwise)."""
        deadline = time.monotonic() + timeout_s
        while not (found := re.search(pattern, self.output())):
            assert time.monotonic() < deadline, f"{self.peer} never printed {pattern!r}:\n{self.output()}"
            time.sleep(0.05)
        return found


def _bounded(peer: Peer, words: tuple[str, ...], lifetime_s: float) -> list[str]:
    return ["timeout", "--foreground", "-k", "2", str(lifetime_s), str(peer.path), *words]


@contextmanager
def server(peer: Peer, *options: str, udp: bool = False, lifetime_s: float = LIFETIME_S) -> Iterator[Server]:
    """A server of this program at a free port of loopback, ready to be tested against.

    ``options`` beside ``-s`` and ``-p`` are the program's own; ``udp`` adds iPerf 2's ``-u``.
    """
    port = free_port()
    words = ("-s", "-p", str(port), *(["-u"] if udp and peer.program == "iperf" else []), *options)
    with tempfile.NamedTemporaryFile(prefix=f"{peer}-", suffix=".log") as log:
        process = subprocess.Popen(
            _bounded(peer, words, lifetime_s), stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
        )
        running = Server(peer, port, process, log)
        try:
            deadline = time.monotonic() + 10
            while not is_bound(port, udp=udp and peer.program == "iperf"):
                if process.poll() is not None or time.monotonic() > deadline:
                    raise AssertionError(f"{peer} {' '.join(words)} does not listen:\n{running.output()}")
                time.sleep(0.02)
            yield running
        finally:
            running.stop()


def client(
    peer: Peer, port: int, *options: str, lifetime_s: float = LIFETIME_S
) -> subprocess.CompletedProcess[str]:
    """Run a client of this program against loopback until it ends (exit code 124: it had to be ended)."""
    words = ("-c", LOOPBACK, "-p", str(port), *options)
    return subprocess.run(
        _bounded(peer, words, lifetime_s),
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=lifetime_s + 10, check=False,
        env={**os.environ, "LC_ALL": "C"},
    )  # fmt: skip
