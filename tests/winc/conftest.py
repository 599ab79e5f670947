"""The driver on MicroPython (unix) and CPython against the chip simulator.

`world` starts a simulator in a thread; `world.board(code)` runs device code against it in a process of
its own, with `nic`, `socket`, `sim` (the stand-in's link) and `HOST` at hand. At the end of a test no rule
of the simulator may have been violated, unless the test says which.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from harness import device
from upyperf.virtual.winc import Chip, Config
from upyperf.virtual.winc.server import Server

ROOT = Path(__file__).resolve().parents[2]
DEVICE_PATH = [str(ROOT / "firmware"), str(ROOT / "boards/winc1510-sim/device")]

PRELUDE = """
import sys, time
import winc_sim, winc1500
import winc_board
from winc1500 import network, socket
from winc1500.errors import WincError
sim = winc_sim.connect()
nic = network.WINC()
HOST = "127.0.0.1"
SSID, KEY = "upyperf", "throughput"
RSSI = sim.control(cmd="get", key="air.rssi")["value"]

def ms():
    return time.monotonic_ns() // 1000000 if hasattr(time, "monotonic_ns") else time.ticks_ms()

def error(f, *args, **kw):
    t0 = ms()
    try:
        f(*args, **kw)
    except OSError as e:
        assert len(e.args) == 2 and "\\n" not in e.args[1], e.args
        return e.args[0], e.args[1], ms() - t0
    raise AssertionError("nothing raised")

def pattern(n, k=0):
    return bytes([(i * 7 + k) & 255 for i in range(n)])
"""


class World:
    """A simulator that serves, and the means to run device code against it."""

    def __init__(self, folder: Path, config: Config) -> None:
        self.chip = Chip(config)
        self.folder = folder
        self.server = Server(self.chip, unix=folder / "winc.sock")
        self.thread = threading.Thread(target=self.server.serve, daemon=True)
        self.thread.start()
        self.allowed: set[int] = set()

    def board(self, code: str, interpreter: str = "micropython", timeout: float = 60, **env: str) -> str:
        """What the code printed; fails the test when it raised or did not end."""
        file = self.folder / "main.py"
        file.write_text(PRELUDE + textwrap.dedent(code))
        program = device.micropython() if interpreter == "micropython" else sys.executable
        result = subprocess.run(
            [program, str(file)], cwd=self.folder, timeout=timeout, text=True, capture_output=True,
            env={
                **os.environ, "WINC_SIM": self.server.address,
                "MICROPYPATH": ":".join([*DEVICE_PATH, ".frozen"]),
                "PYTHONPATH": ":".join(DEVICE_PATH), **env,
            },
        )  # fmt: skip
        text = result.stdout + result.stderr
        assert result.returncode == 0, text
        return text

    def close(self) -> None:
        self.server.stop()
        self.thread.join(10)
        found = [v for v in self.chip.violations if v.rule not in self.allowed]
        self.chip.close()
        assert not found, "\n".join(f"rule {v.rule}, operation {v.op}: {v.text}" for v in found)


@pytest.fixture
def make_world(tmp_path: Path) -> Iterator[Callable[..., World]]:
    """make_world(firmware=..., **{"air.rssi": ...}) -> World; any configuration key of the simulator."""
    worlds: list[World] = []

    def make(firmware: str = "19.6.1", **settings: Any) -> World:
        config = Config(firmware=firmware)
        for key, value in settings.items():
            part: Any = config
            *path, name = key.replace("__", ".").split(".")
            for p in path:
                part = getattr(part, p)
            setattr(part, name, value)
        folder = tmp_path / str(len(worlds))
        folder.mkdir()
        worlds.append(World(folder, config))
        return worlds[-1]

    yield make
    for world in worlds:
        world.close()


@pytest.fixture
def world(make_world: Callable[..., World]) -> World:
    return make_world()


class Echo:
    """TCP and UDP echo on one loopback port."""

    def __init__(self) -> None:
        self.tcp = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.tcp.getsockname()[1]
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", self.port))
        self.received = 0
        for target in (self._accept, self._udp):
            threading.Thread(target=target, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                s, _ = self.tcp.accept()
            except OSError:
                return
            threading.Thread(target=self._stream, args=(s,), daemon=True).start()

    def _stream(self, s: socket.socket) -> None:
        with s:
            try:
                while data := s.recv(65536):
                    self.received += len(data)
                    s.sendall(data)
            except OSError:
                pass

    def _udp(self) -> None:
        while True:
            try:
                data, address = self.udp.recvfrom(65536)
                if data == b"stop":
                    return
                self.udp.sendto(data, address)
            except OSError:
                return

    def close(self) -> None:
        self.tcp.shutdown(socket.SHUT_RDWR)
        self.tcp.close()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.sendto(b"stop", ("127.0.0.1", self.port))
        self.udp.close()


@pytest.fixture
def echo() -> Iterator[Echo]:
    e = Echo()
    yield e
    e.close()
