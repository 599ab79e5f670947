"""How datagrams travel between the module's UDP and real sockets of this machine, through the air's model."""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from .real import READ, Real

if TYPE_CHECKING:
    from .sock import Sock
    from .transfers import Transfers

Done = Callable[[int], None]
MAX_DATAGRAM = 1472


class DatagramFlow(Real):
    """One UDP socket."""

    def __init__(self, sockets: Transfers, owner: Sock, local: tuple[str, int] | None) -> None:
        super().__init__(sockets, socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        self.owner = owner
        self._held: deque[tuple[bytes, tuple[str, int]]] = deque()
        self.dropped = 0
        try:
            self.real.bind(local or ("", 0))
        except OSError:
            self.real.close()
            raise
        self.want(READ)

    @property
    def port(self) -> int:
        """The local port."""
        return int(self.real.getsockname()[1])

    def send(self, data: bytes, address: tuple[str, int], done: Done) -> None:
        """Send a datagram; done(bytes) when the module has handed it to the radio."""
        air = self.sockets.config.air
        self.sockets.air.send(len(data), air.module_udp_us, lambda: self._out(data, address), droppable=True)
        if air.enabled:
            self.sockets.schedule.after_us(air.udp_free_us, lambda: done(len(data)))
        else:
            done(len(data))

    def _out(self, data: bytes, address: tuple[str, int]) -> None:
        if self.gone:
            return
        try:
            self.real.sendto(data, address)
        except OSError:
            self.dropped += 1  # nobody there, or this machine's buffer is full: UDP may lose

    def ready(self, events: int) -> None:
        for _ in range(64):
            try:
                data, (host, port) = self.real.recvfrom(65_536)
            except BlockingIOError:
                return
            except OSError:
                continue  # an ICMP error of an earlier datagram
            if len(data) > MAX_DATAGRAM:
                self.dropped += 1  # would need IP reassembly, which the module has no room for
                continue
            came = (data, (str(host), int(port)))
            air = self.sockets.config.air
            self.sockets.air.send(len(data), air.module_udp_us, partial(self._came, came), droppable=True)

    def _came(self, datagram: tuple[bytes, tuple[str, int]]) -> None:
        if len(self._held) >= self.sockets.config.sockets.rx_datagrams:
            self.dropped += 1
            return
        self._held.append(datagram)
        if self.owner.datagram is self:
            self.sockets.serve(self.owner)

    def take(self) -> tuple[bytes, tuple[str, int]] | None:
        """The next datagram and its sender."""
        return self._held.popleft() if self._held else None
