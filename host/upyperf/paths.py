"""Where things are: the repository, its boards and the device package."""

from __future__ import annotations

import os
from pathlib import Path

from upyperf.errors import UpyperfError

DATA = Path(__file__).parent / "data"


def root() -> Path:
    """The repository: $UPYPERF_ROOT, else the checkout this package lies in, else the
    current folder when it is one. Raises UpyperfError of kind config."""
    named = os.environ.get("UPYPERF_ROOT")
    candidates = [Path(named)] if named else [Path(__file__).resolve().parents[2], *_upwards(Path.cwd())]
    for folder in candidates:
        if (folder / "boards").is_dir() and (folder / "firmware" / "iperf").is_dir():
            return folder
    raise UpyperfError(
        "config",
        f"no folder with boards/ and firmware/iperf/ ({', '.join(map(str, candidates[:2]))}): "
        "run upyperf in a checkout of its repository or set UPYPERF_ROOT",
    )


def _upwards(folder: Path) -> list[Path]:
    return [folder, *folder.parents]


def firmware_package() -> Path:
    """The folder of the device package `iperf`."""
    return root() / "firmware" / "iperf"
