"""Faults that can be armed on a running chip (issue: "Faults and bad input"; fact sheet 9.2)."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from . import ops
from .wifi import DISCONNECTED

if TYPE_CHECKING:
    from .chip import Chip


@dataclass
class _Wire:
    """A disturbance of the bytes on the wire."""

    kind: str  # "drop", "flip", "stuck"
    where: str  # "mosi", "miso"
    count: int  # how many bytes; -1: until cleared
    after: int  # bytes that pass unharmed first
    rate: float  # probability for each byte after that
    value: int


class Faults:
    """Everything that can go wrong, by name."""

    def __init__(self, chip: Chip, rng: random.Random) -> None:
        self.chip = chip
        self.rng = rng
        self.wire: list[_Wire] = []
        self.hits = 0

    def names(self) -> list[str]:
        """Every fault that arm() knows."""
        return sorted(_FAULTS)

    def arm(self, name: str, options: Mapping[str, Any]) -> None:
        """Arm a fault. Raises ValueError with one line for an unknown name or option."""
        fault = _FAULTS.get(name)
        if fault is None:
            raise ValueError(f"there is no fault {name!r}; there are {', '.join(self.names())}")
        function, allowed = fault
        unknown = set(options) - set(allowed)
        if unknown:
            raise ValueError(
                f"fault {name!r} has no option {sorted(unknown)[0]!r}; it has {', '.join(allowed)}"
            )
        function(self, {**allowed, **options})

    def clear(self) -> None:
        """Disarm everything that has not struck yet."""
        chip = self.chip
        self.wire.clear()
        chip.boot.stuck = None
        events = chip.hif.events
        events.lose_edges = events.bad_headers = events.bad_lengths = events.flood = 0
        events.irq_stuck = False
        chip.hif.grants.refuse = 0
        chip.sockets.stale_replies = chip.wifi.auth_failures = chip.wifi.stale_disconnects = 0
        chip.sockets.report_loss = False
        chip.air.down = False

    # The wire

    def to_chip(self, mosi: bytes) -> tuple[bytes, list[int]]:
        """What the chip sees of the bytes sent, and where clocks were lost."""
        if not self.wire:
            return mosi, []
        data, lost = bytearray(mosi), []
        for fault in list(self.wire):
            if fault.kind == "drop":
                lost += self._strike(fault, len(mosi))
            elif fault.where == "mosi":
                for i in self._strike(fault, len(mosi)):
                    data[i] = fault.value if fault.kind == "stuck" else data[i] ^ 1 << self.rng.randrange(8)
        lost = sorted(set(lost))
        for i in reversed(lost):
            del data[i]
        return bytes(data), lost

    def to_host(self, miso: bytearray, lost: list[int]) -> bytearray:
        """What the host sees of the answer."""
        for i in lost:
            miso.insert(i, 0)
        for fault in list(self.wire):
            if fault.where == "miso" and fault.kind != "drop":
                for i in self._strike(fault, len(miso)):
                    miso[i] = fault.value if fault.kind == "stuck" else miso[i] ^ 1 << self.rng.randrange(8)
        return miso

    def _strike(self, fault: _Wire, size: int) -> list[int]:
        """Positions that are hit in this transfer."""
        skip = min(fault.after, size)
        fault.after -= skip
        out = []
        for i in range(skip, size):
            if fault.count == 0:
                break
            if fault.rate >= 1 or self.rng.random() < fault.rate:
                out.append(i)
                if fault.count > 0:
                    fault.count -= 1
        if fault.count == 0 and fault in self.wire:
            self.wire.remove(fault)
        self.hits += len(out)
        return out

    def _arm_wire(self, kind: str, options: Mapping[str, Any]) -> None:
        where = str(options.get("where", "mosi"))
        if where not in ("mosi", "miso"):
            raise ValueError(f"where is {where!r}, not mosi or miso")
        self.wire.append(
            _Wire(kind, where, int(options["count"]), int(options["after"]), float(options.get("rate", 1)),
                  int(options.get("value", 0)))
        )  # fmt: skip


def _wire(kind: str) -> Callable[[Faults, Mapping[str, Any]], None]:
    return lambda faults, options: faults._arm_wire(kind, options)


def _boot_timeout(faults: Faults, options: Mapping[str, Any]) -> None:
    stage = str(options["stage"])
    if stage not in ("efuse", "rom", "firmware"):
        raise ValueError(f"stage is {stage!r}, not efuse, rom or firmware")
    faults.chip.boot.stuck = stage


def _counter(owner: str, name: str) -> Callable[[Faults, Mapping[str, Any]], None]:
    def arm(faults: Faults, options: Mapping[str, Any]) -> None:
        setattr(attrgetter(owner)(faults.chip), name, int(options["count"]))

    return arm


def _irq_stuck(faults: Faults, options: Mapping[str, Any]) -> None:
    faults.chip.hif.events.irq_stuck = True


def _spurious_irq(faults: Faults, options: Mapping[str, Any]) -> None:
    faults.chip.hif.events.on_edge()


def _flood(faults: Faults, options: Mapping[str, Any]) -> None:
    count = int(options["count"])
    if options["before_reply"]:
        faults.chip.hif.events.flood = count
        return
    for event in ops.flood_events(count):
        faults.chip.hif.post(*event)


def _ap_lost(faults: Faults, options: Mapping[str, Any]) -> None:
    chip = faults.chip

    def lost() -> None:
        chip.air.down = True
        chip.schedule.after_us(float(options["detect_ms"]) * 1000, noticed)

    def noticed() -> None:
        chip.sockets.report_loss = bool(options["report"])
        chip.wifi.lose_ap()
        if float(options["back_ms"]) >= 0:
            chip.schedule.after_us(float(options["back_ms"]) * 1000, back)

    def back() -> None:
        chip.air.down = False

    chip.schedule.after_us(float(options["after_ms"]) * 1000, lost)


def _disconnect_event(faults: Faults, options: Mapping[str, Any]) -> None:
    faults.chip.wifi.state_event(DISCONNECTED, int(options["error"]))


def _dhcp(faults: Faults, options: Mapping[str, Any]) -> None:
    faults.chip.config.ip.dhcp = "fail"


def _dns(faults: Faults, options: Mapping[str, Any]) -> None:
    faults.chip.config.ip.dns_fail = True


def _slow_ack(faults: Faults, options: Mapping[str, Any]) -> None:
    faults.chip.config.sockets.idle_ack_us = float(options["ms"]) * 1000


_N = {"count": 1}
_FAULTS: dict[str, tuple[Callable[[Faults, Mapping[str, Any]], None], dict[str, Any]]] = {
    "drop": (_wire("drop"), {"count": 1, "after": 0, "rate": 1}),
    "flip": (_wire("flip"), {"where": "miso", "count": 1, "after": 0, "rate": 1}),
    "stuck": (_wire("stuck"), {"where": "miso", "value": 0, "count": -1, "after": 0}),
    "boot-timeout": (_boot_timeout, {"stage": "firmware"}),
    "lost-edge": (_counter("hif.events", "lose_edges"), _N),
    "irq-stuck": (_irq_stuck, {}),
    "spurious-irq": (_spurious_irq, {}),
    "no-buffer": (_counter("hif.grants", "refuse"), _N),
    "bad-header": (_counter("hif.events", "bad_headers"), _N),
    "zero-length": (_counter("hif.events", "bad_lengths"), _N),
    "event-flood": (_flood, {"count": 10, "before_reply": False}),
    "stale-replies": (_counter("sockets", "stale_replies"), _N),
    "stale-disconnect": (_counter("wifi", "stale_disconnects"), _N),
    "disconnect-event": (_disconnect_event, {"error": 0}),
    "join-fails": (_counter("wifi", "auth_failures"), _N),
    "dhcp-failure": (_dhcp, {}),
    "dns-failure": (_dns, {}),
    "ap-lost": (_ap_lost, {"after_ms": 0, "detect_ms": 0, "back_ms": -1, "report": False}),
    "slow-ack": (_slow_ack, {"ms": 500}),
}
