"""A whole job of the agent fits into the heap of a small board.

Users are promised 40 KiB on a 32-bit port. Here it is the 64-bit unix port, whose objects take 1.6 times
the room: the limits stand just above what the jobs take today, so that growth shows. The board itself is
tested in tests/port.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import zlib
from pathlib import Path
from typing import Any

import pytest
from harness import device, ours, programs
from peers import Peer

# (version, udp, reverse): KiB; the smallest that worked was 3 KiB less
HEAP_KIB = {
    (3, False, False): 73, (3, False, True): 71, (3, True, False): 73, (3, True, True): 74,
    (2, False, False): 69, (2, False, True): 74, (2, True, False): 73, (2, True, True): 80,
}  # fmt: skip
JOBS = [
    pytest.param(
        version, udp, reverse, id=f"iperf{version}-{'udp' if udp else 'tcp'}{'-R' if reverse else ''}"
    )
    for version, udp, reverse in HEAP_KIB
]


def package() -> Path:
    """The package as a board gets it: .mpy, bytecode."""
    return device.package_path(device.Variant("mpy", emit={}), ours.FIRMWARE, Path(tempfile.gettempdir()))


def run(heap_kib: int, **options: Any) -> list[dict[str, Any]]:
    """The records of a job on a board with so much heap."""
    job = json.dumps({"id": "r1", "role": "client", "options": options})
    code = f"import sys; sys.path.insert(0, {str(package())!r})\nfrom iperf import agent\nagent.run({job!r})"
    done = subprocess.run(
        [device.micropython(), "-X", f"heapsize={heap_kib}k", "-c", code],
        capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    records = []
    for line in done.stdout.splitlines():
        mark, _, _, crc, body = line.split(" ", 4)
        assert mark == "#U"
        assert int(crc, 16) == zlib.crc32(body.encode())
        records.append(json.loads(body))
    assert records, done.stdout + done.stderr
    return records


def newest(peers: list[Peer], program: str) -> Peer:
    return [p for p in peers if p.program == program][-1]


@pytest.mark.parametrize(("version", "udp", "reverse"), JOBS)
def test_a_job_fits(peers: list[Peer], version: int, udp: bool, reverse: bool) -> None:
    peer = newest(peers, "iperf3" if version == 3 else "iperf")
    with programs.server(peer, udp=udp and version == 2) as real:
        records = run(
            HEAP_KIB[version, udp, reverse], host=programs.LOOPBACK, port=real.port, time=1,
            version=version, udp=udp, reverse=reverse,
        )  # fmt: skip
    assert records[-1]["status"] == "ok", records[-2]
    result = next(r for r in records if r["k"] == "result")
    assert (result["received"] if reverse else result["sent"])["bytes"] > 0


def test_too_small_a_heap_is_one_clear_error() -> None:
    with ours.server(ours.INTERPRETERS[1], version=3) as server:
        records = run(40, host=programs.LOOPBACK, port=server.port, time=1)
    assert records[-1] == {"k": "done", "run": "r1", "status": "error", "records": len(records)}
    assert records[-2]["kind"] == "memory"
    assert "memory" in records[-2]["text"]
