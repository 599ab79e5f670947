"""A link between a virtual board's NIC and its network: delay, loss, reordering, duplication, rate.

    python -m upyperf.virtual._link_emulator delay=5ms,loss=1%,seed=1 FOLDER

Frames come and go as unix datagrams in FOLDER: the NIC's side is `nic` (ours: `emulator-nic`), the
network's `net` (ours: `emulator-net`). It ends when QEMU's sockets are gone or with its parent.
Which frame meets which draw of the (seeded) random numbers depends on what is sent when: loss is
reproducible in its statistics, not frame by frame.
"""

from __future__ import annotations

import dataclasses
import heapq
import os
import random
import re
import select
import socket
import sys
import time
from pathlib import Path

from upyperf.errors import UpyperfError

_QUEUE_BYTES = 256 * 1024  # a sender over the rate loses what does not fit, like a switch port
_REORDER_BEHIND = 3  # frames


@dataclasses.dataclass(frozen=True)
class LinkSettings:
    """Both directions alike. Times in s, probabilities 0 to 1, rate in bit/s (0: unlimited)."""

    delay: float = 0.0
    jitter: float = 0.0
    loss: float = 0.0
    reorder: float = 0.0
    dup: float = 0.0
    rate: float = 0.0
    seed: int = 1

    @classmethod
    def parse(cls, text: str) -> LinkSettings:
        """Read `delay=5ms,jitter=1ms,loss=1%,reorder=1%,dup=0.5%,rate=10M,seed=7`.

        Raises UpyperfError `config` for anything else.
        """
        values: dict[str, float] = {}
        for part in filter(None, (p.strip() for p in text.split(","))):
            name, _, value = part.partition("=")
            values[name] = _number(name, value)
        unknown = sorted(set(values) - {f.name for f in dataclasses.fields(cls)})
        if unknown:
            names = ", ".join(f.name for f in dataclasses.fields(cls))
            raise UpyperfError("config", f"link has no setting {unknown[0]!r}: there are {names}")
        seed = int(values.pop("seed", 1))
        return cls(**values, seed=seed)

    def __str__(self) -> str:
        return (
            f"delay={self.delay * 1e3:g}ms,jitter={self.jitter * 1e3:g}ms,loss={self.loss * 100:g}%,"
            f"reorder={self.reorder * 100:g}%,dup={self.dup * 100:g}%,rate={self.rate:.0f},seed={self.seed}"
        )


_UNITS = {
    "delay": {"us": 1e-6, "ms": 1e-3, "s": 1.0},
    "jitter": {"us": 1e-6, "ms": 1e-3, "s": 1.0},
    "loss": {"%": 0.01, "": 1.0},
    "reorder": {"%": 0.01, "": 1.0},
    "dup": {"%": 0.01, "": 1.0},
    "rate": {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9},
    "seed": {"": 1.0},
}


def _number(name: str, text: str) -> float:
    units = _UNITS.get(name)
    if units is None:
        raise UpyperfError("config", f"link has no setting {name!r}: there are {', '.join(_UNITS)}")
    found = re.fullmatch(r"(\d+(?:\.\d+)?(?:e\d+)?)([a-zA-Z%]*)", text)
    if not found or found[2] not in units:
        shown = ", ".join(u or "no unit" for u in units)
        raise UpyperfError("config", f"link setting {name}={text!r}: give a number with one of: {shown}")
    value = float(found[1]) * units[found[2]]
    if name in ("loss", "reorder", "dup") and value > 1:
        raise UpyperfError("config", f"link setting {name}={text!r}: at most 100%")
    return value


