"""The SPI port: commands, responses, CRC, data packets, byte by byte (fact sheet 2).

The chip parses a stream. While it still has response bytes to shift out it does not listen, except for the
reset sequence CF FF FF FF; that is what makes a host that reads too little lose its next command.
"""

from __future__ import annotations

import random
from typing import Protocol

from .config import SpiConfig
from .crc import crc7, crc16
from .rules import Book

DMA_WRITE, DMA_READ, REG_WRITE_RAW, REG_READ_RAW = 0xC1, 0xC2, 0xC3, 0xC4
TERMINATE, REPEAT, BLOCK_WRITE, BLOCK_READ = 0xC5, 0xC6, 0xC7, 0xC8
REG_WRITE, REG_READ, RESET = 0xC9, 0xCA, 0xCF

FRAME = {
    DMA_WRITE: 6, DMA_READ: 6, REG_WRITE_RAW: 7, REG_READ_RAW: 4, TERMINATE: 4, REPEAT: 4,
    BLOCK_WRITE: 7, BLOCK_READ: 7, REG_WRITE: 8, REG_READ: 4, RESET: 4,
}  # fmt: skip
NAMES = {
    DMA_WRITE: "DMA write", DMA_READ: "DMA read", REG_WRITE_RAW: "clockless write",
    REG_READ_RAW: "clockless read", TERMINATE: "terminate", REPEAT: "repeat", BLOCK_WRITE: "block write",
    BLOCK_READ: "block read", REG_WRITE: "write", REG_READ: "read", RESET: "SPI reset",
}  # fmt: skip
CLOCKLESS = (REG_WRITE_RAW, REG_READ_RAW)

OK, UNSUPPORTED, UNEXPECTED_DATA, BAD_CRC7, BAD_CRC16, INTERNAL = range(6)
CONFIG_REG = 0xE824
CONFIG_AFTER_RESET = 0x2E
CRC7_BIT, CRC16_BIT = 4, 8
_RESET_FRAME = b"\xcf\xff\xff\xff"


class Inside(Protocol):
    """What lies behind the SPI port."""

    def read_word(self, addr: int) -> int: ...
    def write_word(self, addr: int, value: int) -> bool:
        """False: the chip resets itself over this and never answers."""
        ...

    def read_block(self, addr: int, size: int) -> bytes: ...
    def write_block(self, addr: int, data: bytes) -> None: ...
    def clocked_access(self) -> bool:
        """Whether a command that needs the chip's clocks is answered now."""
        ...

    def spi_was_reset(self) -> None: ...


