"""Which iperf programs this PC has, and their versions."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache

from upyperf.errors import UpyperfError

_VERSION = {
    3: re.compile(r"\biperf (3\.[\d.]+\S*)"),
    2: re.compile(r"\biperf version (2\.[\w.+-]+)"),
}
NAMES = {3: "iperf3", 2: "iperf"}
VARIABLES = {3: "UPYPERF_IPERF3", 2: "UPYPERF_IPERF"}
"""Environment variables that name a program by its path, or "none" for our own."""


@dataclass(frozen=True)
class Program:
    """An iperf program: its path and version, e.g. "3.12"."""

    path: str
    version: str
    generation: int

    @property
    def title(self) -> str:
        """Name and version, e.g. "iperf3 3.12"."""
        return f"{NAMES[self.generation]} {self.version}"

    @property
    def numbers(self) -> tuple[int, ...]:
        """The version for comparisons, e.g. (3, 12)."""
        return tuple(int(part) for part in re.findall(r"\d+", self.version)[:3])


@cache
def _version_of(path: str, generation: int) -> str | None:
    # iperf 2.0 says its version on stderr, the others on stdout.
    try:
        done = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=10, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = _VERSION[generation].search(done.stdout + done.stderr)
    return match[1] if match else None


def find(generation: int) -> Program | None:
    """The program for iPerf 2 or 3; None when this PC has none.

    Raises UpyperfError of kind config when the environment names one that is not it.
    """
    named = os.environ.get(VARIABLES[generation])
    if named == "none":
        return None
    path = shutil.which(named or NAMES[generation])
    version = _version_of(path, generation) if path else None
    if named and (path is None or version is None):
        raise UpyperfError("config", f"{VARIABLES[generation]}={named} is not an iPerf {generation} program")
    # A link from iperf to iperf3 is not iPerf 2.
    return Program(path, version, generation) if path and version else None
