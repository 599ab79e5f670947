"""The simulated module: pins and an SPI port outside, firmware and real sockets inside."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

from .air import Air
from .boot import Boot
from .clock import Clock, RealClock, Schedule
from .config import Config, get_value, set_value
from .faults import Faults
from .hif import Hif
from .ip import Ip
from .power import Power, Sleep
from .registers import Registers
from .rules import RULES, Book, Violation
from .sockets import Sockets
from .spi import NAMES, SpiPort
from .timing import Pacer
from .trace import Recorder
from .wifi import Wifi

__all__ = ["Chip"]
CONFIG_LIVE = ("air", "hif", "ip", "sockets", "spi", "wifi", "boot", "aps", "strict")


class Chip:
    """One ATWINC15x0 on an SPI bus. Not for several threads at once.

    With no clock given it lives in real time. Raises ValueError for an impossible configuration.
    """

    def __init__(self, config: Config | None = None, clock: Clock | None = None) -> None:
        self.config = config or Config()
        _ = self.config.version, self.config.mac_bytes
        self.clock = clock or RealClock()
        self.rng = random.Random(self.config.seed)
        self.schedule = Schedule(self.clock)
        self.book = Book(self.config.strict)
        self.registers = Registers(self.book, self.config.strict_addresses)
        self.boot = Boot(self.config, self.registers, self.schedule, self.book, self.rng)
        self.hif = Hif(self.config, self.registers, self.boot, self.schedule, self.book, self.rng)
        self.air = Air(self.config, self.schedule, self.rng)
        self.wifi = Wifi(self.config, self.hif, self.air, self.schedule, self.book, self.rng)
        self.ip = Ip(self.config, self.hif, self.wifi, self.schedule, self.book)
        self.sockets = Sockets(self.config, self.hif, self.ip, self.air, self.schedule, self.book, self.rng)
        self.power = Power(self.config, self.clock, self.book)
        self.sleep = Sleep(self.config, self.registers, self.wifi, self.hif, self.clock, self.book, self.rng)
        self.spi = SpiPort(self, self.book, self.config.spi, self.rng)
        self.pacer = Pacer(self.config.spi, self.clock)
        self.faults = Faults(self, self.rng)
        self.trace: Recorder | None = None
        self.edges = 0
        self.edge_listeners: list[Callable[[], None]] = []
        self.look_every_ns = 0  # how often real sockets are looked at; each look is a system call
        self._next_look = 0
        self._mode = (0, 0, 8, 0)
        self.boot.on_running = self.hif.reset
        self.boot.on_stopped = self._firmware_gone
        self.hif.events.on_edge = self._edge
        self.power.on_up = self._power_up
        self.power.on_down = self._power_down

    # Pins

    def set_pin(self, name: str, level: int) -> None:
        """Drive "cs", "en", "rst" or "wake". Raises ValueError for other names."""
        self.poll()
        if self.trace is not None and name != "cs":
            self.trace.pin(self.clock.now(), name, level)
        self.power.set_pin(name, level)
        self.book.raise_pending()

    @property
    def irqn(self) -> int:
        """Level of IRQN. What is due happens first."""
        self.poll()
        level = self.hif.irqn if self.power.up else 1
        if level:
            self.pacer.sync()
        return level

    def wait_irq(self, timeout_s: float) -> bool:
        """Wait until IRQN is low or the time is over. True when it is low."""
        end = self.clock.now() + int(timeout_s * 1e9)
        if self.power.up and self.boot.running and not self.boot.irq_enabled:
            self.book.break_rule(12, "the host waits for IRQN, which it has not enabled (0x1408, 0x1A00)")
            self.book.raise_pending()
        while self.irqn:
            now = self.clock.now()
            if now >= end:
                return False
            due = self.schedule.next_due()
            step = min(end, now + 200_000 if due is None else max(due, now + 20_000), now + 1_000_000)
            self.clock.sleep_until(step)
        return True

    def _edge(self) -> None:
        self.edges += 1
        for listener in self.edge_listeners:
            listener()

    def _power_up(self) -> None:
        self.spi.power_up()
        self.registers.power_up()
        self.sleep.reset()
        self.boot.power_up()

    def _power_down(self) -> None:
        self.schedule.clear()
        self.boot.power_down()

    def _firmware_gone(self) -> None:
        self.sockets.reset()
        self.air.reset()
        self.hif.reset()
        self.wifi.reset()
        self.ip.reset()

    # SPI

    def spi_init(self, hz: int, polarity: int = 0, phase: int = 0, bits: int = 8, firstbit: int = 0) -> None:
        """How the host has set its bus. Anything but mode 0, 8 bits, MSB first reads shifted bits."""
        self.pacer.clock_hz = hz
        self._mode = (polarity, phase, bits, firstbit)

    def transfer(self, mosi: bytes | bytearray | memoryview) -> bytes:
        """Clock bytes in and out. Raises RuleError in strict mode."""
        due = self.pacer.transfer(len(mosi))
        self.poll()
        data = bytes(mosi)
        miso = self._exchange(data)
        if self.trace is not None:
            self.trace.transfer(self.clock.now(), data, miso)
        if due:
            self.pacer.hold(due)
        self.book.raise_pending()
        return miso

    def _exchange(self, mosi: bytes) -> bytes:
        if self.power.levels["cs"]:
            return b"\xff" * len(mosi)
        seen, lost = self.faults.to_chip(mosi)
        refusal = self.power.refusal()
        if refusal is not None:
            self.book.op += 1
            self.book.break_rule(1, f"SPI transfer of {len(mosi)} bytes: {refusal}")
            if self.power.up:
                return bytes(self.rng.randrange(256) for _ in mosi)
            miso = bytearray(bytes((self.config.spi.idle_miso,)) * len(mosi))
            return bytes(self.faults.to_host(miso, []))
        if self._mode != (0, 0, 8, 0):
            return self._wrong_mode(seen)
        return bytes(self.faults.to_host(self.spi.feed(seen), lost))

    def _wrong_mode(self, mosi: bytes) -> bytes:
        """Edges or bit order do not fit: both sides see other bits than were sent."""
        polarity, phase, _, firstbit = self._mode
        if firstbit:
            seen = bytes(int(f"{b:08b}"[::-1], 2) for b in mosi)
            out = bytes(int(f"{b:08b}"[::-1], 2) for b in self.spi.feed(seen))
        elif polarity != phase:  # modes 1 and 2 sample on the other edge: one bit late
            shifted = int.from_bytes(mosi, "big") >> 1
            seen = shifted.to_bytes(len(mosi), "big")
            back = int.from_bytes(self.spi.feed(seen), "big") << 1
            out = (back & ((1 << 8 * len(mosi)) - 1)).to_bytes(len(mosi), "big")
        else:  # mode 3 samples on the same edges
            out = bytes(self.spi.feed(mosi))
        return out

    def poll(self) -> None:
        """Do what is due: timers, real sockets."""
        now = self.clock.now()
        if now >= self._next_look:
            self._next_look = now + self.look_every_ns
            self.sockets.poll()
        self.schedule.run()

    # What the SPI port finds inside

    def read_word(self, addr: int) -> int:
        return self.registers.read(addr)

    def write_word(self, addr: int, value: int) -> bool:
        answered = self.registers.write(addr, value)
        if not answered:
            self.spi.power_up()
        return answered

    def read_block(self, addr: int, size: int) -> bytes:
        return self.registers.read_block(addr, size)

    def write_block(self, addr: int, data: bytes) -> None:
        self.registers.write_block(addr, data)

    def clocked_access(self) -> bool:
        return self.sleep.clocked_access()

    def spi_was_reset(self) -> None:
        self.sleep.spi_was_reset()

    # Looking in

    @property
    def violations(self) -> list[Violation]:
        """Rules broken so far."""
        return self.book.violations

    def stats(self) -> dict[str, Any]:
        """Counters of every part and the accounting of time; always marked as simulated."""
        return {
            "simulated": True,
            "firmware": self.config.firmware,
            "stage": self.boot.stage.value,
            "spi": self.pacer.stats(),
            "commands": {NAMES[c]: n for c, n in sorted(self.spi.commands.items())},
            "hif": self.hif.stats(),
            "air": {**self.air.counters, "rssi": self.config.air.rssi, "enabled": self.config.air.enabled},
            "sockets": dict(self.sockets.counters),
            "faults": self.faults.hits,
            "violations": {str(rule): n for rule, n in sorted(self.book.counts.items())},
        }

    def control(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Serve a CONTROL request (docs/winc-sim.md, section 4). Never raises for a bad request."""
        try:
            return {"ok": True, **self._control(request)}
        except (ValueError, TypeError, KeyError) as error:
            return {"ok": False, "error": str(error)}

    def _control(self, request: Mapping[str, Any]) -> dict[str, Any]:
        command = request.get("cmd")
        self.poll()
        if command == "stats":
            return self.stats()
        if command == "violations":
            return {
                "violations": [
                    {"rule": v.rule, "text": v.text, "op": v.op, "means": RULES[v.rule]}
                    for v in self.book.violations
                ],
                "notes": [{"op": op, "text": text} for op, text in self.book.notes],
            }
        if command == "clear":
            self.book.clear()
            self.faults.clear()
            return {}
        if command == "set":
            key = str(request["key"])
            if key.split(".")[0] not in CONFIG_LIVE:
                raise ValueError(f"{key!r} cannot change while the chip runs")
            set_value(self.config, key, request["value"])
            self.book.strict = self.config.strict
            return {}
        if command == "get":
            value = get_value(self.config, str(request["key"]))
            return {"value": value if isinstance(value, int | float | str | dict | None) else str(value)}
        if command == "fault":
            options = {k: v for k, v in request.items() if k not in ("cmd", "name")}
            self.faults.arm(str(request.get("name")), options)
            return {}
        if command == "faults":
            return {"names": self.faults.names(), "hits": self.faults.hits}
        if command == "renew":
            self.ip.lease(0)
            return {}
        if command == "sta-join":
            self.wifi.client_joins()
            return {}
        raise ValueError(f"there is no command {command!r}")

    def close(self) -> None:
        """Close every real socket. The object is of no use afterwards."""
        self.sockets.close()
        if self.trace is not None:
            self.trace.close()
            self.trace = None
