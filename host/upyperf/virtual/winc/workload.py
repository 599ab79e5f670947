"""How much this machine let the simulator and its client wait: what tells a slow host from an idle one."""

from __future__ import annotations

import os
import socket
import struct
from pathlib import Path


def _schedstat(pid: int) -> tuple[int, int]:
    """(time on a CPU, time in the queue for one) of a process in nanoseconds; zeros when not known."""
    try:
        fields = Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()
        return int(fields[0]), int(fields[1])
    except (OSError, ValueError, IndexError):
        return 0, 0


def peer_pid(sock: socket.socket) -> int | None:
    """Process at the other end of a Unix socket; None for TCP."""
    if sock.family != socket.AF_UNIX:
        return None
    raw = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid: int = struct.unpack("3i", raw)[0]
    return pid or None


class Workload:
    """Time in which a client worked or wanted to, plus the time in which we wanted to."""

    def __init__(self, client: int | None = None) -> None:
        self.client = client

    @staticmethod
    def delay_ns() -> int:
        """Time in which this process waited for a CPU, in nanoseconds since its start."""
        return _schedstat(os.getpid())[1]

    def busy_ns(self) -> int:
        """A counter in nanoseconds: only its growth means anything."""
        total = self.delay_ns()
        if self.client is not None:
            total += sum(_schedstat(self.client))
        return total
