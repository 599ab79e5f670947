"""SPI commands back into what they were for: boot steps, messages to the chip and events from it."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from . import ops, registers
from .boot import FIRMWARE_READY, ROM_READY, START
from .decode_spi import BLOCKS, READS, Command, SpiDecoder
from .describe import describe
from .spi import BLOCK_READ, DMA_READ, REG_READ, REG_READ_RAW, REG_WRITE, REG_WRITE_RAW, RESET
from .trace import PinChange, Transfer

_R = registers
_HANDSHAKE = {ROM_READY: "boot ROM ready", START: "start firmware", FIRMWARE_READY: "firmware ready"}


@dataclass(slots=True)
class Entry:
    """One line of a decoded trace. level: "spi", "hif", "boot", "pin" or "problem"."""

    time: float
    level: str
    text: str
    wire_bytes: int = 0


@dataclass
class Summary:
    """Figures over a whole trace."""

    transfers: int = 0
    bytes: int = 0
    commands: dict[str, int] = field(default_factory=dict)
    messages: dict[str, int] = field(default_factory=dict)
    events: dict[str, int] = field(default_factory=dict)
    problems: int = 0
    stray_bytes: int = 0
    no_buffer: int = 0
    empty_polls: int = 0
    start: float = 0.0
    end: float = 0.0
    longest_gap: float = 0.0

    def to_dict(self) -> dict[str, object]:
        """For --json."""
        return {
            "transfers": self.transfers,
            "bytes": self.bytes,
            "seconds": round(self.end - self.start, 6),
            "commands": self.commands,
            "messages": self.messages,
            "events": self.events,
            "problems": self.problems,
            "stray_bytes": self.stray_bytes,
            "no_buffer": self.no_buffer,
            "empty_polls": self.empty_polls,
            "longest_gap_s": round(self.longest_gap, 6),
        }


class Decoder:
    """A whole trace: give it transfers, take entries, then look at `summary`."""

    def __init__(self, spi_level: bool = False) -> None:
        self.spi = SpiDecoder()
        self.spi_level = spi_level
        self.summary = Summary()
        self._descriptor = 0
        self._booted = False
        self._request_at = 0.0
        self._buffer = 0
        self._written: dict[int, bytes] = {}
        self._event_size = 0
        self._event_addr = 0
        self._event: dict[int, bytes] = {}
        self._wire = 0
        self._last = 0.0

    def feed(self, item: Transfer | PinChange) -> Iterator[Entry]:
        """Entries that this transfer completes."""
        if isinstance(item, PinChange):
            yield Entry(item.time, "pin", f"{item.name.upper()} = {item.level}")
            return
        summary = self.summary
        if not summary.transfers:
            summary.start = self._last = item.time
        summary.transfers += 1
        summary.bytes += len(item.mosi)
        summary.longest_gap = max(summary.longest_gap, item.time - self._last)
        summary.end = self._last = item.time
        for command in self.spi.feed(item.time, item.mosi, item.miso):
            yield from self._command(command)

    def finish(self) -> Iterator[Entry]:
        """What the end of the trace cut short."""
        for command in self.spi.finish():
            yield from self._command(command)
        self.summary.stray_bytes = self.spi.stray

    def _command(self, command: Command) -> Iterator[Entry]:
        summary = self.summary
        summary.commands[command.name] = summary.commands.get(command.name, 0) + 1
        self._wire += command.wire_bytes
        if self.spi_level:
            yield Entry(command.time, "spi", spi_text(command), command.wire_bytes)
        if command.problem and not _unanswered_by_design(command):
            summary.problems += 1
            yield Entry(command.time, "problem", f"{spi_text(command)}")
            return
        if command.code in (REG_WRITE, REG_WRITE_RAW):
            yield from self._register_write(command)
        elif command.code in (REG_READ, REG_READ_RAW):
            yield from self._register_read(command)
        elif command.code in BLOCKS:
            self._written[command.addr] = command.data
        elif command.code in (BLOCK_READ, DMA_READ):
            self._event[command.addr] = command.data
        elif command.code == RESET:
            yield Entry(command.time, "boot", "SPI layer reset")

    def _register_write(self, command: Command) -> Iterator[Entry]:
        addr, value, time = command.addr, command.value, command.time
        if addr == _R.STATE and not self._booted and not _is_descriptor(value):
            if value == 0:
                self._booted = True
                yield Entry(time, "boot", "firmware taken over (0x108C = 0)")
            else:
                low, high = value & 0xFFFF, value >> 16
                yield Entry(time, "boot", f"version word: driver {_version(low)}, at least {_version(high)}")
        elif addr == _R.STATE:
            self._booted = True  # or the trace begins after the boot
            self._descriptor = value
            self._request_at = time
            self._written.clear()
        elif addr == _R.TX_COMMIT:
            yield from self._message(command)
        elif addr == _R.RX_CONTROL and value & 2:
            yield from self._event_done(command)
        elif addr == _R.BOOT_CONFIG:
            yield Entry(time, "boot", f"configuration 0x{value:X}")
        elif addr == _R.MAILBOX and value == START:
            yield Entry(time, "boot", "start firmware")
        elif addr == _R.GLOBAL_RESET and value == 0:
            self._booted = False
            self.spi.crc, self.spi.packet = True, 1024
            yield Entry(time, "boot", "global reset")
        elif addr == 0xE824:
            crc = "on" if value & 4 else "off"
            yield Entry(time, "boot", f"SPI configuration 0x{value:02X}: CRC {crc}")
        elif addr == _R.WAKE:
            yield Entry(time, "boot", "wake request" if value & 2 else "sleep allowed")

    def _register_read(self, command: Command) -> Iterator[Entry]:
        addr, value, time = command.addr, command.value, command.time
        if addr == _R.CHIP_ID:
            yield Entry(time, "boot", f"chip id 0x{value:08X}")
        elif addr in (_R.MAILBOX, _R.STATE) and value in _HANDSHAKE:
            yield Entry(time, "boot", _HANDSHAKE[value])
        elif addr == _R.TX_ADDRESS:
            self._buffer = value
            if value == 0:
                self.summary.no_buffer += 1
                gid, op = self._descriptor & 0xFF, self._descriptor >> 8 & 0x7F
                yield Entry(time, "hif", f"no buffer for {ops.name(gid, op)}")
        elif addr == _R.RX_CONTROL:
            if value & 1:
                self._event_size = value >> 2 & 0xFFF
                self._event.clear()
            elif not self._event_size:
                self.summary.empty_polls += 1
        elif addr == _R.RX_ADDRESS:
            self._event_addr = value

    def _message(self, command: Command) -> Iterator[Entry]:
        addr, size = command.value >> 2, self._descriptor >> 16
        raw = _assemble(self._written, addr, size)
        gid, op = self._descriptor & 0xFF, self._descriptor >> 8 & 0x7F
        if len(raw) < size or size < ops.HEADER:
            self.summary.problems += 1
            text = (
                f"{ops.name(gid, op)}: committed at 0x{addr:X} with {len(raw)} of {size} bytes written there"
            )
            yield Entry(command.time, "problem", text)
            return
        name = ops.name(gid, op)
        self.summary.messages[name] = self.summary.messages.get(name, 0) + 1
        wire, self._wire = self._wire, 0
        yield Entry(self._request_at, "hif", "-> " + describe(gid, op, raw[ops.HEADER :], True), wire)

    def _event_done(self, command: Command) -> Iterator[Entry]:
        size, self._event_size = self._event_size, 0
        if not size:
            return
        raw = _assemble(self._event, self._event_addr, size)
        if len(raw) < 4:
            self.summary.problems += 1
            yield Entry(command.time, "problem", f"event of {size} bytes was given back unread")
            return
        gid, op, length = struct.unpack_from("<BBH", raw)
        name = ops.name(gid, op)
        self.summary.events[name] = self.summary.events.get(name, 0) + 1
        wire, self._wire = self._wire, 0
        yield Entry(command.time, "hif", "<- " + describe(gid, op, raw[ops.HEADER : length], False), wire)


def _is_descriptor(value: int) -> bool:
    """Whether 0x108C holds a message's group, opcode and length, and not a version word."""
    return value & 0xFF in ops.GROUPS and ops.HEADER <= value >> 16 <= ops.MAX_MESSAGE


