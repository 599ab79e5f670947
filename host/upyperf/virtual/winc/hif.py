"""The host interface: buffers, messages to the chip and events from it (fact sheet 4; rules 13 to 17)."""

from __future__ import annotations

import random
import struct
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from . import ops
from .boot import Boot
from .clock import Schedule
from .config import Config
from .registers import RX_ADDRESS, RX_CONTROL, STATE, TX_ADDRESS, TX_COMMIT, TX_REQUEST, Registers, swapped
from .rules import Book

SLOT = 1600
RX_SLOTS = 3
Handler = Callable[["Message"], None]


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


@dataclass(slots=True)
class Event:
    """A message for the host that waits for its turn."""

    gid: int
    op: int
    payload: bytes
    on_done: Callable[[], None] | None = None


@dataclass(slots=True)
class Outstanding:
    """The message that the host is reading."""

    addr: int
    raw: bytes
    shown: int  # length as in 0x1070
    on_done: Callable[[], None] | None
    cleared: bool = False


class Hif:
    """Host interface of one chip. It answers for the RAM windows as well."""

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
        self.refuse_grants = 0  # fault: so many requests get no buffer
        self.lose_edges = (
            0  # fault: so many falling edges of IRQN go unnoticed (the level falls all the same)
        )
        self.irq_stuck = False  # fault: IRQN stays high
        self.bad_headers = 0  # fault: so many events whose header does not fit their length
        self.bad_lengths = 0  # fault: so many events with length 0 in 0x1070
        self.flood = 0  # fault: so many events nobody asked for come before the next one
        self.on_edge: Callable[[], None] = lambda: None
        self.counters = {"messages": 0, "events": 0, "grants": 0, "no_buffer": 0}
        self._irqn = 1
        self._buffers: list[Buffer] = []
        self._rx_slots: deque[int] = deque()
        self._queue: deque[Event] = deque()
        self._rx: Outstanding | None = None
        self._rx_waits = False
        self._grant: Grant | None = None
        self._request = 0
        self._tx_addr = 0
        self._commit_word = 0
        self._former: set[int] = set()
        self._life = 0
        self.reset()
        registers.memory = self
        registers.on_read.update(
            {
                RX_CONTROL: self._read_rx_control,
                RX_ADDRESS: self._read_rx_address,
                TX_REQUEST: lambda: self._request,
                TX_ADDRESS: self._read_tx_address,
                TX_COMMIT: lambda: self._commit_word,
            }
        )
        registers.on_write.update(
            {
                STATE: self._write_state,
                TX_REQUEST: self._write_request,
                TX_COMMIT: self._write_commit,
                RX_CONTROL: self._write_rx_control,
                TX_ADDRESS: self._write_tx_address,
                RX_ADDRESS: self._write_tx_address,
            }
        )

    def reset(self) -> None:
        """Firmware (re)starts: buffers at new addresses, nothing queued."""
        self._life += 1
        hif = self.config.hif
        count = max(1, hif.data_buffers) + max(1, hif.control_buffers) + RX_SLOTS
        slots = [0x34000 + i * SLOT for i in range(12)] + [0xD0000 + i * SLOT for i in range(30)]
        if hif.random_addresses:
            self.rng.shuffle(slots)
        slots = slots[:count] if count <= len(slots) else slots
        self._rx_slots = deque(slots[:RX_SLOTS])
        data = RX_SLOTS + max(1, hif.data_buffers)
        self._buffers = [Buffer(a, "data") for a in slots[RX_SLOTS:data]]
        self._buffers += [Buffer(a, "control") for a in slots[data:]]
        self._queue.clear()
        self._rx = None
        self._rx_waits = False
        self._grant = None
        self._request = self._tx_addr = self._commit_word = 0
        self._former = set()
        self._irqn = 1

    @property
    def irqn(self) -> int:
        """Level of IRQN, 0 when the chip wants service."""
        return self._irqn

    @property
    def message_outstanding(self) -> bool:
        """Whether the host has a message that it has not finished (the chip stays awake)."""
        return self._rx is not None

    @property
    def backlog(self) -> int:
        """Events that wait for the host."""
        return len(self._queue)

    def free_buffers(self) -> dict[str, int]:
        """Free buffers by pool."""
        out = {"data": 0, "control": 0}
        for buffer in self._buffers:
            out[buffer.pool] += not buffer.busy
        return out

    # Host to chip

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
        if self.refuse_grants > 0:
            self.refuse_grants -= 1
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

    # Chip to host

    def post(self, gid: int, op: int, payload: bytes, on_done: Callable[[], None] | None = None) -> None:
        """Queue an event; it is offered `event_us` later, when the ones before it are done."""
        if self.flood:
            count, self.flood = self.flood, 0
            for extra in ops.flood_events(count):
                self.post(*extra)
        event = Event(gid, op, payload, on_done)
        life = self._life

        def queue() -> None:
            if life == self._life:
                self._queue.append(event)
                self._offer()

        if self.config.hif.event_us:
            self.schedule.after_us(self.config.hif.event_us, queue)
        else:
            queue()

    def _offer(self) -> None:
        if self._rx is not None or not self._queue or self._rx_waits or not self.boot.running:
            return
        event = self._queue.popleft()
        size = ops.HEADER + len(event.payload)
        raw = struct.pack("<BBHI", event.gid, event.op, size, 0) + event.payload
        shown = (size + 3) & ~3 if self.config.hif.pad else size
        if self.bad_headers > 0:
            self.bad_headers -= 1
            raw = struct.pack("<BBHI", event.gid, event.op, size + 100, 0) + event.payload
        if self.bad_lengths > 0:
            self.bad_lengths -= 1
            shown = 0
        if self.config.hif.random_addresses:
            self._rx_slots.rotate(self.rng.randint(1, RX_SLOTS - 1))
        else:
            self._rx_slots.rotate(1)
        self._rx = Outstanding(self._rx_slots[0], raw + bytes(max(0, shown - size)), shown, event.on_done)
        self.counters["events"] += 1
        if self.boot.irq_enabled and not self.irq_stuck:
            self._irqn = 0
            if self.lose_edges > 0:
                self.lose_edges -= 1
            else:
                self.on_edge()

    def _read_rx_control(self) -> int:
        if self._rx is None:
            return 0
        return self._rx.shown << 2 | (0 if self._rx.cleared else 1)

    def _read_rx_address(self) -> int:
        if self._rx is None:
            self.book.note("0x1084 read without a message")
            return 0
        return self._rx.addr

    def _write_rx_control(self, value: int) -> None:
        rx = self._rx
        if rx is None:
            if value & 2:
                self.book.break_rule(17, "RX done without a message")
            return
        if value & 1:
            self.book.break_rule(17, f"0x1070 = 0x{value:X} with bit 0 still set; nothing cleared")
            return
        if not rx.cleared:
            rx.cleared = True
            self._irqn = 1
            if value & 2:
                self.book.break_rule(17, "RX done before bit 0 of 0x1070 was cleared; not taken as done")
            return
        if not value & 2:
            return
        if value >> 2 & 0xFFF != rx.shown:
            self.book.break_rule(
                17, f"RX done with length {value >> 2 & 0xFFF}, the message has {rx.shown}; not taken as done"
            )
            return
        self._rx = None
        if rx.on_done is not None:
            rx.on_done()
        if self.config.hif.done_us and self._queue:
            self._rx_waits = True
            life = self._life

            def go_on() -> None:
                if life == self._life:
                    self._rx_waits = False
                    self._offer()

            self.schedule.after_us(self.config.hif.done_us, go_on)
        else:
            self._offer()

    # RAM

    def read(self, addr: int, size: int) -> bytes:
        """RAM as the host may read it: the message on offer and the information blocks."""
        end = addr + size
        rx = self._rx
        if rx is not None and rx.addr <= addr < rx.addr + SLOT:
            raw = rx.raw[addr - rx.addr : end - rx.addr]
            if len(raw) < size - (size == 2):  # one byte is read as two (fact sheet 2.6)
                self.book.break_rule(
                    17, f"read to byte {end - rx.addr} of a message of {rx.shown}; zeros from there on"
                )
            return raw.ljust(size, b"\0")
        for start, block in self.boot.info_blocks().items():
            if start <= addr < start + len(block):
                # RAM goes on behind a block: a host may read the longer block of another version.
                return block[addr - start : end - start].ljust(size, b"\0")
        if self._grant is not None and self._grant.buffer.addr <= addr < self._grant.buffer.addr + SLOT:
            at = addr - self._grant.buffer.addr
            return bytes(self._grant.data[at : at + size]).ljust(size, b"\0")
        rule, what = (
            (17, "no message is on offer") if self.boot.running else (11, "the firmware has not started")
        )
        self.book.break_rule(rule, f"read of {size} bytes at 0x{addr:X}: {what} there")
        return bytes(size)

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
