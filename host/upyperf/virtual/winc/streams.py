"""How bytes travel between the module's TCP and real sockets of this machine, through the air's model."""

from __future__ import annotations

import contextlib
import fcntl
import socket
import struct
import termios
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from .real import READ, WRITE, Real, like_ethernet
from .structs import ip_bytes, pack_addr

if TYPE_CHECKING:
    from .sock import Sock
    from .sockets import Sockets

Done = Callable[[int], None]
Free = Callable[[], None]
ABORTED, TIMEOUT = -12, -13


class StreamFlow(Real):
    """One TCP connection."""

    sockets: Sockets

    def __init__(self, sockets: Sockets, owner: Sock, accepted: socket.socket | None = None) -> None:
        config = sockets.config.sockets
        real = accepted or socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        super().__init__(sockets, real)
        real.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if accepted is None:
            like_ethernet(real, config.mss)
        self.owner = owner
        self.peer = bytes(8)
        self.failed = False
        self._connecting = False
        self._fin = False
        self._in_air = 0
        self._held: deque[bytes] = deque()
        self._held_bytes = 0
        self._uplink: deque[_Segment] = deque()  # committed, on their way through the air
        self._outbox: deque[_Segment] = deque()  # arrived, but the peer's window is full
        self._unacked: deque[_Segment] = deque()
        self._closing: Callable[[StreamFlow], None] | None = None

    # Connecting

    def connect(self, address: tuple[str, int]) -> None:
        """Dial; the outcome is told through Sockets.connected()."""
        self._connecting = True
        try:
            self.real.connect(address)
        except BlockingIOError:
            pass
        except OSError:
            self.sockets.schedule.after_us(self.sockets.config.air.rtt_us, lambda: self._connected(ABORTED))
            return
        self.want(WRITE)
        self.sockets.schedule.after_us(
            self.sockets.config.sockets.connect_timeout_us, lambda: self._connected(TIMEOUT)
        )

    def _connected(self, status: int) -> None:
        if not self._connecting or self.gone:
            return
        self._connecting = False
        if status:
            self.failed = True
            self.want(0)
        else:
            self.start()
        if self.owner.stream is self:
            self.sockets.connected(self.owner, status)

    def start(self) -> None:
        """The connection stands: begin to read."""
        host, port = self.real.getpeername()[:2]
        self.peer = pack_addr(ip_bytes(host), port)
        self._interest()

    def ready(self, events: int) -> None:
        if self._connecting:
            error = self.real.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            self.want(0)
            delay = self.sockets.config.air.rtt_us if self.sockets.config.air.enabled else 0.0
            self.sockets.schedule.after_us(delay, lambda: self._connected(ABORTED if error else 0))
            return
        if events & WRITE:
            self._push()
        if events & READ and not self.gone:
            self._pull()

    def _interest(self) -> None:
        mask = WRITE if self._outbox else 0
        room = self._in_air + self._held_bytes < self.sockets.config.sockets.rx_window
        if room and not self._fin and not self.failed and not self.sockets.air.down:
            mask |= READ
        self.want(mask)

    def _broken(self) -> None:
        self.failed = True
        self.want(0)
        waiting = [*self._unacked, *self._outbox]
        self._unacked.clear()
        self._outbox.clear()
        for segment in waiting:
            segment.done(ABORTED)
        if self.owner.stream is self:
            self.sockets.serve(self.owner)
        self._finish()

    # Uplink

    @property
    def unfinished(self) -> bool:
        """Whether data of the host are still on their way."""
        return bool(self._uplink or self._outbox) and not self.failed

    def send(self, data: bytes, done: Done, free: Free) -> None:
        """Take a segment; done(bytes or error) when the peer's side has it.

        free() alone when nobody waits for the outcome any more.
        """
        if self.failed:
            done(ABORTED)
            return
        self._uplink.append(_Segment(memoryview(data), len(data), done, free))
        self.sockets.air.send(
            len(data), self.sockets.config.air.module_tcp_us, self._arrived, droppable=False
        )

    def _arrived(self) -> None:
        if not self._uplink:
            return
        segment = self._uplink.popleft()
        if self.failed or self.gone:
            segment.done(ABORTED)
        else:
            self._outbox.append(segment)
            self._push()
        self._finish()

    def _push(self) -> None:
        while self._outbox:
            segment = self._outbox[0]
            try:
                sent = self.real.send(segment.view) if segment.view else 0
            except BlockingIOError:
                break
            except OSError:
                self._broken()
                return
            if sent < len(segment.view):
                segment.view = segment.view[sent:]
                continue
            self._outbox.popleft()
            config = self.sockets.config
            wait = config.sockets.idle_ack_us + (config.air.rtt_us if config.air.enabled else 0.0)
            segment.due = self.sockets.schedule.clock.now() + int(wait * 1000)
            self._unacked.append(segment)
            if wait:
                self.sockets.schedule.at(segment.due, self._acknowledge)
            else:
                self._acknowledge()
        self._interest()
        self._finish()

    def _acknowledge(self) -> None:
        now = self.sockets.schedule.clock.now()
        while self._unacked and self._unacked[0].due <= now:
            if not self.gone and _unsent(self.real) > self.sockets.config.sockets.unacked:
                self.sockets.schedule.after_us(5000, self._acknowledge)
                return
            segment = self._unacked.popleft()
            segment.done(segment.size)

    # Downlink

    def _pull(self) -> None:
        config = self.sockets.config
        while self._in_air + self._held_bytes < config.sockets.rx_window and not self._fin:
            try:
                data = self.real.recv(config.sockets.mss)
            except BlockingIOError:
                break
            except OSError:
                self._broken()
                return
            if not data:
                self._fin = True
                if self.owner.stream is self:
                    self.sockets.serve(self.owner)
                break
            self._in_air += len(data)
            self.sockets.air.send(
                len(data), config.air.module_tcp_us, partial(self._came, data), droppable=False
            )
        self._interest()

    def _came(self, data: bytes) -> None:
        self._in_air -= len(data)
        self._held.append(data)
        self._held_bytes += len(data)
        if self.owner.stream is self:
            self.sockets.serve(self.owner)

    def take(self, limit: int | None) -> bytes:
        """The next segment, or its first `limit` bytes; empty when nothing is there."""
        if not self._held:
            return b""
        data = self._held.popleft()
        if limit and len(data) > limit:
            self._held.appendleft(data[limit:])
            data = data[:limit]
        self._held_bytes -= len(data)
        if not self.gone:
            self._interest()
        return data

    @property
    def ended(self) -> bool:
        """Whether the peer has closed and everything before that was taken."""
        return self._fin and not self._in_air and not self._held

    # The end

    def close_when_sent(self, gone: Callable[[StreamFlow], None]) -> None:
        """Close once what the host has sent is out; then call gone(self)."""
        self._closing = gone
        self._finish()

    def _finish(self) -> None:
        if self._closing is not None and not self.unfinished:
            gone, self._closing = self._closing, None
            self.close()
            gone(self)

    def close(self) -> None:
        self._settle()
        super().close()

    def abort(self) -> None:
        if not self.gone and not self._connecting:
            with contextlib.suppress(OSError):  # already closed by the peer: nothing to reset
                self.real.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._connecting = False
        self.close()

    def _settle(self) -> None:
        """Give the host's buffers back; nobody waits for these answers any more."""
        for segment in (*self._uplink, *self._outbox, *self._unacked):
            segment.free()
        self._uplink.clear()
        self._outbox.clear()
        self._unacked.clear()


@dataclass(slots=True)
class _Segment:
    """What one send of the host put on its way."""

    view: memoryview
    size: int
    done: Done
    free: Free
    due: int = 0


def _unsent(real: socket.socket) -> int:
    """Bytes in this machine's send queue that the peer has not acknowledged."""
    try:
        return int(struct.unpack("i", fcntl.ioctl(real, termios.TIOCOUTQ, b"\0\0\0\0"))[0])
    except OSError:
        return 0
