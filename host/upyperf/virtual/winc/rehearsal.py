"""The real driver on the model of time, in virtual time: the same figures on every machine, in seconds.

A run over the simulator's socket happens in real time and depends on how busy this machine is. Here chip,
driver and clock share one thread and a clock that only moves when somebody waits or transfers, so that the
model itself can be looked at: what rate would this SPI clock, this signal, this host give?
"""

from __future__ import annotations

import importlib
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .chip import Chip
from .clock import ManualClock
from .config import Config
from .machine import SPI, Pin

MAX_SEND = 1400


@dataclass(frozen=True)
class Outcome:
    """What a rehearsed run came to. Rates in Mbit/s of payload."""

    sent: int
    received: int
    seconds: float
    calls: int
    bus_bytes: int
    datagrams_sent: int
    datagrams_received: int

    @property
    def mbps(self) -> float:
        """Payload that arrived, in Mbit/s."""
        return self.received * 8 / self.seconds / 1e6

    @property
    def loss(self) -> float:
        """Share of the datagrams that did not arrive."""
        return 1 - self.datagrams_received / self.datagrams_sent if self.datagrams_sent else 0.0


@contextmanager
def _driver(firmware: Path, clock: ManualClock) -> Iterator[Any]:
    """A fresh import of the driver that lives on `clock`. Raises ValueError when it is not there."""
    if not (firmware / "winc1500" / "__init__.py").is_file():
        raise ValueError(f"no driver package winc1500 in {firmware}")
    kept = {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] == "winc1500"}
    sys.path.insert(0, str(firmware))
    try:
        compat: Any = importlib.import_module("winc1500.compat")
        compat.ticks_us = lambda: clock.now() // 1000
        compat.ticks_ms = lambda: clock.now() // 1_000_000
        compat.sleep_us = clock.advance_us
        compat.sleep_ms = lambda ms: clock.advance_us(ms * 1000)
        yield importlib.import_module("winc1500")
    finally:
        sys.path.remove(str(firmware))
        for name in [name for name in sys.modules if name.split(".")[0] == "winc1500"]:
            del sys.modules[name]
        sys.modules.update(kept)


class Rehearsal:
    """One module, one driver, one peer on one virtual clock."""

    def __init__(self, config: Config, driver: Any, clock: ManualClock) -> None:
        config.spi.pause_us = 0
        self.clock = clock
        self.chip = Chip(config, clock)
        self.spi = SPI(self.chip)
        pins = {name: Pin(self.chip, name) for name in ("cs", "rst", "en", "irq")}
        self.module = driver.setup(self.spi, **pins)
        self.network = importlib.import_module("winc1500.network")
        self.socket = importlib.import_module("winc1500.socket")
        ap = config.aps[0]
        self.network.WINC().connect(ap.ssid.decode(), ap.key.decode() or None)

    def close(self) -> None:
        """End of the run."""
        self.chip.close()

    def tcp_send(self, seconds: float, block: int = 1400) -> Outcome:
        """Send for so long in blocks of `block` bytes."""
        with socket.create_server(("127.0.0.1", 0)) as listener:
            sock = self.socket.socket()
            sock.connect(listener.getsockname())
            peer = listener.accept()[0]
        peer.setblocking(False)
        buffer = bytearray(block)
        sent = received = 0
        start, calls, bus = self._mark()
        while self.clock.now() < start + seconds * 1e9:
            sent += sock.send(buffer)
            received += _drain(peer)
        outcome = self._outcome(sent, received, start, calls, bus, 0, 0)
        peer.close()
        return outcome

    def udp_send(self, seconds: float, mbps: float, size: int = MAX_SEND) -> Outcome:
        """Send datagrams at this rate (Mbit/s of payload), as far as the bus can."""
        peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        peer.bind(("127.0.0.1", 0))
        peer.setblocking(False)
        sock = self.socket.socket(self.socket.AF_INET, self.socket.SOCK_DGRAM)
        sock.bind(("0.0.0.0", 0))
        sock.connect(peer.getsockname())
        buffer = bytearray(size)
        gap = int(size * 8e3 / mbps)
        start, calls, bus = self._mark()
        count = received = arrived = 0
        due = start
        while self.clock.now() < start + seconds * 1e9:
            self.clock.sleep_until(due)
            due += gap
            sock.send(buffer)
            count += 1
            while n := _drain(peer, once=True):
                received += n
                arrived += 1
        end = self.clock.now()
        for _ in range(100):
            self.clock.advance_us(1000)
            self.chip.poll()
            while n := _drain(peer, once=True):
                received += n
                arrived += 1
        peer.close()
        return self._outcome(count * size, received, start, calls, bus, count, arrived, end)

    def _mark(self) -> tuple[int, int, int]:
        return self.clock.now(), self.spi.calls, self.spi.bytes

    def _outcome(
        self,
        sent: int,
        received: int,
        start: int,
        calls: int,
        bus: int,
        datagrams: int,
        arrived: int,
        end: int | None = None,
    ) -> Outcome:
        seconds = ((end or self.clock.now()) - start) / 1e9
        return Outcome(
            sent, received, seconds, self.spi.calls - calls, self.spi.bytes - bus, datagrams, arrived
        )


def _drain(peer: socket.socket, once: bool = False) -> int:
    total = 0
    while True:
        try:
            got = len(peer.recv(65_536))
        except BlockingIOError:
            return total
        total += got
        if once or not got:
            return total


@contextmanager
def rehearse(firmware: Path, config: Config) -> Iterator[Rehearsal]:
    """A rehearsal with the driver of a firmware folder. Raises ValueError when there is none."""
    clock = ManualClock()
    with _driver(firmware, clock) as driver:
        run = Rehearsal(config, driver, clock)
        try:
            yield run
        finally:
            run.close()
