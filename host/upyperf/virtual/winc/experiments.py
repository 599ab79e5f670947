"""The field report's experiments W1 to W9 and W13 with the real driver on the model, in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .config import Config, field_config
from .rehearsal import Outcome, Rehearsal, rehearse

Action = Callable[[Rehearsal, float], Outcome]


@dataclass(frozen=True)
class Row:
    """One measured point. Rates in Mbit/s of payload that arrived, simulated."""

    experiment: str
    setting: str
    mbps: float
    loss: float | None
    calls_per_packet: float
    bus_share: float
    report: str

    def to_dict(self) -> dict[str, Any]:
        """For --json."""
        return {
            "simulated": True,
            "experiment": self.experiment,
            "setting": self.setting,
            "mbps": round(self.mbps, 3),
            "loss": None if self.loss is None else round(self.loss, 5),
            "spi_calls_per_1400_bytes": round(self.calls_per_packet, 2),
            "spi_share_of_time": round(self.bus_share, 3),
            "field_report": self.report,
        }


@dataclass(frozen=True)
class Point:
    """One point to measure: what to set, what to do, what the field report saw."""

    setting: str
    hz: int
    host: str
    rssi: int
    action: Action
    report: str = ""


def _tcp(block: int = 1400) -> Action:
    return lambda run, seconds: run.tcp_send(seconds, block)


def _udp(mbps: float) -> Action:
    return lambda run, seconds: run.udp_send(seconds, mbps)


SLOW, FAST = 10_000_000, 20_000_000

EXPERIMENTS: dict[str, tuple[str, list[Point]]] = {
    "W1": ("TCP send", [Point("10 MHz, polling, -60 dBm", SLOW, "polling", -60, _tcp(), "5.24 Mbit/s")]),
    "W2": (
        "UDP at 5.24 Mbit/s",
        [Point("20 MHz, DMA, -60 dBm", FAST, "dma", -60, _udp(5.24), "5.24 Mbit/s, 0.38 % lost")],
    ),
    "W3": (
        "UDP ramp (20 MHz, DMA)",
        [
            Point(f"{rate} Mbit/s offered", FAST, "dma", -60, _udp(rate), "knee at 7.6 to 7.8 Mbit/s")
            for rate in (5.0, 7.0, 7.6, 8.0, 8.5, 10.0)
        ],
    ),
    "W4": (
        "TCP send block",
        [
            Point(f"{kib} KiB", SLOW, "polling", -60, _tcp(kib * 1024), "8 KiB for about 5 Mbit/s")
            for kib in (1, 2, 4, 8, 16)
        ],
    ),
    "W5": (
        "SPI clock (polling)",
        [
            Point(f"{mhz} MHz", mhz * 1_000_000, "polling", -60, _tcp(), "10 to 20 MHz: nearly +30 %")
            for mhz in (5, 10, 20, 40)
        ],
    ),
    "W6": (
        "Signal (20 MHz, DMA)",
        [
            Point(f"{rssi} dBm", FAST, "dma", rssi, _tcp(), "-70 to -50 dBm: 5 to 7 Mbit/s")
            for rssi in (-80, -70, -60, -50)
        ],
    ),
    "W7": (
        "Polling or DMA (10 MHz)",
        [Point(host, SLOW, host, -60, _tcp(), "5.24 to 6.8 Mbit/s") for host in ("polling", "dma")],
    ),
    "W8": (
        "Small writes",
        [
            Point(f"{size} B", SLOW, "polling", -60, _tcp(size), "pack into 512 B or more")
            for size in (64, 256, 512, 1400)
        ],
    ),
    "W9": (
        "All of it: 20 MHz, DMA, -50 dBm",
        [
            Point("TCP", FAST, "dma", -50, _tcp(8192), "7.5 Mbit/s"),
            Point("UDP, 9 Mbit/s offered", FAST, "dma", -50, _udp(9.0), "about 9 Mbit/s"),
        ],
    ),
    "W13": (
        "Where the time goes",
        [
            Point("10 MHz, polling: SPI share", SLOW, "polling", -60, _tcp(), "idle gaps: a starved bus"),
            Point("20 MHz, DMA: SPI share", FAST, "dma", -60, _tcp(), "idle gaps: a starved bus"),
        ],
    ),
}


def _config(point: Point, firmware: str) -> Config:
    config = field_config(seed=1, firmware=firmware)
    config.spi.clock_hz = point.hz
    config.spi.host = point.host
    config.air.rssi = point.rssi
    return config


def run(
    names: list[str], firmware_dir: Path, seconds: float = 1.0, firmware: str = "19.7.7"
) -> Iterator[Row]:
    """Measure experiments, point by point.

    Raises ValueError for an unknown name or when there is no driver in `firmware_dir`.
    """
    unknown = [name for name in names if name not in EXPERIMENTS]
    if unknown:
        raise ValueError(f"there is no experiment {unknown[0]!r}; there are {', '.join(EXPERIMENTS)}")
    for name in names:
        _, points = EXPERIMENTS[name]
        for point in points:
            with rehearse(firmware_dir, _config(point, firmware)) as rehearsal:
                bus_before = rehearsal.chip.pacer.bus_ns
                outcome = point.action(rehearsal, seconds)
                bus = (rehearsal.chip.pacer.bus_ns - bus_before) / 1e9
            yield Row(
                name,
                point.setting,
                outcome.mbps,
                outcome.loss if outcome.datagrams_sent else None,
                outcome.calls * 1400 / max(1, outcome.sent),
                min(1.0, bus / outcome.seconds),
                point.report,
            )
