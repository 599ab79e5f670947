"""Run cells on a board and count."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from statistics import median
from typing import Any

from pydantic import BaseModel

from upyperf import link, virtual
from upyperf.errors import UpyperfError
from upyperf.insn.peer import Peer
from upyperf.paths import DATA

REPEATS = 5
TOTAL_BYTES = {"tcp send": 2 << 20, "tcp receive": 2 << 20, "udp send": 1 << 20, "udp receive": 128 << 10}
UDP_PAYLOAD = 1472
TCP_SIZES = (1460, 4096, 16384)
_BOARD_CODE = DATA / "board" / "insn.py"
_TIMEOUT_S = 180.0


class Cell(BaseModel):
    """One row of the table. `size`: bytes of each write or read; `spread`: (max - min) / median."""

    layer: str
    """socket, netconn, raw; netbuf is netconn receiving into Netbufs instead of by readinto."""
    transport: str
    direction: str
    size: int
    insn_per_byte: float
    repeats: int
    spread: float

    @property
    def key(self) -> tuple[str, str, str, int]:
        """What identifies the cell."""
        return self.layer, self.transport, self.direction, self.size


def all_cells() -> list[tuple[str, str, str, int]]:
    """(layer, transport, direction, size) of the whole table."""
    cells = [(layer, "tcp", "send", s) for layer in ("socket", "netconn", "raw") for s in TCP_SIZES]
    cells += [(layer, "tcp", "receive", s) for layer in ("socket", "netconn") for s in TCP_SIZES]
    cells += [(layer, "tcp", "receive", 16384) for layer in ("netbuf", "raw")]
    cells += [(layer, "udp", "send", UDP_PAYLOAD) for layer in ("socket", "netconn")]
    cells += [(layer, "udp", "receive", UDP_PAYLOAD) for layer in ("socket", "netconn", "netbuf")]
    return cells


class Counter:
    """A started board that counts transfers; a context manager."""

    def __init__(self, board: object, options: dict[str, Any]) -> None:
        name = getattr(board, "virtual", None)
        launcher = name.launcher if name else "qemu"
        self.board = virtual.start(launcher, board, {**options, "icount": 0})
        try:
            self.peer = Peer()
            self.link = link.connect(self.board.device, baud=115200, timeout=30.0, log=None)
            self.link.exec(_BOARD_CODE.read_text(), _TIMEOUT_S)
            self.link.exec("nic_up()", _TIMEOUT_S)
        except BaseException:
            self.board.close()
            raise

    def eval(self, expression: str) -> Any:
        """Evaluate on the board; the answer must be a literal."""
        text = self.link.exec(f"print(repr({expression}))", _TIMEOUT_S)
        return ast.literal_eval(text.strip().splitlines()[-1])

    def transfer(self, layer: str, transport: str, direction: str, size: int, total: int) -> float:
        """Instructions per payload byte of one transfer. Raises UpyperfError `board`: bytes are missing."""
        port = {
            "tcp send": self.peer.tcp_sink, "tcp receive": self.peer.tcp_source,
            "udp send": self.peer.udp_sink, "udp receive": self.peer.udp_source,
        }[f"{transport} {direction}"]  # fmt: skip
        host = self.board.peer_host
        moved, busy_ns, _ = self.eval(
            f"run({layer!r},{transport!r},{direction!r},{size},{total},{host!r},{port})"
        )
        if moved < total * (0.9 if (transport, direction) == ("udp", "receive") else 1):
            raise UpyperfError(
                "board", f"{layer} {transport} {direction}: only {moved} of {total} bytes arrived"
            )
        return float(busy_ns / moved)

    def cell(self, key: tuple[str, str, str, int], repeats: int = REPEATS) -> Cell:
        """Median and spread of `repeats` transfers, after one that warms up (ARP, pools)."""
        layer, transport, direction, size = key
        total = TOTAL_BYTES[f"{transport} {direction}"] // size * size
        self.transfer(layer, transport, direction, size, 64 * size)
        found = [self.transfer(layer, transport, direction, size, total) for _ in range(repeats)]
        middle = median(found)
        spread = round((max(found) - min(found)) / middle, 4)
        return Cell(
            layer=layer, transport=transport, direction=direction, size=size,
            insn_per_byte=round(middle, 3), repeats=repeats, spread=spread,
        )  # fmt: skip

    def close(self) -> None:
        """End board and peer."""
        self.link.close()
        self.peer.close()
        self.board.close()

    def __enter__(self) -> Counter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def measure(
    board: object,
    cells: Iterable[tuple[str, str, str, int]] | None = None,
    *,
    repeats: int = REPEATS,
    options: dict[str, Any] | None = None,
    on_cell: Callable[[Cell], None] | None = None,
) -> tuple[list[Cell], dict[str, Any]]:
    """Measure cells (all by default): the rows, and the lwIP options of the firmware.

    Raises UpyperfError as virtual.start() and the link do.
    """
    rows = []
    with Counter(board, options or {}) as counter:
        profile = counter.eval("lwipstats.profile()")
        for key in cells or all_cells():
            rows.append(counter.cell(key, repeats))
            if on_cell:
                on_cell(rows[-1])
    return rows, profile
