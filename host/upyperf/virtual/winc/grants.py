"""Host to chip: buffers lent to the host, filled and committed (fact sheet 4.3; rules 13 to 16)."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from dataclasses import dataclass, field

from . import ops
from .boot import Boot
from .clock import Schedule
from .config import Config
from .registers import STATE, TX_ADDRESS, TX_COMMIT, TX_REQUEST, Registers, swapped
from .rules import Book

SLOT = 1600


@dataclass(slots=True)
class Buffer:
    """One message buffer in the chip's RAM."""

    addr: int
    pool: str
    busy: bool = False


@dataclass(slots=True)
class Grant:
    """A buffer lent to the host."""

    buffer: Buffer
    descriptor: int
    size: int
    data: bytearray
    written: list[tuple[int, int]] = field(default_factory=list)


@dataclass(slots=True)
class Message:
    """A message from the host. `free` must be called when the chip is done with its buffer."""

    gid: int
    op: int
    payload: bytes
    free: Callable[[], None]
    holes: list[tuple[int, int]]  # (from, to) of payload bytes that were never written


Handler = Callable[[Message], None]


class Grants:
    """The chip's message buffers and what the host does with them."""

    def __init__(
        self,
        config: Config,
        registers: Registers,
        boot: Boot,
        schedule: Schedule,
        book: Book,
        rng: random.Random,
    ) -> None:
        self.config = config
        self.boot = boot
        self.schedule = schedule
        self.book = book
        self.rng = rng
        self.handlers: dict[int, Handler] = {}
        self.refuse = 0  # fault: so many requests get no buffer
        self.counters = {"messages": 0, "grants": 0, "no_buffer": 0}
        self._life = 0
        self.reset([])
        registers.on_read[TX_REQUEST] = lambda: self._request
        registers.on_read[TX_ADDRESS] = self._read_tx_address
        registers.on_read[TX_COMMIT] = lambda: self._commit_word
        registers.on_write[STATE] = self._write_state
        registers.on_write[TX_REQUEST] = self._write_request
        registers.on_write[TX_COMMIT] = self._write_commit
        registers.on_write[TX_ADDRESS] = self._write_tx_address

    def reset(self, slots: list[int]) -> None:
        """Firmware (re)starts: buffers at new addresses, nothing lent."""
        self._life += 1
        data = max(1, self.config.hif.data_buffers)
        self._buffers = [Buffer(a, "data") for a in slots[:data]]
        self._buffers += [Buffer(a, "control") for a in slots[data:]]
        self._grant: Grant | None = None
        self._request = self._tx_addr = self._commit_word = 0
        self._former: set[int] = set()

    @property
    def current(self) -> Grant | None:
        """The buffer that the host has now."""
        return self._grant

    def free_buffers(self) -> dict[str, int]:
        """Free buffers by pool."""
        out = {"data": 0, "control": 0}
        for buffer in self._buffers:
            out[buffer.pool] += not buffer.busy
        return out

    def _write_state(self, value: int) -> None:
        if self.boot.write_state(value):
            return
        self.boot.write_descriptor(value)

    def _write_request(self, value: int) -> None:
        if value != 2:
            if swapped(value) == 2:
                self.book.break_rule(4, f"0x1078 = 0x{value:08X}: the data went LSB first")
            else:
                self.book.break_rule(13, f"0x1078 = 0x{value:X}; a request is 2")
            return
        self._request = 2
        if not self.boot.running:
            self.book.break_rule(10, f"message requested in stage: {self.boot.stage.value}; ignored")
            return
        descriptor = self.boot.descriptor
        if self._grant is not None:
            self.book.note(f"a new request gives back the buffer at 0x{self._grant.buffer.addr:X} unused")
            self._grant.buffer.busy = False
            self._grant = None
        self._tx_addr = 0
        life = self._life

        def answer() -> None:
            if life == self._life:
                self._give(descriptor)

        self.schedule.after_us(self.config.hif.grant_us, answer)

    def _give(self, descriptor: int) -> None:
        self._request = 0
        size = descriptor >> 16
        if not ops.HEADER <= size <= ops.MAX_MESSAGE:
            self.book.break_rule(
                14, f"0x108C asks for a message of {size} bytes; 8 to {ops.MAX_MESSAGE} are possible"
            )
            return
        pool = "data" if descriptor >> 8 & ops.DATA_BIT else "control"
        free = [b for b in self._buffers if b.pool == pool and not b.busy]
        if self.refuse > 0:
            self.refuse -= 1
            free = []
        if not free:
            self.counters["no_buffer"] += 1
            return
        fresh = [b for b in free if b.addr not in self._former] or free
        buffer = self.rng.choice(fresh) if self.config.hif.random_addresses else fresh[0]
        buffer.busy = True
        if len(self._former) >= len(self._buffers) - 1:
            self._former.clear()
        self._former.add(buffer.addr)
        self.counters["grants"] += 1
        self._tx_addr = buffer.addr
        self._grant = Grant(buffer, descriptor, size, bytearray(size))

    def _read_tx_address(self) -> int:
        if self._request:
            self.book.break_rule(13, "0x150400 read while 0x1078 bit 1 is still set")
            return 0
        return self._tx_addr

    def _write_tx_address(self, value: int) -> None:
        self.book.break_rule(13, f"0x{value:X} written to an address register that only the chip sets")

    def _write_commit(self, value: int) -> None:
        self._commit_word = value
        grant = self._grant
        addr = value >> 2
        if grant is None:
            if addr == 0:
                self.book.break_rule(16, "commit without a buffer: 0x150400 read 0, the pool was empty")
            else:
                self.book.break_rule(13, f"commit of 0x{addr:X} without a grant")
            return
        if addr != grant.buffer.addr or value & 3 != 2:
            rule = 4 if swapped(value) >> 2 == grant.buffer.addr else 13
            self.book.break_rule(
                rule, f"commit word 0x{value:X}; the grant is 0x{grant.buffer.addr:X}, message dropped"
            )
            self._release(grant)
            return
        self._grant = None
        self._tx_addr = 0
        self._accept(grant)

    def _release(self, grant: Grant) -> None:
        grant.buffer.busy = False
        if self._grant is grant:
            self._grant = None
            self._tx_addr = 0

    def _accept(self, grant: Grant) -> None:
        gid, op_bit, size = grant.descriptor & 0xFF, grant.descriptor >> 8 & 0xFF, grant.size
        op = op_bit & 0x7F
        head_gid, head_op, head_size = struct.unpack_from("<BBH", grant.data)
        problem = None
        if not _covered(grant.written, 0, 4):
            problem = "the header was not written"
        elif (head_gid, head_op, head_size) != (gid, op, size):
            problem = (
                f"header says group {head_gid}, op 0x{head_op:02X}, {head_size} bytes; "
                f"0x108C said group {gid}, op 0x{op:02X}, {size} bytes"
            )
        else:
            payload = bytes(grant.data[ops.HEADER :])
            must = ops.is_data(gid, op, self.config.version, payload)
            if must != bool(op_bit & ops.DATA_BIT):
                problem = f"{ops.name(gid, op)} {'without' if must else 'with'} the data bit in 0x108C"
        if problem:
            self.book.break_rule(14, f"{problem}; message dropped")
            self._release(grant)
            return
        handler = self.handlers.get(gid)
        if handler is None:
            self.book.break_rule(14, f"no such group: {gid}; message dropped")
            self._release(grant)
            return
        self.counters["messages"] += 1
        freed = False

        def free() -> None:
            nonlocal freed
            if not freed:
                freed = True
                grant.buffer.busy = False

        handler(Message(gid, op, payload, free, _holes(grant.written, ops.HEADER, size)))

    def write(self, addr: int, data: bytes) -> None:
        """RAM as the host may write it: inside the granted buffer only."""
        grant, end = self._grant, addr + len(data)
        if grant is not None and len(data) == 2 and end == grant.buffer.addr + grant.size + 1:
            data, end = data[:1], end - 1  # one byte is written as two (fact sheet 2.6)
        if grant is not None and grant.buffer.addr <= addr and end <= grant.buffer.addr + grant.size:
            at = addr - grant.buffer.addr
            grant.data[at : at + len(data)] = data
            grant.written.append((at, at + len(data)))
            return
        if grant is None and addr < 0x1000:
            self.book.break_rule(16, f"write at 0x{addr:X}: 0x150400 read 0, there was no buffer")
            return
        for buffer in self._buffers:
            ours = grant is not None and buffer is grant.buffer
            if buffer.addr <= addr < buffer.addr + SLOT and not ours and grant is not None:
                self.book.break_rule(
                    15,
                    f"write at 0x{addr:X}, a buffer of another grant; this one is at 0x{grant.buffer.addr:X}",
                )
                return
        where = (
            f"the grant is 0x{grant.buffer.addr:X} with {grant.size} bytes"
            if grant
            else "no buffer is granted"
        )
        self.book.break_rule(13, f"write of {len(data)} bytes at 0x{addr:X}: {where}")


def _merge(written: list[tuple[int, int]]) -> list[tuple[int, int]]:
    out: list[tuple[int, int]] = []
    for low, high in sorted(written):
        if out and low <= out[-1][1]:
            out[-1] = (out[-1][0], max(high, out[-1][1]))
        else:
            out.append((low, high))
    return out


def _covered(written: list[tuple[int, int]], low: int, high: int) -> bool:
    return any(a <= low and high <= b for a, b in _merge(written))


def _holes(written: list[tuple[int, int]], low: int, high: int) -> list[tuple[int, int]]:
    """Stretches of [low, high) that nobody wrote, counted from `low`."""
    out, at = [], low
    for a, b in _merge(written):
        if a > at:
            out.append((at - low, min(a, high) - low))
        at = max(at, b)
    if at < high:
        out.append((at - low, high - low))
    return [(a, b) for a, b in out if a < b]
