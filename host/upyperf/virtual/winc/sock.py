"""One socket id of the module, and the numbers of the socket protocol (fact sheet 5.6-5.8)."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from . import structs
from .structs import UDP_IDS

if TYPE_CHECKING:
    from .datagrams import DatagramFlow
    from .listeners import Listener
    from .streams import StreamFlow

OK, BAD_ADDRESS, IN_USE, TOO_MANY_TCP, INVALID_ARG, INVALID = 0, -1, -2, -3, -6, -9
NEED_ADDRESS, ABORTED, TIMEOUT, BUFFER_FULL = -11, -12, -13, -14
BIND, LISTEN, ACCEPT, CONNECT, SEND, RECV, SENDTO, RECVFROM, CLOSE, SETSOCKOPT = (
    0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x49, 0x4F,
)  # fmt: skip
UDP_CALLBACK = 0
NOT_SIMULATED = range(0x4B, 0x58)


class State(Enum):
    """What the host may do with an id."""

    CLOSED = "closed"
    BOUND = "bound"
    LISTENING = "listening"
    CONNECTING = "connecting"
    CONNECTED = "connected"
    ENDED = "ended by the peer"
    DEAD = "dead"


class Sock:
    """One id of the module."""

    def __init__(self, ident: int) -> None:
        self.id = ident
        self.udp = ident in UDP_IDS
        self.clear()

    def clear(self) -> None:
        """Free again."""
        self.state = State.CLOSED
        self.session = 0
        self.stream: StreamFlow | None = None
        self.datagram: DatagramFlow | None = None
        self.listener: Listener | None = None
        self.pending: structs.RecvCommand | None = None
        self.recv_count = 0
        self.callback = True
        self.last_peer: tuple[str, int] | None = None
        self.end_told = False
