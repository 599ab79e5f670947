"""`machine.SPI` and `machine.Pin` over a Chip in the same process, for drivers under CPython."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .chip import Chip


class SPI:
    """MicroPython's SPI methods. The baud rate reaches the model of time."""

    MSB = 0
    LSB = 1

    def __init__(self, chip: Chip, baudrate: int | None = None, **settings: int) -> None:
        self.chip = chip
        self.calls = 0
        self.bytes = 0
        if baudrate is not None or settings:
            self.init(baudrate or chip.pacer.clock_hz, **settings)

    def init(
        self,
        baudrate: int = 1_000_000,
        *,
        polarity: int = 0,
        phase: int = 0,
        bits: int = 8,
        firstbit: int = 0,
        **pins: Any,
    ) -> None:
        """Set the bus. Pins are accepted and ignored."""
        self.chip.spi_init(baudrate, polarity, phase, bits, firstbit)

    def deinit(self) -> None:
        """Nothing to switch off."""

    def _transfer(self, mosi: bytes | bytearray | memoryview) -> bytes:
        self.calls += 1
        self.bytes += len(mosi)
        return self.chip.transfer(mosi)

    def write(self, buf: bytes | bytearray | memoryview) -> None:
        """Send, throw away what comes back."""
        self._transfer(buf)

    def read(self, nbytes: int, write: int = 0) -> bytes:
        """Receive while sending one value."""
        return self._transfer(bytes((write,)) * nbytes)

    def readinto(self, buf: bytearray | memoryview, write: int = 0) -> None:
        """Receive into a buffer while sending one value."""
        buf[:] = self._transfer(bytes((write,)) * len(buf))

    def write_readinto(
        self, write_buf: bytes | bytearray | memoryview, read_buf: bytearray | memoryview
    ) -> None:
        """Full duplex. Raises ValueError when the lengths differ, as MicroPython does."""
        if len(write_buf) != len(read_buf):
            raise ValueError("buffers must be the same length")
        read_buf[:] = self._transfer(write_buf)


class Pin:
    """MicroPython's Pin over one of "cs", "en", "rst", "wake", "irq"."""

    IN, OUT, PULL_UP, PULL_DOWN, IRQ_FALLING, IRQ_RISING = 0, 1, 1, 2, 2, 1

    def __init__(
        self, chip: Chip, name: str, mode: int = 0, pull: int = -1, *, value: int | None = None
    ) -> None:
        self.chip = chip
        self.name = name
        self._handler: Callable[[Pin], None] | None = None
        self.init(mode, pull, value=value)

    def init(self, mode: int = 0, pull: int = -1, *, value: int | None = None, **other: Any) -> None:
        """Set mode and level."""
        if value is not None:
            self.value(value)

    def value(self, level: int | None = None) -> int | None:
        """Read the level, or drive it."""
        if level is None:
            return self.chip.irqn if self.name == "irq" else self.chip.power.levels[self.name]
        self.chip.set_pin(self.name, level)
        return None

    __call__ = value

    def on(self) -> None:
        """Drive high."""
        self.value(1)

    def off(self) -> None:
        """Drive low."""
        self.value(0)

    high, low = on, off

    def irq(self, handler: Callable[[Pin], None] | None = None, trigger: int = 2, hard: bool = False) -> Pin:
        """Call handler(pin) when IRQN falls; it happens inside whatever call lets the chip go on."""
        if self._handler is None and handler is not None:
            self.chip.edge_listeners.append(self._edge)
        self._handler = handler
        return self

    def _edge(self) -> None:
        if self._handler is not None:
            self._handler(self)
