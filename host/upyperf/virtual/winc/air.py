"""The model of everything between a granted buffer and the peer: module firmware, air, access point.

One medium for both directions. A frame costs

    module work + tries x (access + contention + frame bits / PHY rate)

where the PHY rate is the highest whose sensitivity lies `margin_db` under the signal, contention is an
exponentially distributed wait, and a try is lost with a probability that rises as the signal falls. Frames
wait in a queue of finite length; a datagram that finds it full is dropped. That is what makes UDP loss rise
with the offered rate. Figures come from no silicon: they are set so that a run lands near the field report.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from .clock import Schedule
from .config import Config

# (PHY rate in Mbit/s, sensitivity in dBm): fact sheet 6.3, approximate
RATES = (
    (1.0, -95.0), (6.5, -89.0), (13.0, -87.0), (19.5, -85.0), (26.0, -82.0), (39.0, -77.0), (52.0, -74.0),
    (58.5, -72.0), (65.0, -70.5),
)  # fmt: skip
FRAME_OVERHEAD = 76  # LLC, IP, TCP/UDP, 802.11 header and FCS in bytes


def phy_rate(rssi: float, margin_db: float, highest: float) -> float:
    """PHY rate in Mbit/s at this signal in dBm."""
    best = RATES[0][0]
    for rate, sensitivity in RATES:
        if rate <= highest and rssi - margin_db >= sensitivity:
            best = max(best, rate)
    return best


class Air:
    """The shared way of all frames."""

    def __init__(self, config: Config, schedule: Schedule, rng: random.Random) -> None:
        self.config = config
        self.schedule = schedule
        self.rng = rng
        self.down = False
        self.counters = {"frames": 0, "tries": 0, "dropped_queue": 0, "dropped_air": 0, "busy_us": 0}
        self._free_at = 0
        self._queued = 0
        self._life = 0

    def reset(self) -> None:
        """Forget frames on their way."""
        self._life += 1
        self._queued = 0
        self._free_at = 0

    @property
    def retry_probability(self) -> float:
        """Probability that one try is lost at the present signal."""
        air = self.config.air
        weak = 1 / (1 + math.exp((air.rssi - air.retry_knee_dbm) / air.retry_slope_db))
        return air.retry + (1 - air.retry) * weak

    def service_us(self, size: int, module_us: float) -> tuple[float, int]:
        """Time of one frame in µs and its tries (more than max_tries: lost)."""
        air = self.config.air
        bits_us = (size + FRAME_OVERHEAD) * 8 / phy_rate(air.rssi, air.margin_db, air.max_phy_mbps)
        lost = self.retry_probability
        total, tries = module_us + size * air.module_byte_us, 0
        while True:
            tries += 1
            total += air.access_us + self.rng.expovariate(1 / max(1e-6, air.contention_us)) + bits_us
            if tries > air.max_tries or self.rng.random() >= lost:
                return total, tries

    def send(self, size: int, module_us: float, deliver: Callable[[], None], droppable: bool) -> bool:
        """Put a frame on its way and call deliver when it has arrived.

        A droppable frame (a datagram) may be lost: False when the queue was full; a loss in the air shows
        only in the counters. Others are sent again until they arrive, as TCP does.
        """
        air = self.config.air
        if self.down:
            return False
        self.counters["frames"] += 1
        if not air.enabled:
            deliver()
            return True
        if droppable and self._queued >= air.queue:
            self.counters["dropped_queue"] += 1
            return False
        service, tries = self.service_us(size, module_us)
        lost = tries > air.max_tries or (droppable and self.rng.random() < air.loss)
        while lost and not droppable:
            again, tries = self.service_us(size, module_us)
            service += again
            lost = tries > air.max_tries
        self.counters["tries"] += tries
        self.counters["busy_us"] += int(service)
        start = max(self.schedule.clock.now(), self._free_at)
        self._free_at = start + int(service * 1000)
        self._queued += 1
        life = self._life

        def arrive() -> None:
            if life != self._life:
                return
            self._queued -= 1
            if lost:
                self.counters["dropped_air"] += 1
            elif not self.down:
                deliver()

        self.schedule.at(self._free_at, arrive)
        return True
