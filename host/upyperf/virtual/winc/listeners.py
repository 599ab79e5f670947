"""The module's TCP servers: real listening sockets of this machine."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from .real import READ, Real, like_ethernet
from .streams import StreamFlow

if TYPE_CHECKING:
    from .sock import Sock
    from .sockets import Sockets


class Listener(Real):
    """A bound, later listening TCP socket."""

    sockets: Sockets

    def __init__(self, sockets: Sockets, owner: Sock, address: tuple[str, int]) -> None:
        super().__init__(sockets, socket.socket(socket.AF_INET, socket.SOCK_STREAM))
        self.owner = owner
        self.real.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self.real.bind(address)
        except OSError:
            self.real.close()
            raise

    @property
    def port(self) -> int:
        """The local port."""
        return int(self.real.getsockname()[1])

    def listen(self, backlog: int) -> int:
        """Begin to listen. Returns a status of the module: 0, or -2 when the port is in use."""
        like_ethernet(self.real, self.sockets.config.sockets.mss)
        try:
            # The module takes connections off the network at once; its ids are what runs out.
            self.real.listen(max(8, backlog))
        except OSError:
            return -2
        self.want(READ)
        return 0

    def ready(self, events: int) -> None:
        if not self.sockets.accept(self.owner, self._take):
            self.want(0)
            self.sockets.schedule.after_us(50_000, self._again)

    def _again(self) -> None:
        if not self.gone and not self.mask:
            self.want(READ)

    def _take(self, sock: Sock) -> tuple[StreamFlow, tuple[str, int]] | None:
        try:
            real, address = self.real.accept()
        except OSError:
            return None
        flow = StreamFlow(self.sockets, sock, real)
        try:
            flow.start()
        except OSError:
            flow.failed = True
        return flow, (str(address[0]), int(address[1]))
