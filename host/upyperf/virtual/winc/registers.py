"""The register file: addresses, who answers for them, and the two windows of RAM (fact sheet 3.1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from .rules import Book

WAKE, HOST_COMM, CLOCK_STATUS, CHIP_COMM = 0x01, 0x0B, 0x0F, 0x10
CHIP_ID, EFUSE, TX_COMMIT, RX_CONTROL, TX_REQUEST, RX_ADDRESS = 0x1000, 0x1014, 0x106C, 0x1070, 0x1078, 0x1084
STATE, GLOBAL_RESET, PIN_MUX, BOOT_CONFIG, RF_REV, IRQ_ENABLE = 0x108C, 0x1400, 0x1408, 0x14A0, 0x13F4, 0x1A00
OLD_WAKE, CPU_CONTROL, OLD_MAC, PMU = 0x1074, 0x1118, 0x149C, 0x1E48
INFO, MAILBOX, NMI_REV, WAIT_FOR_HOST, TX_ADDRESS = 0xC0008, 0xC000C, 0x207AC, 0x207BC, 0x150400

RAM_WINDOWS = ((0x30000, 0x40000), (0xD0000, 0xE0000))

NAMES: dict[int, str] = {
    WAKE: "wake", HOST_COMM: "host comm", CLOCK_STATUS: "clock status", CHIP_COMM: "chip comm",
    CHIP_ID: "chip id", EFUSE: "efuse", TX_COMMIT: "TX commit", RX_CONTROL: "RX control",
    TX_REQUEST: "TX request", RX_ADDRESS: "RX address", STATE: "NMI state", GLOBAL_RESET: "global reset",
    PIN_MUX: "pin mux 0", BOOT_CONFIG: "boot configuration", RF_REV: "RF revision",
    IRQ_ENABLE: "interrupt enable", OLD_WAKE: "old wake", CPU_CONTROL: "CPU control",
    OLD_MAC: "GP0", PMU: "PMU", INFO: "info pointer", MAILBOX: "boot ROM mailbox", NMI_REV: "NMI rev",
    WAIT_FOR_HOST: "wait for host", TX_ADDRESS: "TX buffer address", 0xE824: "SPI configuration",
    0x1048: "ATE version", 0x1410: "pin mux of the flash", 0x1088: "HIF reserved",
    0x141C: "clock source", 0x1428: "PLL update",
    0x142C: "GPIO pull-ups", 0x20100: "GPIO out", 0x20104: "GPIO in", 0x20108: "GPIO direction",
    0x20300: "ROM interrupt mask",
}  # fmt: skip

_PLAIN = {
    0x1048: 0, 0x1088: 0, 0x1410: 0x111, 0x141C: 0, 0x1428: 0, 0x142C: 0, PMU: 0xB78469CE,
    0x20100: 0, 0x20104: 0,
    0x20108: 0, 0x20300: 0, OLD_WAKE: 0, CPU_CONTROL: 0, OLD_MAC: 0, NMI_REV: 0, CHIP_COMM: 0,
    0x0E: 0, 0x13: 0,
}  # fmt: skip
_FLASH = range(0x10200, 0x10300)
_FLASH_DONE = (
    0x10218  # a vendor driver sends the flash to sleep at the end and waits here for a 1, without limit
)


class Memory(Protocol):
    """Whoever answers for the RAM windows."""

    def read(self, addr: int, size: int) -> bytes: ...
    def write(self, addr: int, data: bytes) -> None: ...


def in_ram(addr: int, size: int = 1) -> bool:
    """Whether all of these bytes lie in one RAM window."""
    return any(low <= addr and addr + size <= high for low, high in RAM_WINDOWS)


class Registers:
    """Words by address. Parts of the chip hang their functions into on_read and on_write."""

    def __init__(self, book: Book, strict_addresses: bool = True) -> None:
        self.book = book
        self.strict_addresses = strict_addresses
        self.memory: Memory | None = None
        self.on_read: dict[int, Callable[[], int]] = {}
        self.on_write: dict[int, Callable[[int], bool | None]] = {}
        self.plain: dict[int, int] = {}
        self.power_up()

    def power_up(self) -> None:
        """Values after a hardware reset."""
        self.plain = dict(_PLAIN)

    def _unmapped(self, what: str, addr: int) -> None:
        text = f"{what} of unmapped address 0x{addr:X}"
        if self.strict_addresses:
            self.book.break_rule(9, text)
        else:
            self.book.note(text)

    def read(self, addr: int) -> int:
        """A word; 0 from an address that nothing answers for (rule 9)."""
        if addr in self.on_read:
            return self.on_read[addr]()
        if addr in self.plain:
            return self.plain[addr]
        if addr == _FLASH_DONE:
            return 1
        if in_ram(addr, 4) and self.memory is not None:
            return int.from_bytes(self.memory.read(addr, 4), "little")
        if addr not in _FLASH:
            self._unmapped("read", addr)
        return 0

    def write(self, addr: int, value: int) -> bool:
        """Write a word. False when the chip does not answer (global reset)."""
        if addr in self.on_write:
            return self.on_write[addr](value) is not False
        if addr in self.plain:
            self.plain[addr] = value
        elif in_ram(addr, 4) and self.memory is not None:
            self.memory.write(addr, value.to_bytes(4, "little"))
        elif addr not in _FLASH:
            self._unmapped("write", addr)
        return True

    def read_block(self, addr: int, size: int) -> bytes:
        """Bytes from RAM; zeros from elsewhere (rule 9)."""
        if self.memory is not None and in_ram(addr, size):
            return self.memory.read(addr, size)
        self._unmapped(f"block read of {size} bytes", addr)
        return bytes(size)

    def write_block(self, addr: int, data: bytes) -> None:
        """Bytes to RAM; lost elsewhere (rules 9, 13, 16)."""
        if self.memory is not None and (in_ram(addr, len(data)) or addr < 0x1000):
            self.memory.write(addr, data)
            return
        self._unmapped(f"block write of {len(data)} bytes", addr)


def swapped(value: int) -> int:
    """The word with its bytes in the other order, to recognise a wrong byte order."""
    return int.from_bytes(value.to_bytes(4, "little"), "big")
