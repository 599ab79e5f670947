"""What a board says it is, and whether that is the board that was asked for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from upyperf.errors import UpyperfError

CODE = """
def _upyperf():
    import sys
    try:
        from machine import unique_id
        uid = bytes(unique_id())
    except (ImportError, AttributeError):
        uid = None
    i = sys.implementation
    print(repr((i[0], tuple(i[1]), getattr(i, '_machine', ''), sys.platform, uid, sys.version,
                getattr(i, '_mpy', None))))
_upyperf()
del _upyperf
"""


@dataclass(frozen=True)
class Identity:
    """implementation: "micropython" or "circuitpython"; version: numbers, e.g. (1, 24, 0), a word such
    as "preview" may follow; machine: sys.implementation._machine; platform: sys.platform;
    unique_id: hex, None where the board has none; mpy: sys.implementation._mpy, None without .mpy."""

    implementation: str
    version: tuple[int | str, ...]
    machine: str
    platform: str
    unique_id: str | None
    sys_version: str
    mpy: int | None

    @classmethod
    def parse(cls, answer: tuple[Any, ...]) -> Identity:
        """From what CODE prints."""
        name, version, machine, platform, uid, sys_version, mpy = answer
        return cls(
            str(name),
            tuple(version),
            str(machine),
            str(platform),
            uid.hex() if isinstance(uid, bytes) else None,
            str(sys_version),
            mpy,
        )

    def require(self, board: str, device: str, *, platform: str | None, machine: str | None) -> None:
        """Raise UpyperfError `board` unless this is the board named `board`.

        platform: what sys.platform must be; machine: regular expression that must be found in
        sys.implementation._machine; None for either: anything will do."""
        if (platform is None or platform == self.platform) and (
            machine is None or re.search(machine, self.machine)
        ):
            return
        raise UpyperfError(
            "board",
            f"wrong board on {device}: {self.machine or '?'} ({self.platform}), not {board}: "
            "name the right port, or the right board",
        )
