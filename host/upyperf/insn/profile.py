"""Which function costs what: every instruction of one transfer, counted by function.

QEMU executes one instruction a block and logs each (`-d exec,nochain`); the log between the two calls of
lwipstats.cpu() around the transfer is the transfer. Exact, slow, no plugin to compile.
"""

from __future__ import annotations

import bisect
import re
import subprocess
import tempfile
from collections import Counter as Tally
from pathlib import Path
from typing import Any

from upyperf.errors import UpyperfError
from upyperf.insn.measure import Counter
from upyperf.virtual.qemu import QemuBoard

_LINE = re.compile(rb"\[[0-9a-f]+/([0-9a-f]+)/")
_MARK = "lwipstats_cpu"


def symbols(elf: Path) -> tuple[list[int], list[str]]:
    """Addresses and names of the functions of an ELF file, sorted by address."""
    done = subprocess.run(
        ["arm-none-eabi-nm", "--numeric-sort", "--defined-only", elf],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    if done.returncode:
        raise UpyperfError("config", f"arm-none-eabi-nm cannot read {elf}: {done.stderr.strip()}")
    table: dict[int, str] = {}
    for line in done.stdout.splitlines():
        address, kind, name = line.split(maxsplit=2)
        if kind in "tTwW" and not name.startswith("$"):
            table[int(address, 16) & ~1] = name
    return sorted(table), [table[a] for a in sorted(table)]


def tally(log: Path, elf: Path) -> Tally[str]:
    """Instructions of each function between the first two calls of the mark in the log."""
    addresses, names = symbols(elf)
    mark = addresses[names.index(_MARK)]
    counts: Tally[int] = Tally()
    state = 0
    with log.open("rb") as lines:
        for line in lines:
            found = _LINE.search(line)
            if not found:
                continue
            pc = int(found[1], 16)
            if pc == mark:
                state += 1
                if state == 2:
                    break
            if state == 1:
                counts[pc] += 1
    if state < 2:
        raise UpyperfError("board", "the execution log does not hold the transfer: does QEMU log 'exec'?")
    by_name: Tally[str] = Tally()
    for pc, n in counts.items():
        by_name[names[max(0, bisect.bisect_right(addresses, pc) - 1)]] += n
    return by_name


def one_insn_arguments() -> list[str]:
    """QEMU's option for one instruction a block: its name changed with QEMU 8.1."""
    done = subprocess.run(
        ["qemu-system-arm", "--version"], capture_output=True, text=True, timeout=30, check=False
    )
    found = re.search(r"version (\d+)\.(\d+)", done.stdout)
    if found and (int(found[1]), int(found[2])) >= (8, 1):
        return ["-accel", "tcg,one-insn-per-tb=on"]
    return ["-singlestep"]


def profile(
    board: object,
    key: tuple[str, str, str, int],
    total: int = 128 << 10,
    options: dict[str, Any] | None = None,
) -> list[tuple[str, float]]:
    """(function, instructions per payload byte) of one transfer of `total` bytes, the costliest first."""
    layer, transport, direction, size = key
    total = max(total // size, 1) * size
    with tempfile.TemporaryDirectory(prefix="upyperf-profile-") as folder:
        log = Path(folder, "exec.log")
        further = [*one_insn_arguments(), "-D", str(log)]
        with Counter(board, {**(options or {}), "qemu": further}) as counter:
            machine = counter.board
            if not isinstance(machine, QemuBoard):
                raise UpyperfError("unsupported", "profiles are for boards on QEMU")
            counter.transfer(layer, transport, direction, size, total)
            machine.qmp.monitor("log exec,nochain")
            counter.transfer(layer, transport, direction, size, total)
            machine.qmp.monitor("log none")
            by_name = tally(log, machine.elf)
    return [(name, n / total) for name, n in by_name.most_common()]
