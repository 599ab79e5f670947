"""The model of the SPI bus and its host in real time, and the accounting of who kept up.

A transfer of n bytes takes `call_us` (the host's function call and chip select) plus n x 8 / SCK, plus
n x `poll_gap_us` when the host moves bytes by polling rather than by DMA. The answer of a transfer is held
back until that time is over.

A host that comes late with its next transfer may make up for it (its own interpreter runs in the time that
`call_us` stands for) until it is `catch_up_us` behind; what it loses beyond that is counted: the host fell
behind, and the rates of this run are too low. A host that pauses on purpose is not late. A pause longer than
`idle_us` is judged by what the operating system says: the part in which the client ran, or it or we waited
for a CPU, was lateness, the rest was idle.
"""

from __future__ import annotations

from collections.abc import Callable

from .clock import Clock
from .config import SpiConfig


class Pacer:
    """Keeps one bus to its modelled time."""

    def __init__(self, config: SpiConfig, clock: Clock, busy_ns: Callable[[], int] | None = None) -> None:
        self.config = config
        self.clock = clock
        self.clock_hz = config.clock_hz
        self.busy_ns = busy_ns
        self.transfers = 0
        self.bytes = 0
        self.bus_ns = 0
        self.behind_ns = 0
        self.idle_ns = 0
        self._start: int | None = None
        self._end = 0  # when the last transfer was over, in the model
        self._told = 0  # when its answer was given, on the clock
        self._late = False
        self._busy_before = 0
        self._short_gaps = 0

    def cost_ns(self, size: int) -> int:
        """Modelled time of one transfer in nanoseconds, 0 when no host is modelled."""
        spi = self.config
        if spi.host == "none":
            return 0
        us = spi.call_us + size * 8e6 / max(1, self.clock_hz)
        if spi.host == "polling":
            us += size * spi.poll_gap_us
        return int(us * 1000)

    def transfer(self, size: int) -> int:
        """Account for a transfer that begins now. Returns when its answer may be given (ns)."""
        self.transfers += 1
        self.bytes += size
        cost = self.cost_ns(size)
        if not cost:
            return 0
        now = self.clock.now()
        if self._start is None:
            self._start = self._end = self._told = now
            self._busy_before = self.busy_ns() if self.busy_ns else 0
        pause = now - max(self._told, self._end)
        if pause > self.config.idle_us * 1000:
            idle = pause - self._worked(pause)
            self.idle_ns += idle
            self._end += idle
        elif pause > 0:
            self._short_gaps += pause
        self._end += cost
        self.bus_ns += cost
        limit = int(self.config.catch_up_us * 1000)
        if now - self._end > limit:
            self.behind_ns += now - self._end - limit
            self._end = now - limit
            self._late = True
        return self._end

    def _worked(self, pause: int) -> int:
        """The part of a long pause in which somebody worked or waited for a CPU."""
        if self.busy_ns is None:
            return 0
        busy = self.busy_ns()
        worked = busy - self._busy_before - self._short_gaps
        self._busy_before = busy
        self._short_gaps = 0
        return max(0, min(pause, worked))

    def hold(self, until: int) -> None:
        """Wait for the end of a transfer unless it is too near to be worth it."""
        if until - self.clock.now() > self.config.pause_us * 1000:
            self.clock.sleep_until(until)
        self._told = self.clock.now()

    def sync(self) -> None:
        """The host waited on purpose (for the IRQ pin): no credit for the time that took."""
        if self._start is not None:
            now = self.clock.now()
            self._told = now
            self._end = max(self._end, now)

    def take_late(self) -> bool:
        """Whether time was lost since the last call."""
        late, self._late = self._late, False
        return late

    def stats(self) -> dict[str, object]:
        """Accounting in µs. `behind` says whether more than 1 % of the bus time was lost."""
        span = (self.clock.now() - self._start) // 1000 if self._start is not None else 0
        behind = self.behind_ns // 1000
        return {
            "clock_hz": self.clock_hz,
            "host": self.config.host,
            "transfers": self.transfers,
            "bytes": self.bytes,
            "bus_us": self.bus_ns // 1000,
            "idle_us": self.idle_ns // 1000,
            "span_us": span,
            "behind_us": behind,
            "behind": behind * 100 > max(1, self.bus_ns // 1000),
        }
