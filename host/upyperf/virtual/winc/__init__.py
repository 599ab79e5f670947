"""A simulator of the ATWINC15x0's SPI and HIF side (docs/winc-sim.md). Its results are simulated."""

from .chip import Chip
from .clock import ManualClock, RealClock
from .config import AccessPoint, Config, field_config, load
from .rules import RULES, RuleError, Violation

__all__ = [
    "RULES",
    "AccessPoint",
    "Chip",
    "Config",
    "ManualClock",
    "RealClock",
    "RuleError",
    "Violation",
    "field_config",
    "load",
]
