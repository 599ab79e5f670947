"""The driver's private errno constants are the platform's numbers, in every file."""

import errno
import re
from pathlib import Path

FIRMWARE = Path(__file__).resolve().parents[2] / "firmware"


def test_numbers():
    seen = set()
    for file in [*(FIRMWARE / "winc1500").glob("*.py"), FIRMWARE / "iperf/layers/winc1500.py"]:
        for name, value in re.findall(r"^_(E[A-Z]+) = const\((\d+)\)", file.read_text(), re.M):
            assert getattr(errno, name) == int(value), f"{file.name}: {name}"
            seen.add(name)
    assert {"EIO", "EAGAIN", "ETIMEDOUT", "ECONNREFUSED", "ENOBUFS"} <= seen
