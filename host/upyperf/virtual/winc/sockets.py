"""The module's TCP and UDP sockets, each over a real socket here (fact sheet 5.5-5.10; rules 18-21).

How sockets come and go: commands, their legality, their replies. Sends and receives are in transfers.py,
how bytes travel in streams.py and datagrams.py.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

from . import ops, structs
from .air import Air
from .clock import Schedule
from .config import Config
from .datagrams import DatagramFlow
from .hif import Hif, Message
from .ip import Ip
from .listeners import Listener
from .rules import Book
from .sock import (
    ABORTED,
    ACCEPT,
    BAD_ADDRESS,
    BIND,
    CLOSE,
    CONNECT,
    IN_USE,
    INVALID,
    LISTEN,
    NOT_SIMULATED,
    OK,
    RECV,
    RECVFROM,
    SEND,
    SENDTO,
    SETSOCKOPT,
    UDP_CALLBACK,
    Sock,
    State,
)
from .streams import StreamFlow
from .structs import TCP_DATA_OFFSET, TCP_IDS
from .transfers import Transfers


class Sockets(Transfers):
    """Group 2 of the host interface, as far as it concerns sockets."""

    def __init__(
        self,
        config: Config,
        hif: Hif,
        ip: Ip,
        air: Air,
        schedule: Schedule,
        book: Book,
        rng: random.Random,
    ) -> None:
        super().__init__(config, hif, ip, air, schedule, book, rng)
        self._closing: list[StreamFlow] = []
        hif.handlers[ops.IP] = self.handle
        ip.on_address_lost = self.link_lost

    def reset(self) -> None:
        """Firmware gone: every real socket is closed."""
        for sock in self.socks:
            self._drop(sock)
            sock.clear()
        for flow in self._closing:
            flow.abort()
        self._closing.clear()

    def close(self) -> None:
        """End of the simulator."""
        self.reset()
        self.selector.close()

    def poll(self) -> None:
        """Serve the real sockets that are ready."""
        if self.selector.get_map():
            for key, events in self.selector.select(0):
                key.data(events)

    def link_lost(self) -> None:
        """No address any more: every socket is dead."""
        for sock in self.socks:
            if sock.state is State.CLOSED:
                continue
            if self.report_loss and sock.pending is not None:
                self._reply_recv(sock, ABORTED)
            self._drop(sock)
            sock.pending = None
            sock.state = State.DEAD

    def _drop(self, sock: Sock) -> None:
        for flow in (sock.stream, sock.datagram, sock.listener):
            if flow is not None:
                flow.abort()
        sock.stream = sock.datagram = sock.listener = None

    # Dispatch

    def handle(self, message: Message) -> None:
        """One message of group 2."""
        if self.hif.boot.bypass:
            self.book.break_rule(19, f"{ops.name(ops.IP, message.op)} in Ethernet (bypass) mode; refused")
            message.free()
            return
        if self.ip.handle(message):
            return
        handler: Callable[[Message], None] | None = {
            BIND: self._bind,
            LISTEN: self._listen,
            CONNECT: self._connect,
            SEND: self._send,
            SENDTO: self._send,
            RECV: self._recv,
            RECVFROM: self._recv,
            CLOSE: self._close,
            SETSOCKOPT: self._setsockopt,
        }.get(message.op)
        if handler is None:
            if message.op in NOT_SIMULATED:
                self.book.note(f"{ops.name(ops.IP, message.op)} is not simulated; dropped")
            else:
                self.book.break_rule(18, f"IP op 0x{message.op:02X} is unknown; dropped")
            message.free()
            return
        if message.op not in (SEND, SENDTO):
            message.free()
        handler(message)

    # Bind, listen, connect, close, options

    def _bind(self, message: Message) -> None:
        if not self._sized(message, 12):
            return
        ident, _, session = struct.unpack_from("<bBH", message.payload, 8)
        sock = self._find(ident, BIND, session)
        if sock is None:
            return
        family, _, port = structs.parse_addr(message.payload)
        status = OK
        if sock.state is not State.CLOSED:
            self.book.break_rule(19, f"bind of socket {ident}, which is {sock.state.value}")
            status = INVALID
        elif family != 2:
            self.book.break_rule(19, f"bind with address family {family}, 2 is IPv4")
            status = BAD_ADDRESS
        else:
            sock.session = session
            status = self._open_local(sock, port)
        self._post(BIND, structs.status_reply(ident, status, session))

    def _open_local(self, sock: Sock, port: int) -> int:
        try:
            if sock.udp:
                sock.datagram = DatagramFlow(self, sock, (self.config.ip.listen_host, port))
            else:
                sock.listener = Listener(self, sock, (self.config.ip.listen_host, port))
        except OSError:
            return IN_USE
        sock.callback = True  # bind sets the option back (rule 20)
        sock.state = State.BOUND
        return OK

    def _listen(self, message: Message) -> None:
        if not self._sized(message, 4):
            return
        ident, backlog, session = struct.unpack("<bBH", message.payload)
        sock = self._find(ident, LISTEN, session, udp=False)
        if sock is None:
            return
        if sock.state is not State.BOUND or sock.listener is None:
            self.book.break_rule(19, f"listen on socket {ident}, which is {sock.state.value}, not bound")
            status = INVALID
        else:
            status = sock.listener.listen(max(1, backlog))
            if status == OK:
                sock.state = State.LISTENING
        self._post(LISTEN, structs.status_reply(ident, status, session))

    def accept(
        self, listening: Sock, flow_of: Callable[[Sock], tuple[StreamFlow, tuple[str, int]] | None]
    ) -> bool:
        """Give an arrived connection an id and tell the host. False when all ids are used."""
        free = [s for s in self.socks[: TCP_IDS.stop] if s.state is State.CLOSED]
        if not free:
            return False
        sock = self.rng.choice(free) if self.config.sockets.accept_id == "random" else free[0]
        sock.clear()
        made = flow_of(sock)
        if made is None:
            return True
        sock.stream, (host, port) = made
        sock.state = State.CONNECTED
        offset = 0 if self.config.version <= (19, 4, 4) else ops.HEADER + TCP_DATA_OFFSET
        address = structs.pack_addr(structs.ip_bytes(host), port)
        self._post(ACCEPT, address + struct.pack("<bbH", listening.id, sock.id, offset))
        return True

    def _connect(self, message: Message) -> None:
        if not self._sized(message, 12):
            return
        # The byte between is the SSL flags, which a vendor driver leaves uninitialised: the opcode decides.
        ident, _, session = struct.unpack_from("<bBH", message.payload, 8)
        sock = self._find(ident, CONNECT, session, udp=False)
        if sock is None:
            return
        family, host, port = structs.parse_addr(message.payload)
        if sock.state not in (State.CLOSED, State.BOUND):
            rule = 21 if sock.state is State.ENDED else 19
            self.book.break_rule(rule, f"connect of socket {ident}, which is {sock.state.value}")
            self._connect_reply(sock, INVALID)
            return
        if family != 2 or port == 0:
            self.book.break_rule(19, f"connect to address family {family}, port {port}")
            self._connect_reply(sock, BAD_ADDRESS)
            return
        if not self.ip.up:
            self.book.break_rule(23, "connect before the module has an address")
            self._connect_reply(sock, ABORTED)
            return
        self._drop(sock)
        sock.session = session
        sock.state = State.CONNECTING
        sock.stream = StreamFlow(self, sock)
        sock.stream.connect((self.config.ip.nat.get(host, host), port))

    def connected(self, sock: Sock, status: int) -> None:
        """The real connection stands or has failed."""
        if sock.state is not State.CONNECTING:
            return
        if status == OK:
            sock.state = State.CONNECTED
        else:
            sock.state = State.DEAD
        self._connect_reply(sock, status)

    def _connect_reply(self, sock: Sock, status: int) -> None:
        if status == OK:
            tail = struct.pack("<H", ops.HEADER + TCP_DATA_OFFSET)
        elif self.config.version >= (19, 7, 0):
            tail = struct.pack("<Bb", 1, status)
        else:
            tail = bytes(2)
        self._post(CONNECT, struct.pack("<bb", sock.id, status) + tail)

    def _close(self, message: Message) -> None:
        if not self._sized(message, 4):
            return
        ident, _, session = struct.unpack("<bBH", message.payload)
        sock = self._find(ident, CLOSE, session)
        if sock is None:
            return
        if sock.stream is not None and sock.stream.unfinished:
            self._closing.append(sock.stream)
            sock.stream.close_when_sent(self._closing.remove)
            sock.stream = None
        elif sock.stream is not None:
            sock.stream.close()
            sock.stream = None
        self._drop(sock)
        sock.clear()

    def _setsockopt(self, message: Message) -> None:
        if not self._sized(message, 8):
            return
        value, ident, option, session = struct.unpack("<IbBH", message.payload)
        sock = self._find(ident, SETSOCKOPT, session)
        if sock is None:
            return
        if option == UDP_CALLBACK:
            if sock.udp and sock.state is State.CLOSED:
                self.book.note("UDP send callback set before bind, which will set it back")
            sock.callback = bool(value)