class SpiPort:
    """One chip's SPI port. feed() is one transfer with CS low."""

    def __init__(self, inside: Inside, book: Book, config: SpiConfig, rng: random.Random) -> None:
        self.inside = inside
        self.book = book
        self.config = config
        self.rng = rng
        self.commands: dict[int, int] = {}
        self.power_up()

    def power_up(self) -> None:
        """State after a hardware reset: CRC on, packets of 1 KiB."""
        self.setting = CONFIG_AFTER_RESET
        self._out = b""
        self._at = 0
        self._crc_tail = 0
        self._told = False
        self._frame = bytearray()
        self._need = 0
        self._last_crc = -1
        self._window = b""
        self._write: _Write | None = None
        self._deaf = False

    @property
    def crc7_on(self) -> bool:
        return bool(self.setting & CRC7_BIT)

    @property
    def crc16_on(self) -> bool:
        return bool(self.setting & CRC16_BIT)

    @property
    def packet(self) -> int:
        """Largest data packet in bytes."""
        return int(256 << min(5, self.setting >> 4 & 7))

    # The stream

    def feed(self, mosi: bytes) -> bytearray:
        """Bytes in, as many bytes out."""
        size = len(mosi)
        miso = bytearray(size)
        i = 0
        while i < size:
            if self._at < len(self._out):
                i = self._shift_out(mosi, miso, i)
            elif self._write is not None:
                i = self._take_data(self._write, mosi, i)
            else:
                i = self._take_command(mosi, i)
        return miso

    def _shift_out(self, mosi: bytes, miso: bytearray, i: int) -> int:
        take = min(len(self._out) - self._at, len(mosi) - i)
        chunk = mosi[i : i + take]
        if chunk.count(0) != take or self._window:
            used = self._talked_over(chunk)
            if used:
                miso[i : i + used] = self._out[self._at : self._at + used]
                self._out, self._at = b"", 0
                self._reset_layer()
                return i + used
        miso[i : i + take] = self._out[self._at : self._at + take]
        self._at += take
        if self._at == len(self._out):
            self._out, self._at = b"", 0
            if self._window and _RESET_FRAME.startswith(self._window):
                self._frame = bytearray(self._window)
                self._need = FRAME[RESET] - len(self._frame) + (1 if self.crc7_on else 0)
            self._window = b""
        return i + take

    def _talked_over(self, chunk: bytes) -> int:
        """The host sends while we answer. Returns how many bytes belong to a reset sequence found, else 0."""
        for k, byte in enumerate(chunk):
            self._window = (
                b"\xcf" if byte == 0xCF else self._window + b"\xff" if byte == 0xFF and self._window else b""
            )
            if self._window == _RESET_FRAME:
                self._window = b""
                return k + 1
            if byte == 0 or self._told:
                continue
            if self._at + k == 0 and byte == self._last_crc:
                self.book.note("a CRC7 byte came while CRC is off")
                continue
            if byte in (0xCF, 0xFF):
                continue
            self._told = True
            left = len(self._out) - self._at - k
            if left <= self._crc_tail:
                self.book.break_rule(
                    3, f"0x{byte:02X} sent while {left} CRC16 bytes of the answer are unread"
                )
            else:
                self.book.break_rule(5, f"0x{byte:02X} sent while {left} bytes of the answer are unread")
        return 0

    def _answer(self, data: bytes, crc_tail: int = 0) -> None:
        self._out += data
        self._crc_tail = crc_tail
        self._told = False
        self._window = b""

    # Commands

    def _take_command(self, mosi: bytes, i: int) -> int:
        if not self._need:
            byte = mosi[i]
            if byte in FRAME:
                self._frame = bytearray((byte,))
                self._need = FRAME[byte] - 1 + (1 if self.crc7_on else 0)
                self.book.op += 1
                self._deaf = False
                return i + 1
            if byte == 0:  # idle: skip the whole run at once
                while i < len(mosi) and mosi[i] == 0:
                    i += 1
                return i
            self._unknown(byte)
            return i + 1
        take = min(self._need, len(mosi) - i)
        self._frame += mosi[i : i + take]
        self._need -= take
        if not self._need:
            frame, self._frame = self._frame, bytearray()
            self._command(frame)
        return i + take

    def _unknown(self, byte: int) -> None:
        if byte == 0xFF or self._deaf:
            return
        if byte == self._last_crc:
            self.book.note("a CRC7 byte came while CRC is off")
            self._last_crc = -1
            return
        if byte & 0xF0 == 0xF0:
            self.book.break_rule(6, f"data header 0x{byte:02X} without a block write")
            self._deaf = True  # its data follow: one report is enough
        elif byte & 0xF0 == 0xC0:
            self.book.op += 1
            self.book.break_rule(6, f"unknown command 0x{byte:02X}")
            self._answer(bytes((byte, UNSUPPORTED)))
        else:
            self.book.break_rule(6, f"0x{byte:02X} is not a command, skipped")
            self._deaf = True

    def _zeros(self, setting: str, most: int) -> bytes:
        return bytes(self.rng.randint(0, most) if setting == "random" else int(setting))

    def _echo(self, command: int, state: int = OK) -> bytes:
        if command in (RESET, TERMINATE, REPEAT):
            return bytes((0, command, state))
        return self._zeros(self.config.echo_zeros, 2) + bytes((command, state))

    def _command(self, frame: bytearray) -> None:
        command = frame[0]
        self.commands[command] = self.commands.get(command, 0) + 1
        crc = crc7(frame[:-1] if self.crc7_on else frame)
        self._last_crc = -1 if self.crc7_on else crc
        if self.crc7_on:
            if frame[-1] != crc:
                text = f"{NAMES[command]} with CRC 0x{frame[-1]:02X} instead of 0x{crc:02X}"
                if command == RESET:
                    self.book.note(text)
                else:
                    self.book.break_rule(2, text)
                self._answer(self._echo(command, BAD_CRC7))
                return
            del frame[-1]
        if command not in CLOCKLESS and command != RESET and not self.inside.clocked_access():
            self._deaf = True
            return
        if command in (REG_READ, REG_READ_RAW):
            self._register_read(command, frame)
        elif command in (REG_WRITE, REG_WRITE_RAW):
            self._register_write(command, frame)
        elif command in (BLOCK_READ, DMA_READ):
            self._block_read(command, frame)
        elif command in (BLOCK_WRITE, DMA_WRITE):
            self._block_write(command, frame)
        elif command == RESET:
            if frame != _RESET_FRAME:
                self.book.break_rule(6, f"SPI reset as {frame.hex(' ')}")
            self._reset_layer()
        else:
            self._answer(self._echo(command))

    def _reset_layer(self) -> None:
        self._frame, self._need, self._write = bytearray(), 0, None
        self._out, self._at = b"", 0
        self.inside.spi_was_reset()
        self._answer(self._echo(RESET))

    def _register_read(self, command: int, frame: bytearray) -> None:
        raw = command == REG_READ_RAW
        if raw:
            if not frame[1] & 0x80:
                self.book.break_rule(6, "clockless read without 0x80 in its address")
            addr = (frame[1] & 0x7F) << 8 | frame[2]
        else:
            addr = int.from_bytes(frame[1:4], "big")
        value = self.setting if addr == CONFIG_REG else self.inside.read_word(addr)
        data = (value & 0xFFFFFFFF).to_bytes(4, "little")
        tail = crc16(data).to_bytes(2, "big") if self.crc16_on and not raw else b""
        filler = self._zeros(self.config.data_zeros, 4)
        self._answer(self._echo(command) + filler + b"\xf3" + data + tail, len(tail))

    def _register_write(self, command: int, frame: bytearray) -> None:
        if command == REG_WRITE_RAW:
            if not frame[1] & 0x80:
                self.book.break_rule(6, "clockless write without 0x80 in its address")
            addr, at = (frame[1] & 0x7F) << 8 | frame[2], 3
        else:
            addr, at = int.from_bytes(frame[1:4], "big"), 4
        value = int.from_bytes(frame[at : at + 4], "big")
        if addr == CONFIG_REG:
            if value > 0xFFFF:
                self.book.break_rule(4, f"0xE824 = 0x{value:08X}: the data went LSB first")
            self.setting = value & 0xFF
        elif not self.inside.write_word(addr, value):
            return
        self._answer(self._echo(command))

    @staticmethod
    def _where(command: int, frame: bytearray) -> tuple[int, int]:
        return int.from_bytes(frame[1:4], "big"), int.from_bytes(frame[4:], "big")

    def _block_read(self, command: int, frame: bytearray) -> None:
        addr, size = self._where(command, frame)
        if size == 0:
            self.book.break_rule(7, f"block read of 0 bytes at 0x{addr:X}")
            self._answer(self._echo(command, INTERNAL))
            return
        out = bytearray(self._echo(command))
        if size == 1:
            self.book.break_rule(7, f"block read of 1 byte at 0x{addr:X}")
            self._answer(bytes(out))
            return
        data = self.inside.read_block(addr, size)
        at, tail = 0, 0
        while at < size:
            part = data[at : at + self.packet]
            last = at + len(part) == size
            order = 3 if last else 1 if at == 0 else 2
            out += self._zeros(self.config.data_zeros, 4)
            out.append(0xF0 | order)
            out += part
            if self.crc16_on:
                out += crc16(part).to_bytes(2, "big")
                tail = 2
            at += len(part)
        self._answer(bytes(out), tail)

    def _block_write(self, command: int, frame: bytearray) -> None:
        addr, size = self._where(command, frame)
        if size == 0:
            self.book.break_rule(7, f"block write of 0 bytes at 0x{addr:X}")
            self._answer(self._echo(command, INTERNAL))
            return
        if size == 1:
            self.book.break_rule(7, f"block write of 1 byte at 0x{addr:X}")
        self._answer(self._echo(command))
        self._write = _Write(addr, size, silent=size == 1)

    # Data of a block write

    def _take_data(self, write: _Write, mosi: bytes, i: int) -> int:
        if write.left == 0:
            return self._take_header(write, mosi, i)
        take = min(write.left, len(mosi) - i)
        write.data += mosi[i : i + take]
        write.left -= take
        if write.left == 0:
            self._end_of_packet(write)
        return i + take

    def _take_header(self, write: _Write, mosi: bytes, i: int) -> int:
        byte = mosi[i]
        if byte & 0xF0 != 0xF0:
            self.book.break_rule(6, f"0x{byte:02X} where a data header of {write.size} bytes was expected")
            self._write = None
            self._deaf = True
            if byte in FRAME:
                return i  # the host gave up and starts again
            self._answer(bytes((0xC3, UNEXPECTED_DATA)))
            return i + 1
        order = byte & 0x0F
        rest = write.size - write.done
        expected = 3 if rest <= self.packet else 1 if write.done == 0 else 2
        part = min(rest, self.packet)
        if order != expected:
            write.error = INTERNAL
            if order == 3:
                self.book.break_rule(
                    8, f"one packet of {rest} bytes, {self.packet} is the limit set in 0xE824"
                )
                part = rest
            else:
                self.book.break_rule(8, f"packet number {order} where {expected} was expected")
        write.order = order
        write.part = part
        write.left = part + (2 if self.crc16_on else 0)
        return i + 1

    def _end_of_packet(self, write: _Write) -> None:
        if self.crc16_on:
            got = int.from_bytes(write.data[-2:], "big")
            del write.data[-2:]
            if got != crc16(write.data[-write.part :]) and not write.error:
                write.error = BAD_CRC16
                self.book.break_rule(2, "wrong CRC16 behind a data packet while CRC is on")
        write.done += write.part
        if write.done >= write.size:
            self._write = None
            if write.silent:
                return
            if not write.error:
                self.inside.write_block(write.addr, bytes(write.data))
        answer = bytes((0xC0 | (write.order & 3), write.error))
        self._answer(answer if self.crc7_on else bytes((self.rng.choice((0x00, 0xFF, 0x5A)),)) + answer)


class _Write:
    """A block write in progress."""

    def __init__(self, addr: int, size: int, silent: bool) -> None:
        self.addr = addr
        self.size = size
        self.silent = silent
        self.data = bytearray()
        self.done = 0
        self.part = 0
        self.left = 0
        self.order = 0
        self.error = OK
