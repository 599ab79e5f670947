"""MOSI and MISO bytes back into SPI commands, by listening only (fact sheet 2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .crc import crc7
from .spi import (
    BLOCK_READ,
    BLOCK_WRITE,
    CLOCKLESS,
    CONFIG_REG,
    DMA_READ,
    DMA_WRITE,
    FRAME,
    NAMES,
    REG_READ,
    REG_READ_RAW,
    REG_WRITE,
    REG_WRITE_RAW,
    RESET,
)

READS = (REG_READ, REG_READ_RAW, BLOCK_READ, DMA_READ)
WRITES = (REG_WRITE, REG_WRITE_RAW)
BLOCKS = (BLOCK_WRITE, DMA_WRITE)
STATES = {
    1: "command not supported", 2: "unexpected data", 3: "CRC7 error", 4: "CRC16 error", 5: "internal error",
}  # fmt: skip


@dataclass(slots=True)
class Command:
    """One SPI command as seen on the wire."""

    time: float
    code: int
    frame: bytes
    addr: int = 0
    size: int = 0
    value: int = 0
    data: bytes = b""
    state: int | None = None  # None: the chip never answered
    problem: str = ""
    wire_bytes: int = 0

    @property
    def name(self) -> str:
        return NAMES.get(self.code, f"0x{self.code:02X}")

    @property
    def ok(self) -> bool:
        return self.state == 0 and not self.problem


class SpiDecoder:
    """Feed it transfers in order; it hands out the commands that are complete."""

    def __init__(self) -> None:
        self.crc: bool | None = None  # None: not known yet
        self.packet = 8192
        self.stray = 0
        self.total_bytes = 0
        self._now: Command | None = None
        self._phase = "idle"
        self._frame = bytearray()
        self._need = 0
        self._data = bytearray()
        self._done = 0
        self._waited = 0

    def feed(self, time: float, mosi: bytes, miso: bytes) -> Iterator[Command]:
        """Decode one transfer."""
        i, size = 0, len(mosi)
        self.total_bytes += size
        while i < size:
            before = i
            command = None
            if self._phase == "idle":
                i = self._idle(time, mosi, i)
            elif self._phase == "frame":
                i = self._take_frame(mosi, i)
            elif self._phase == "data in":
                i, command = self._bulk(miso, i)
            elif self._phase == "data out":
                i, command = self._bulk(mosi, i)
            else:
                i, command = self._answer(mosi, miso, i)
            if self._now is not None:
                self._now.wire_bytes += i - before
            if command is not None:
                yield command

    def finish(self) -> Iterator[Command]:
        """The command that the end of the trace cut short, if there is one."""
        if self._now is not None and self._phase not in ("idle",):
            yield self._end("cut short by the end of the trace")

    def _idle(self, time: float, mosi: bytes, i: int) -> int:
        byte = mosi[i]
        if byte in FRAME:
            self._now = Command(time, byte, b"", wire_bytes=0)
            self._frame = bytearray((byte,))
            self._need = FRAME[byte] - 1
            self._phase = "frame"
        elif byte not in (0, 0xFF):
            self.stray += 1
        return i + 1

    def _take_frame(self, mosi: bytes, i: int) -> int:
        take = min(self._need, len(mosi) - i)
        self._frame += mosi[i : i + take]
        self._need -= take
        if not self._need:
            self._parse_frame()
        return i + take

    def _parse_frame(self) -> None:
        command, frame = self._now, bytes(self._frame)
        assert command is not None
        command.frame = frame
        code = command.code
        if code in (REG_READ_RAW, REG_WRITE_RAW):
            command.addr = (frame[1] & 0x7F) << 8 | frame[2]
            command.value = int.from_bytes(frame[3:7], "big") if code == REG_WRITE_RAW else 0
        elif code in (REG_READ, REG_WRITE, *BLOCKS, BLOCK_READ, DMA_READ):
            command.addr = int.from_bytes(frame[1:4], "big")
            rest = int.from_bytes(frame[4:], "big")
            if code == REG_WRITE:
                command.value = rest
            command.size = rest if code not in (REG_READ, REG_WRITE) else 4
        if code == REG_READ_RAW:
            command.size = 4
        self._phase = "crc"
        self._waited = 0

    def _answer(self, mosi: bytes, miso: bytes, i: int) -> tuple[int, Command | None]:
        command = self._now
        assert command is not None
        out, back = mosi[i], miso[i]
        if self._phase == "crc":
            self._phase = "echo"
            crc = crc7(command.frame)
            if self.crc or (out == crc and out != 0):
                if self.crc is None:
                    self.crc = True
                if self.crc is False and back in (command.code,):
                    return i, None
                return i + 1, None
            if self.crc is None and out == 0:
                self.crc = False
            return i, None
        if out in FRAME and self._phase != "header out" and not (self._phase == "echo" and self._waited == 0):
            return i, self._end("no answer before the next command")
        if self._phase == "echo":
            self._waited += 1
            if back == command.code:
                self._phase = "state"
            elif self._waited > 64:
                return i + 1, self._end("no answer")
            return i + 1, None
        if self._phase == "state":
            command.state = back & 0x0F
            if command.state or command.code in (*WRITES, RESET) or command.code not in (*READS, *BLOCKS):
                return i + 1, self._end(STATES.get(command.state, ""))
            self._data, self._done, self._waited = bytearray(), 0, 0
            self._phase = "header in" if command.code in READS else "header out"
            return i + 1, None
        if self._phase in ("header in", "header out"):
            return self._header(command, out if self._phase == "header out" else back, i)
        return self._data_response(command, back, i)

    def _header(self, command: Command, byte: int, i: int) -> tuple[int, Command | None]:
        if byte & 0xF0 == 0xF0:
            part = min(command.size - self._done, self.packet)
            crc16 = 2 if self.crc and command.code not in CLOCKLESS else 0
            self._need = part + crc16
            self._done += part
            self._phase = "data in" if self._phase == "header in" else "data out"
            return i + 1, None
        self._waited += 1
        if self._phase == "header out" and byte in FRAME:
            return i, self._end("no data followed")
        if self._waited > 64:
            return i + 1, self._end("no data")
        return i + 1, None

    def _bulk(self, source: bytes, i: int) -> tuple[int, Command | None]:
        command = self._now
        assert command is not None
        take = min(self._need, len(source) - i)
        self._data += source[i : i + take]
        self._need -= take
        if self._need:
            return i + take, None
        if self.crc and command.code not in CLOCKLESS:
            del self._data[-2:]
        reading = self._phase == "data in"
        self._waited = 0
        if reading and self._done < command.size:
            self._phase = "header in"
            return i + take, None
        if reading:
            command.data = bytes(self._data)
            if command.code in (REG_READ, REG_READ_RAW):
                command.value = int.from_bytes(command.data, "little")
                if command.addr == CONFIG_REG:
                    self._configured(command.value)
            return i + take, self._end()
        self._phase = "response"
        return i + take, None

    def _data_response(self, command: Command, back: int, i: int) -> tuple[int, Command | None]:
        self._waited += 1
        if self._phase == "response":
            if back & 0xFC == 0xC0:
                self._phase = "response state"
            elif self._waited > 8:
                return i + 1, self._end("no answer to the data")
            return i + 1, None
        command.state = back & 0x0F
        if self._done < command.size and not command.state:
            self._phase = "header out"
            return i + 1, None
        command.data = bytes(self._data)
        return i + 1, self._end(STATES.get(command.state, ""))

    def _configured(self, value: int) -> None:
        self.packet = 256 << min(5, value >> 4 & 7)
        self.crc = bool(value & 4)

    def _end(self, problem: str = "") -> Command:
        command = self._now
        assert command is not None
        if problem and not command.problem:
            command.problem = problem
        if command.code == REG_WRITE and command.addr == CONFIG_REG and command.state == 0:
            self._configured(command.value)
        command.wire_bytes += 1
        self._now = None
        self._phase = "idle"
        return command