class Direction:
    """One way of the link: takes frames, says which are due. Times are seconds of one clock."""

    def __init__(self, settings: LinkSettings, name: str) -> None:
        self.settings = settings
        self.counts = {"frames": 0, "lost": 0, "duplicated": 0, "reordered": 0, "overflow": 0}
        self._random = random.Random(f"{settings.seed} {name}")
        self._heap: list[tuple[float, int, bytes]] = []
        self._order = 0
        self._wire_free = 0.0
        self._held: list[tuple[int, bytes]] = []  # reordered: (frames to let pass, frame)

    def put(self, frame: bytes, now: float) -> None:
        """A frame enters the link."""
        s, rnd = self.settings, self._random
        self.counts["frames"] += 1
        # Always the same number of draws for a frame, so that one setting does not shift another's.
        lost, dup, late, jitter = (rnd.random() for _ in range(4))
        if lost < s.loss:
            self.counts["lost"] += 1
            return
        if late < s.reorder:
            self.counts["reordered"] += 1
            self._held.append((_REORDER_BEHIND, frame))
            return
        self._enter(frame, now, jitter)
        if dup < s.dup:
            self.counts["duplicated"] += 1
            self._enter(frame, now, jitter)
        passed = [(left - 1, held) for left, held in self._held]
        self._held = [(left, held) for left, held in passed if left > 0]
        for left, held in passed:
            if left <= 0:
                self._enter(held, now, jitter)

    def release(self, now: float) -> None:
        """Let held frames go: no others came that could overtake them."""
        held, self._held = self._held, []
        for _, frame in held:
            self._enter(frame, now, 0.0)

    def _enter(self, frame: bytes, now: float, jitter: float) -> None:
        s = self.settings
        start = now
        if s.rate:
            start = max(now, self._wire_free)
            if (start - now) * s.rate / 8 > _QUEUE_BYTES:
                self.counts["overflow"] += 1
                return
            start += (len(frame) + 24) * 8 / s.rate  # preamble, FCS, gap
            self._wire_free = start
        heapq.heappush(self._heap, (start + s.delay + jitter * s.jitter, self._order, frame))
        self._order += 1

    def due(self, now: float) -> list[bytes]:
        """Frames that leave the link now."""
        out = []
        while self._heap and self._heap[0][0] <= now:
            out.append(heapq.heappop(self._heap)[2])
        return out

    def next_due(self) -> float | None:
        """When the next frame leaves, None when none is on the way."""
        return self._heap[0][0] if self._heap else None

    @property
    def holding(self) -> bool:
        """Whether a reordered frame waits for others to overtake it."""
        return bool(self._held)


def _bind(path: Path) -> socket.socket:
    end = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    end.bind(str(path))
    end.setblocking(False)
    end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    return end


def run(settings: LinkSettings, folder: Path) -> None:
    """Carry frames until the parent process is gone or the folder is removed."""
    ends = [_bind(folder / "emulator-nic"), _bind(folder / "emulator-net")]
    targets = [str(folder / "nic"), str(folder / "net")]
    ways = [Direction(settings, "up"), Direction(settings, "down")]  # from the NIC, to the NIC
    parent = os.getppid()
    backlog: list[list[bytes]] = [[], []]
    while os.getppid() == parent and folder.exists():
        now = time.monotonic()
        for i, way in enumerate(ways):
            other = 1 - i
            queue = backlog[i]
            queue += way.due(now)
            while queue:
                try:
                    ends[other].sendto(queue[0], targets[other])
                except BlockingIOError:
                    break
                except OSError:
                    pass  # QEMU is not there (yet, or any more)
                queue.pop(0)
        nexts = [t for t in (way.next_due() for way in ways) if t is not None]
        wait = min([t - now for t in nexts] + [0.2])
        if any(backlog) or any(way.holding for way in ways):
            wait = min(wait, 0.002)
        readable = select.select(ends, [], [], max(wait, 0.0))[0]
        now = time.monotonic()
        for i, way in enumerate(ways):
            if ends[i] in readable:
                for _ in range(64):
                    try:
                        way.put(ends[i].recv(65536), now)
                    except BlockingIOError:
                        break
            elif way.holding:
                way.release(now)


def main(argv: list[str]) -> int:
    run(LinkSettings.parse(argv[0]), Path(argv[1]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
