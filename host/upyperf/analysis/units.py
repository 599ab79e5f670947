"""Figures with their units: the one place where numbers become text and text becomes numbers.

Rates count 1000 (1 Mbit/s = 10^6 bit/s), sizes count 1024 (1 MiB = 2^20 bytes), as iperf's do.
A figure that is not known is written as a dash, never as zero.
"""

import math
import re
from itertools import pairwise

UNKNOWN = "–"
"""How a figure that is not known is written."""

_RATE_PREFIXES = (("bit/s", 1.0), ("kbit/s", 1e3), ("Mbit/s", 1e6), ("Gbit/s", 1e9), ("Tbit/s", 1e12))
_SIZE_PREFIXES = (("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40))
_TIME_PREFIXES = (("µs", 1), ("ms", 1_000), ("s", 1_000_000))

_NUMBER = r"(?P<sign>[+\-−]?)\s*(?P<number>\d+(?:\.\d*)?|\.\d+)(?:e(?P<exp>[+\-]?\d+))?"
_RATE_RE = re.compile(
    _NUMBER + r"\s*(?P<prefix>[kmgt]?)(?P<unit>bit/s|bits/s|bit/sec|bits/sec|bps|b/s|byte/s|bytes/s|byte/sec|"
    r"bytes/sec|)",
    re.IGNORECASE,
)
_PERCENT_RE = re.compile(_NUMBER + r"\s*%")


def significant(value: float) -> str:
    """Three significant digits without an exponent ("0.05", "9.43", "94.3", "943", "1234")."""
    decimals = 2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0
    text = f"{value:.{decimals}f}"
    # "-0.00" is a zero that only looks like a loss.
    return text.lstrip("-") if not text.strip("-0.") else text


def _scaled(value: float, prefixes: tuple[tuple[str, float], ...]) -> tuple[str, float]:
    """The unit in which `value` has one to three digits before the point after rounding, and its size."""
    unit, scale = prefixes[0]
    for name, size in prefixes[1:]:
        # 999.6 kbit/s would round to "1000 kbit/s": the next prefix takes it.
        if abs(value) / scale < 999.5:
            break
        unit, scale = name, size
    return unit, scale


def format_rate(bps: float | None) -> str:
    """A rate given in bit/s as text with three significant digits, like "94.1 Mbit/s"."""
    if bps is None or not math.isfinite(bps):
        return UNKNOWN
    unit, scale = _scaled(bps, _RATE_PREFIXES)
    return f"{significant(bps / scale)} {unit}"


def format_mbit(bps: float | None) -> str:
    """A rate given in bit/s as the bare number of Mbit/s, for columns whose head carries the unit."""
    if bps is None or not math.isfinite(bps):
        return UNKNOWN
    mbit = bps / 1e6
    # A board of some kbit/s must not show as 0.00.
    return f"{mbit:.4f}" if 0 < abs(mbit) < 0.095 else significant(mbit)


def format_rate_spread(centre_bps: float, spread_bps: float | None) -> str:
    """ "12.3 ± 0.4 Mbit/s": both figures in bit/s, shown in the centre's unit and with its decimals."""
    unit, scale = _scaled(centre_bps, _RATE_PREFIXES)
    text = significant(centre_bps / scale)
    if spread_bps is None or not math.isfinite(spread_bps):
        return f"{text} {unit}"
    decimals = len(text.partition(".")[2])
    return f"{text} ± {spread_bps / scale:.{decimals}f} {unit}"


def format_size(size_bytes: float | None) -> str:
    """A size given in bytes as text: "512 B", "1.25 MiB"."""
    if size_bytes is None or not math.isfinite(size_bytes):
        return UNKNOWN
    unit, scale = "B", 1
    for name, size in _SIZE_PREFIXES[1:]:
        # 1023.6 KiB would round to "1024 KiB".
        if abs(size_bytes) / scale < 1023.5:
            break
        unit, scale = name, size
    if scale == 1:
        return f"{size_bytes:.0f} B"
    return f"{significant(size_bytes / scale)} {unit}"


def format_time_us(time_us: float | None) -> str:
    """A time given in microseconds as text: "45 µs", "1.25 ms", "10.0 s", "2 h 05 min"."""
    if time_us is None or not math.isfinite(time_us):
        return UNKNOWN
    if abs(time_us) >= 120e6:
        minutes, seconds = divmod(round(abs(time_us) / 1e6), 60)
        hours, minutes = divmod(minutes, 60)
        sign = "-" if time_us < 0 else ""
        return f"{sign}{hours} h {minutes:02d} min" if hours else f"{sign}{minutes} min {seconds:02d} s"
    unit, scale = _scaled(time_us, _TIME_PREFIXES)
    if scale == 1 and float(time_us).is_integer():
        return f"{time_us:.0f} µs"
    return f"{significant(time_us / scale)} {unit}"


def format_count(count: int | None) -> str:
    """A count with thin grouping ("12 345"), so that long counters stay legible."""
    return UNKNOWN if count is None else f"{count:,}".replace(",", "\u202f")


def format_percent(percent: float | None, *, signed: bool = False, decimals: int = 1) -> str:
    """A percentage as text: "0.4 %", with `signed` "+1.2 %" and "−8.1 %" (a true minus sign)."""
    if percent is None or not math.isfinite(percent):
        return UNKNOWN
    text = f"{percent:.{decimals}f}"
    if not text.strip("-0."):
        text = text.lstrip("-")  # no "-0.0 %"
    elif signed and percent > 0:
        text = "+" + text
    return text.replace("-", "−") + " %"


def format_p(p: float) -> str:
    """A p-value as text: "p = 0.004", and "p < 0.001" below that."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def format_loss(lost: int | None, packets: int | None) -> str:
    """Datagrams as "3/800 (0.38 %)"; a dash when either is not known."""
    if lost is None or packets is None:
        return UNKNOWN
    percent = loss_percent(lost, packets)
    shown = format_percent(percent, decimals=2 if percent is not None and 0 < percent < 10 else 1)
    return f"{format_count(lost)}/{format_count(packets)} ({shown})"


def loss_percent(lost: int, packets: int) -> float | None:
    """Lost datagrams in percent of those sent; None when none were sent."""
    return 100.0 * lost / packets if packets > 0 else None


def _number(match: re.Match[str]) -> float:
    value = float(match["number"] + (f"e{match['exp']}" if match["exp"] else ""))
    if not math.isfinite(value):
        raise ValueError(f"{match.string.strip()[:40]!r} is too large")
    return -value if match["sign"] in ("-", "−") else value


def parse_rate(text: str) -> float:
    """Rate in bit/s of "80 Mbit/s", "80M" (iperf's suffix), "640 kbit/s", "1.5 MByte/s" or "1000000".

    Prefixes count 1000. A bare "B" is refused: "MB/s" and "Mb/s" are confused too often.
    Raises ValueError with one line of text that says what would be right.
    """
    match = _RATE_RE.fullmatch(text.strip())
    if match is None or (match["unit"] == "B/s"):
        raise ValueError(
            f"{text.strip()[:40]!r} is not a rate: write it like '80 Mbit/s', '640k' or '1.5 MByte/s'"
        )
    scale: float = {"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}[match["prefix"].lower()]
    if match["unit"].lower().startswith("byte"):
        scale *= 8
    return _number(match) * scale


def parse_percent(text: str) -> float:
    """Percentage of "-5%", "−8.1 %" or "+2 %". Raises ValueError with one line of text."""
    match = _PERCENT_RE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text.strip()[:40]!r} is not a percentage: write it like '-5%'")
    return _number(match)


_SPARKS = "▁▂▃▄▅▆▇█"


def sparkline(values: list[float], width: int = 20) -> str:
    """The values as a line of block characters, scaled from zero to the largest, at most `width` long.

    More values than `width` are averaged in equal groups, so that a long run keeps its shape.
    """
    values = [v for v in values if math.isfinite(v)]
    if not values or width <= 0:
        return ""
    if len(values) > width:
        edges = [i * len(values) // width for i in range(width + 1)]
        values = [sum(values[a:b]) / (b - a) for a, b in pairwise(edges)]
    top = max(values)
    if top <= 0:
        return _SPARKS[0] * len(values)
    return "".join(_SPARKS[min(7, max(0, round(v / top * 7)))] for v in values)
