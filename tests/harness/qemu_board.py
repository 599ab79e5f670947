"""Boards on QEMU for tests: built once, run in a network namespace that has only a loopback.

QEMU's user network forwards unknown addresses to the real network, so tests keep it in a namespace of
their own where the system lets them (root). Without root they run as they are: they talk to 10.0.2.2 alone.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import random
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

from upyperf import link, virtual

_CLONE_NEWNET = 0x40000000
HOST = "10.0.2.2"


@contextlib.contextmanager
def loopback_namespace() -> Iterator[None]:
    """Everything that this thread starts inside sees only a loopback (as root; else: nothing changes)."""
    if os.geteuid() != 0:
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/thread-self/ns/net") as home:
        if libc.unshare(_CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "unshare")
        try:
            subprocess.run(["ip", "link", "set", "lo", "up"], check=True, timeout=10)
            yield
        finally:
            if libc.setns(home.fileno(), 0) != 0:
                raise OSError(ctypes.get_errno(), "setns")


class Board:
    """A running board and a line to it."""

    def __init__(self, elf: Path, **options: object) -> None:
        self.machine = virtual.start("qemu", "qemu-an386", {"firmware": str(elf), **options})
        self.link = link.connect(self.machine.device, baud=115200, timeout=20.0, log=None)

    def exec(self, code: str, timeout: float = 30.0) -> str:
        """Run code on the board, return what it prints."""
        return self.link.exec(code, timeout)

    def eval(self, expression: str, timeout: float = 30.0) -> object:
        """Evaluate an expression on the board; the value must be a literal."""
        import ast

        return ast.literal_eval(
            self.link.exec(f"print(repr({expression}))", timeout).strip().splitlines()[-1]
        )

    def reconnect(self) -> None:
        """A new line to the same board, e.g. after a reset from the outside."""
        with contextlib.suppress(Exception):
            self.link.close()
        self.link = link.connect(self.machine.device, baud=115200, timeout=20.0, log=None)

    def network(self) -> None:
        """Bring the network up, with what the tests use imported."""
        self.exec(NETWORK, 40)

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self.link.close()
        self.machine.close()


NETWORK = """
import network, time, gc, socket, hashlib, os, lwipstats, netconn
from netconn import Netconn, Netbuf, NETCONN_TCP, NETCONN_UDP, NETCONN_COPY, NETCONN_NOCOPY, NETCONN_MORE
nic = network.LAN()
nic.active(True)
for _ in range(2000):
    if nic.isconnected():
        break
    time.sleep_ms(10)
else:
    raise OSError('no address')
"""


class HashPeer:
    """TCP ends on the loopback that hash what they get or give.

    sink: reads until the end, keeps (bytes, SHA-256); source: gives `source_bytes` pseudo-random bytes.
    """

    def __init__(self) -> None:
        self.got: list[tuple[int, str]] = []
        self.arrived = threading.Condition()
        self.source_bytes = 1 << 20
        self.hold = threading.Event()  # when set, the sink does not read
        self.connections: list[socket.socket] = []
        self._listeners: list[socket.socket] = []
        self.sink = self._serve(self._sink)
        self.source = self._serve(self._source)
        self.echo = self._serve(self._echo)

    def _serve(self, handler: object) -> int:
        listener = socket.create_server(("127.0.0.1", 0))
        self._listeners.append(listener)

        def guarded(connection: socket.socket) -> None:
            with contextlib.suppress(OSError), connection:
                handler(connection)  # type: ignore[operator]

        def loop() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    self.connections.append(connection)
                    threading.Thread(target=guarded, args=(connection,), daemon=True).start()

        threading.Thread(target=loop, daemon=True).start()
        return int(listener.getsockname()[1])

    def _sink(self, connection: socket.socket) -> None:
        total, digest = 0, hashlib.sha256()
        try:
            while True:
                if self.hold.is_set():
                    threading.Event().wait(0.02)
                    continue
                data = connection.recv(65536)
                if not data:
                    break
                total += len(data)
                digest.update(data)
        finally:
            with self.arrived:
                self.got.append((total, digest.hexdigest()))
                self.arrived.notify_all()

    def _source(self, connection: socket.socket) -> None:
        data = pseudo_random(self.source_bytes)
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        connection.settimeout(60)
        connection.recv(1)

    @staticmethod
    def _echo(connection: socket.socket) -> None:
        while data := connection.recv(65536):
            connection.sendall(data)

    def wait(self, timeout: float = 60.0) -> tuple[int, str]:
        """The (bytes, SHA-256) of the next connection that ended at the sink."""
        with self.arrived:
            assert self.arrived.wait_for(lambda: self.got, timeout), "nothing ended at the sink"
            return self.got.pop(0)

    def close(self) -> None:
        for end in (*self._listeners, *self.connections):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


def pseudo_random(n: int) -> bytes:
    """The source's bytes: the same in every call."""
    return random.Random(7).randbytes(n)