def _version(half: int) -> str:
    return f"{half >> 8}.{half >> 4 & 15}.{half & 15}"


def _unanswered_by_design(command: Command) -> bool:
    return command.code == REG_WRITE and command.addr == registers.GLOBAL_RESET and command.state is None


def _assemble(parts: dict[int, bytes], addr: int, size: int) -> bytes:
    """The bytes at addr as far as they are known; holes read as zeros, the end is cut where nothing is."""
    out = bytearray(size)
    end = 0
    for start, data in parts.items():
        at = start - addr
        if at < 0 or at >= size:
            continue
        data = data[: size - at]
        out[at : at + len(data)] = data
        end = max(end, at + len(data))
    return bytes(out[:end])


def spi_text(command: Command) -> str:
    """One SPI command in words."""
    name = registers.NAMES.get(command.addr, "")
    where = f"0x{command.addr:X}" + (f" ({name})" if name else "")
    if command.code in (REG_READ, REG_READ_RAW):
        text = f"{command.name} {where}" + (f" = 0x{command.value:08X}" if command.data else "")
    elif command.code in (REG_WRITE, REG_WRITE_RAW):
        text = f"{command.name} {where} = 0x{command.value:08X}"
    elif command.code in (*READS, *BLOCKS):
        text = f"{command.name} {command.size} bytes at {where}"
    else:
        text = command.name
    return f"{text}: {command.problem}" if command.problem else text


def decode(items: Iterable[Transfer | PinChange], spi_level: bool = False) -> tuple[Iterator[Entry], Summary]:
    """Entries of a whole trace, lazily, and its summary, which is right once the entries are used up."""
    decoder = Decoder(spi_level)

    def entries() -> Iterator[Entry]:
        for item in items:
            yield from decoder.feed(item)
        yield from decoder.finish()

    return entries(), decoder.summary
