"""Pins and sleep: when the SPI port answers at all (fact sheet 1, 3.5; rules 1 and 24)."""

from __future__ import annotations

import random
from collections.abc import Callable

from .clock import Clock
from .config import Config
from .hif import Hif
from .registers import CLOCK_STATUS, HOST_COMM, WAKE, Registers
from .rules import Book
from .wifi import Wifi

PINS = ("cs", "en", "rst", "wake")


class Power:
    """CHIP_EN and RESET_N."""

    def __init__(self, config: Config, clock: Clock, book: Book) -> None:
        self.config = config
        self.clock = clock
        self.book = book
        self.levels = {"cs": 1, "en": 0, "rst": 0, "wake": 0}
        self.on_up: Callable[[], None] = lambda: None
        self.on_down: Callable[[], None] = lambda: None
        self.unstable = False
        self.own_delay_ns: Callable[[], int] = lambda: 0  # time in which we could not look at the pins
        self._delay_before = 0
        self._delay_seen = 0
        self._en_at = clock.now()
        self._ready_at = 0
        self._up = False

    @property
    def enabled(self) -> bool:
        return bool(self.levels["en"]) or self.config.boot.en_tied

    @property
    def up(self) -> bool:
        """Powered and out of reset."""
        return self._up

    def set_pin(self, name: str, level: int) -> None:
        """Drive a pin. Raises ValueError for a pin that is not there."""
        if name not in self.levels:
            raise ValueError(f"there is no pin {name!r}; there are {', '.join(PINS)}")
        level = 1 if level else 0
        if name == "en" and level and not self.levels["en"]:
            self._en_at = self.clock.now()
            self._delay_before = self._delay_seen
        self.levels[name] = level
        now_up = self.enabled and bool(self.levels["rst"])
        if now_up and not self._up:
            self._rise()
        elif self._up and not now_up:
            self._up = False
            self.on_down()
        self._delay_seen = self.own_delay_ns()

    def _rise(self) -> None:
        self._up = True
        now = self.clock.now()
        boot = self.config.boot
        held_us = (now - self._en_at) / 1000
        self.unstable = False
        if not boot.en_tied and held_us < boot.en_to_reset_us:
            # Seen late is not too short: this process may have waited for a CPU when the first pin moved.
            self.unstable = held_us + self._missed_us() < boot.en_to_reset_us
        if self.unstable:
            self.book.break_rule(
                1,
                f"RESET_N rose {held_us / 1000:.1f} ms after CHIP_EN, "
                f"{boot.en_to_reset_us / 1000:.1f} ms is the minimum",
            )
        self._ready_at = now + int(boot.reset_us * 1000)
        self.on_up()

    def _missed_us(self) -> float:
        return max(0, self.own_delay_ns() - self._delay_before) / 1000

    def refusal(self) -> str | None:
        """Why the SPI port does not answer now, None when it does."""
        if not self.enabled:
            return "CHIP_EN is low"
        if not self.levels["rst"]:
            return "RESET_N is low"
        if self.unstable:
            return "the reset was too short, the chip did not come up"
        if self.clock.now() < self._ready_at:
            return "the chip is still coming out of reset"
        return None


class Sleep:
    """Power-save mode: the chip's clocks stop while the host does not hold it awake."""

    def __init__(
        self,
        config: Config,
        registers: Registers,
        wifi: Wifi,
        hif: Hif,
        clock: Clock,
        book: Book,
        rng: random.Random,
    ) -> None:
        self.config = config
        self.wifi = wifi
        self.hif = hif
        self.clock = clock
        self.book = book
        self.rng = rng
        self._wake = 0
        self._host = 0
        self._last_access = 0
        self._woken_at: int | None = None
        self._fresh = False
        registers.on_read[WAKE] = lambda: self._wake
        registers.on_read[HOST_COMM] = lambda: self._host
        registers.on_read[CLOCK_STATUS] = lambda: 4 if self.awake else 0
        registers.on_write[WAKE] = lambda value: self._set(value, self._host)
        registers.on_write[HOST_COMM] = lambda value: self._set(self._wake, value)

    def reset(self) -> None:
        """Out of reset: awake, no power save."""
        self._wake = self._host = 0
        self._woken_at = None
        self._fresh = False

    @property
    def _held(self) -> bool:
        return bool(self._wake & 2 and self._host & 1)

    @property
    def awake(self) -> bool:
        """Whether the clocks run now."""
        if self.wifi.power_save == 0 or self.hif.message_outstanding:
            return True
        now = self.clock.now()
        if self._held:
            return self._woken_at is None or now >= self._woken_at
        return now - self._last_access < self.config.wifi.sleep_us * 1000

    def _set(self, wake: int, host: int) -> None:
        was_awake, was_held = self.awake, self._held
        self._wake, self._host = wake, host
        if self._held and not was_held:
            if was_awake:
                self._woken_at = None
            else:
                self._woken_at = self.clock.now() + int(self.config.wifi.wake_us * 1000)
                self._fresh = True
        elif was_held and not self._held:
            self._last_access = 0

    def clocked_access(self) -> bool:
        """A command that needs the clocks arrives: does it get an answer?"""
        if not self.awake:
            self.book.break_rule(24, "clocked access while the chip sleeps")
            return False
        self._last_access = self.clock.now()
        if self._fresh:
            self._fresh = False
            self.book.break_rule(24, "clocked access right after waking, without an SPI reset (0xCF)")
            return self.rng.random() >= self.config.wifi.wake_fail
        return True

    def spi_was_reset(self) -> None:
        """0xCF came."""
        self._fresh = False
