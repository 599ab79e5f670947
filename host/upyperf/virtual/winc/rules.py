"""The 25 rules a driver must keep (fact sheet 9.2), and the book of those it broke."""

from __future__ import annotations

from dataclasses import dataclass

RULES: dict[int, str] = {
    1: "no SPI traffic while the chip is held in reset or has not come up yet",
    2: "commands carry a valid CRC7 until register 0xE824 switches it off, and none after",
    3: "read data is followed by two CRC16 bytes while CRC is on",
    4: "write data goes MSB first, read data comes LSB first",
    5: "the whole response is read, fillers included, before the next command",
    6: "only known commands, and a data header where one is expected",
    7: "block size is neither 0 nor 1",
    8: "data packets are no larger than configured and numbered 1, 2, ... 3",
    9: "only mapped addresses are read and written",
    10: "boot goes in order: efuse, ROM mailbox, version word, configuration, start, ready",
    11: "information pointers are read after the firmware has started",
    12: "IRQN works only after pin multiplexer and interrupt enable are set",
    13: "buffers are written only while granted, inside their bounds, and committed by their address",
    14: "the header in the buffer matches register 0x108C, the data bit marks data messages",
    15: "buffer addresses change with every grant",
    16: "the buffer pool is finite, 0x150400 reads 0 when it is empty",
    17: "one received message at a time: clear bit 0, read inside it, then RX done",
    18: "structure lengths are those of the firmware version",
    19: "sockets are used in a legal order, with legal ids, sessions and sizes",
    20: "UDP receives only after bind, the send callback option comes after bind",
    21: "after the end of a stream the socket is closed by the host",
    22: "one scan at a time, results only after it is done",
    23: "one connection attempt at a time, sockets only with an address",
    24: "the chip is awake before a clocked access, the SPI layer is reset after waking it",
    25: "after a global reset the chip is brought up again from the start",
}


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule broken: its number in the fact sheet, what happened, at which SPI command (from 1)."""

    rule: int
    text: str
    op: int

    def __str__(self) -> str:
        return f"rule {self.rule}: {self.text} (SPI command {self.op}; the rule: {RULES[self.rule]})"


class RuleError(Exception):
    """Raised in strict mode by the transfer that broke a rule."""

    def __init__(self, violation: Violation) -> None:
        super().__init__(str(violation))
        self.violation = violation
        self.rule = violation.rule
        self.text = violation.text


class Book:
    """Violations and notes of one chip. Notes are things that are odd but legal."""

    LIMIT = 10_000

    def __init__(self, strict: bool = False) -> None:
        self.strict = strict
        self.op = 0
        self.violations: list[Violation] = []
        self.notes: list[tuple[int, str]] = []
        self.counts: dict[int, int] = {}
        self.pending: Violation | None = None

    def break_rule(self, rule: int, text: str) -> None:
        """Record that the host broke a rule."""
        violation = Violation(rule, text, self.op)
        self.counts[rule] = self.counts.get(rule, 0) + 1
        if len(self.violations) < self.LIMIT:
            self.violations.append(violation)
        if self.strict and self.pending is None:
            self.pending = violation

    def note(self, text: str) -> None:
        """Record something odd that breaks no rule."""
        if len(self.notes) < self.LIMIT:
            self.notes.append((self.op, text))

    def raise_pending(self) -> None:
        """In strict mode, raise RuleError for the first violation since the last call."""
        if self.pending is not None:
            violation, self.pending = self.pending, None
            raise RuleError(violation)

    def clear(self) -> None:
        """Forget everything recorded."""
        self.violations.clear()
        self.notes.clear()
        self.counts.clear()
        self.pending = None
