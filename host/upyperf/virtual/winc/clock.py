"""Time as the simulator sees it: the wall clock, or one that a test moves by hand. Nanoseconds."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable
from typing import Protocol


class Clock(Protocol):
    """What the chip needs of a clock."""

    def now(self) -> int:
        """Nanoseconds since some fixed start."""

    def sleep_until(self, when: int) -> None:
        """Return when now() >= when."""


class RealClock:
    """The wall clock (monotonic)."""

    def now(self) -> int:
        return time.monotonic_ns()

    def sleep_until(self, when: int) -> None:
        while (left := when - time.monotonic_ns()) > 0:
            time.sleep(left / 1e9)


class ManualClock:
    """A clock that stands still unless somebody sleeps on it: whole runs in no time, the same each time."""

    def __init__(self) -> None:
        self._now = 0

    def now(self) -> int:
        return self._now

    def sleep_until(self, when: int) -> None:
        self._now = max(self._now, when)

    def advance_us(self, us: float) -> None:
        """Move the clock by that many microseconds."""
        self._now += int(us * 1000)


class Schedule:
    """Things that will happen in the chip, in order of their time."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._count = 0

    def after_us(self, us: float, action: Callable[[], None]) -> None:
        """Call action in `us` microseconds (from the next run() on)."""
        self.at(self.clock.now() + int(us * 1000), action)

    def at(self, when: int, action: Callable[[], None]) -> None:
        """Call action when the clock shows `when` nanoseconds or more."""
        self._count += 1
        heapq.heappush(self._heap, (when, self._count, action))

    def run(self) -> None:
        """Do everything that is due, what it schedules for right now included."""
        while self._heap and self._heap[0][0] <= self.clock.now():
            heapq.heappop(self._heap)[2]()

    def next_due(self) -> int | None:
        """Time in nanoseconds of the next action, None when nothing is planned."""
        return self._heap[0][0] if self._heap else None

    def clear(self) -> None:
        """Forget everything (the chip lost its power)."""
        self._heap.clear()
