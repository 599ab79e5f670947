"""A real socket of this machine that stands for one of the module's."""

from __future__ import annotations

import selectors
import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .transfers import Transfers

READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE


class Real:
    """A real socket and its place in the selector."""

    def __init__(self, sockets: Transfers, real: socket.socket) -> None:
        self.sockets = sockets
        self.real = real
        self.mask = 0
        self.gone = False
        real.setblocking(False)

    def want(self, mask: int) -> None:
        """Be called back for these events."""
        if mask == self.mask or self.gone:
            return
        selector = self.sockets.selector
        if not self.mask:
            selector.register(self.real, mask, self.ready)
        elif not mask:
            selector.unregister(self.real)
        else:
            selector.modify(self.real, mask, self.ready)
        self.mask = mask

    def ready(self, events: int) -> None:
        """Something can be done."""

    def close(self) -> None:
        """Close in good order."""
        if not self.gone:
            self.want(0)
            self.gone = True
            self.real.close()

    def abort(self) -> None:
        """Close and let the peer see a reset where there is one."""
        self.close()


def like_ethernet(real: socket.socket, mss: int) -> None:
    """Segments and window of a small module instead of those of the loopback interface."""
    real.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, mss)
    real.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16_384)
