"""iperf's quantities: numbers with K/M/G suffixes, as each version defines them.

iperf3: rates count 1000, sizes 1024, the letter's case does not matter. iPerf 2: a lower-case
letter counts 1000, an upper-case one 1024, for rates and sizes alike (docs: iperf's A1 and B2).
"""

from __future__ import annotations

import re

_NUMBER = re.compile(r"(\d+(?:\.\d*)?|\.\d+)([kKmMgGtT]?)")
_POWER = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def _parse(text: str | int | float, step: int, version: int, what: str) -> int:
    if isinstance(text, bool):
        raise ValueError(f"{text!r} is not {what}")
    if isinstance(text, int | float):
        value = float(text)
    else:
        match = _NUMBER.fullmatch(text.strip())
        if not match:
            raise ValueError(f"{text!r} is not {what}: write a number of 0 or more, like 10M or 1500")
        suffix = match[2]
        if version == 2:
            step = 1024 if suffix.isupper() else 1000
        value = float(match[1]) * float(step) ** _POWER[suffix.lower()]
    if not 0 <= value < 2**53:
        raise ValueError(f"{text!r} is out of range")
    return round(value)


def rate(text: str | int | float, version: int) -> int:
    """A rate in bit/s (iperf's -b). Raises ValueError."""
    return _parse(text, 1000, version, "a rate")


def size(text: str | int | float, version: int) -> int:
    """A size in bytes (iperf's -l, -n, -w, -M). Raises ValueError."""
    return _parse(text, 1024, version, "a size")
