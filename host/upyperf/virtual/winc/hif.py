"""The host interface: buffers, messages to the chip and events from it (fact sheet 4; rules 13 to 17)."""

from __future__ import annotations

import random
from collections.abc import Callable

from .boot import Boot
from .clock import Schedule
from .config import Config
from .events import RX_SLOTS, Events
from .grants import SLOT, Grants, Handler, Message
from .registers import Registers
from .rules import Book

__all__ = ["Hif", "Message"]

_SLOTS = [0x34000 + i * SLOT for i in range(12)] + [0xD0000 + i * SLOT for i in range(30)]


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
        self.book = book
        self.rng = rng
        self.grants = Grants(config, registers, boot, schedule, book, rng)
        self.events = Events(config, registers, boot, schedule, book, rng)
        self.reset()
        registers.memory = self

    def reset(self) -> None:
        """Firmware (re)starts: buffers at new addresses, nothing queued."""
        hif = self.config.hif
        count = max(1, hif.data_buffers) + max(1, hif.control_buffers) + RX_SLOTS
        slots = list(_SLOTS)
        if hif.random_addresses:
            self.rng.shuffle(slots)
        self.events.reset(slots[:RX_SLOTS])
        self.grants.reset(slots[RX_SLOTS:count])

    @property
    def handlers(self) -> dict[int, Handler]:
        """Who serves the messages of a group."""
        return self.grants.handlers

    @property
    def irqn(self) -> int:
        """Level of IRQN, 0 when the chip wants service."""
        return self.events.irqn

    @property
    def message_outstanding(self) -> bool:
        """Whether the host has a message that it has not finished (the chip stays awake)."""
        return self.events.outstanding

    def free_buffers(self) -> dict[str, int]:
        """Free buffers by pool."""
        return self.grants.free_buffers()

    def post(self, gid: int, op: int, payload: bytes, on_done: Callable[[], None] | None = None) -> None:
        """Queue an event; on_done() once the host has taken it."""
        self.events.post(gid, op, payload, on_done)

    def stats(self) -> dict[str, object]:
        """Counters."""
        return {
            **self.grants.counters,
            "events": self.events.count,
            "backlog": self.events.backlog,
            "free": self.free_buffers(),
        }

    def read(self, addr: int, size: int) -> bytes:
        """RAM as the host may read it: the message on offer, the information blocks, its own buffer."""
        event = self.events.read(addr, size)
        if event is not None:
            return event
        for start, block in self.boot.info_blocks().items():
            if start <= addr < start + len(block):
                # RAM goes on behind a block: a host may read the longer block of another version.
                return block[addr - start : addr - start + size].ljust(size, b"\0")
        grant = self.grants.current
        if grant is not None and grant.buffer.addr <= addr < grant.buffer.addr + SLOT:
            at = addr - grant.buffer.addr
            return bytes(grant.data[at : at + size]).ljust(size, b"\0")
        if self.boot.running:
            self.book.break_rule(17, f"read of {size} bytes at 0x{addr:X}: no message is on offer there")
        else:
            self.book.break_rule(11, f"read of {size} bytes at 0x{addr:X}: the firmware has not started")
        return bytes(size)

    def write(self, addr: int, data: bytes) -> None:
        """RAM as the host may write it: inside the granted buffer only."""
        self.grants.write(addr, data)
