"""What one 1400-byte packet costs our driver on the SPI bus, measured on the simulator.

Send: the message and its reply. Receive: the event with the data and the next request. Grants and events are
there at the first poll, so this is the driver's own cost, without waiting. Counted is every byte clocked and
every SPI call, after a warm-up in which the driver may learn the chip's fillers.
"""

from __future__ import annotations

import importlib
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .chip import Chip
from .config import AccessPoint, Config
from .machine import SPI, Pin

PAYLOAD = 1400
CALL_LIMIT = 16
# Echo zeros, data zeros, limit in bus bytes per payload byte. Random fillers cannot be learnt: no limit.
FILLERS: dict[str, tuple[str, str, float | None]] = {
    "none": ("0", "0", 1.14),
    "worst": ("2", "4", 1.17),
    "random": ("random", "random", None),
}


@dataclass(frozen=True)
class Cost:
    """Mean cost of one packet."""

    direction: str
    filler: str
    calls: float
    calls_max: int
    bytes: float
    limit: float | None

    @property
    def ratio(self) -> float:
        """Bus bytes per payload byte."""
        return self.bytes / PAYLOAD

    @property
    def ok(self) -> bool | None:
        """Within the limits of 16 calls and of `limit` bus bytes per payload byte; None without limits."""
        if self.limit is None:
            return None
        return self.calls <= CALL_LIMIT and self.ratio <= self.limit

    def to_dict(self) -> dict[str, Any]:
        """For --json."""
        return {
            "simulated": True,
            "direction": self.direction,
            "filler": self.filler,
            "calls": round(self.calls, 2),
            "calls_max": self.calls_max,
            "calls_limit": None if self.limit is None else CALL_LIMIT,
            "bus_bytes": round(self.bytes, 1),
            "payload_bytes": PAYLOAD,
            "ratio": round(self.ratio, 4),
            "ratio_limit": self.limit,
            "ok": self.ok,
        }


@contextmanager
def driver_at(firmware: Path) -> Iterator[Any]:
    """The package winc1500 out of a firmware folder. Raises ValueError when it is not there."""
    if not (firmware / "winc1500" / "__init__.py").is_file():
        raise ValueError(f"no driver package winc1500 in {firmware}")
    sys.path.insert(0, str(firmware))
    try:
        yield importlib.import_module("winc1500")
    finally:
        sys.path.remove(str(firmware))


def _until(chip: Chip, condition: Callable[[], Any], what: str) -> None:
    for _ in range(20_000):
        chip.poll()
        if condition():
            return
    raise RuntimeError(f"the simulator did not get as far as: {what}")


class _Bench:
    """One booted module with one TCP connection to this process."""

    def __init__(self, driver: Any, filler: str, firmware: str) -> None:
        config = Config(firmware=firmware, strict=True, seed=1, aps=[AccessPoint(key=b"", security=1)])
        self.driver = driver
        config.spi.echo_zeros, config.spi.data_zeros, _ = FILLERS[filler]
        self.chip = Chip(config)
        self.spi = SPI(self.chip)
        pins = {name: Pin(self.chip, name) for name in ("cs", "rst", "en", "irq")}
        driver.setup(self.spi, **pins)
        network, sockets = (importlib.import_module(f"winc1500.{name}") for name in ("network", "socket"))
        network.WINC().connect(config.aps[0].ssid.decode())
        self.stack = driver.module().stack
        self.socket = sockets.socket()
        self.socket.settimeout(5)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.socket.connect(listener.getsockname())
            listener.settimeout(5)
            self.peer = listener.accept()[0]
        self.peer.settimeout(5)
        self.socket.settimeout(0)
        for _ in range(10):
            self.stack.service()

    def close(self) -> None:
        self.peer.close()
        self.driver.setup(None)
        self.chip.close()

    def send(self, buffer: bytearray) -> None:
        """One packet and its reply."""
        if self.socket.send(buffer) != len(buffer):
            raise RuntimeError("the driver did not take the whole packet")
        for _ in range(100):
            if not self.socket._o.out:
                return
            self.stack.service()
        raise RuntimeError("the driver did not take the reply to its send")

    def prepare_send(self) -> None:
        """Nothing is to be made ready."""
        while True:
            self.peer.setblocking(False)
            try:
                if not self.peer.recv(1 << 20):
                    return
            except BlockingIOError:
                return

    def prepare_receive(self) -> None:
        """A packet is on offer in the chip."""
        self.peer.setblocking(True)
        self.peer.sendall(bytes(PAYLOAD))
        _until(self.chip, lambda: self.chip.hif.message_outstanding, "a received packet on offer")

    def receive(self, buffer: bytearray) -> None:
        """Read it; the driver asks for the next one."""
        if self.socket.readinto(buffer) != PAYLOAD:
            raise RuntimeError("the driver did not deliver the whole packet")

    def measure(self, direction: str, filler: str, packets: int, warm_up: int) -> Cost:
        """Mean over `packets`."""
        buffer = bytearray(PAYLOAD)
        prepare = self.prepare_send if direction == "send" else self.prepare_receive
        step = self.send if direction == "send" else self.receive
        calls, total, most = 0, 0, 0
        for i in range(warm_up + packets):
            prepare()
            calls_before, bytes_before = self.spi.calls, self.spi.bytes
            step(buffer)
            if i >= warm_up:
                used = self.spi.calls - calls_before
                calls += used
                most = max(most, used)
                total += self.spi.bytes - bytes_before
        return Cost(direction, filler, calls / packets, most, total / packets, FILLERS[filler][2])


def measure(
    firmware_dir: Path, *, firmware: str = "19.7.7", packets: int = 200, warm_up: int = 60
) -> list[Cost]:
    """Both directions with every kind of filler.

    Raises ValueError when there is no driver in `firmware_dir`, RuntimeError when it does not get through.
    """
    out = []
    with driver_at(firmware_dir) as driver:
        for filler in FILLERS:
            for direction in ("send", "receive"):
                bench = _Bench(driver, filler, firmware)
                try:
                    out.append(bench.measure(direction, filler, packets, warm_up))
                finally:
                    bench.close()
    return out
