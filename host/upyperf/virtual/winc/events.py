"""Chip to host: one message at a time, the others wait (fact sheet 4.4; rules 12 and 17)."""

from __future__ import annotations

import random
import struct
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from . import ops
from .boot import Boot
from .clock import Schedule
from .config import Config
from .grants import SLOT
from .registers import RX_ADDRESS, RX_CONTROL, Registers
from .rules import Book

RX_SLOTS = 3


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


class Events:
    """Messages for the host, and IRQN."""

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
        self.lose_edges = 0  # fault: so many falling edges of IRQN go unnoticed, the level falls all the same
        self.irq_stuck = False  # fault: IRQN stays high
        self.bad_headers = 0  # fault: so many events whose header does not fit their length
        self.bad_lengths = 0  # fault: so many events with length 0 in 0x1070
        self.flood = 0  # fault: so many events nobody asked for come before the next one
        self.on_edge: Callable[[], None] = lambda: None
        self.count = 0
        self._life = 0
        self.reset([])
        registers.on_read[RX_CONTROL] = self._read_rx_control
        registers.on_read[RX_ADDRESS] = self._read_rx_address
        registers.on_write[RX_CONTROL] = self._write_rx_control
        registers.on_write[RX_ADDRESS] = self._write_rx_address

    def reset(self, slots: list[int]) -> None:
        """Firmware (re)starts: nothing queued."""
        self._life += 1
        self._rx_slots = deque(slots)
        self._queue: deque[Event] = deque()
        self._rx: Outstanding | None = None
        self._rx_waits = False
        self._irqn = 1

    @property
    def irqn(self) -> int:
        """Level of IRQN, 0 when the chip wants service."""
        return self._irqn

    @property
    def outstanding(self) -> bool:
        """Whether the host has a message that it has not finished (the chip stays awake)."""
        return self._rx is not None

    @property
    def backlog(self) -> int:
        """Events that wait for the host."""
        return len(self._queue)

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
        self.count += 1
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

    def _write_rx_address(self, value: int) -> None:
        self.book.break_rule(17, f"0x{value:X} written to 0x1084, which only the chip sets")

    def read(self, addr: int, size: int) -> bytes | None:
        """Bytes of the message on offer; None when addr lies elsewhere."""
        rx = self._rx
        if rx is None or not rx.addr <= addr < rx.addr + SLOT:
            return None
        raw = rx.raw[addr - rx.addr : addr - rx.addr + size]
        if len(raw) < size - (size == 2):  # one byte is read as two (fact sheet 2.6)
            end = addr + size - rx.addr
            self.book.break_rule(17, f"read to byte {end} of a message of {rx.shown}; zeros from there on")
        return raw.ljust(size, b"\0")
