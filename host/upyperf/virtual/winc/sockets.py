"""The module's TCP and UDP sockets, each over a real socket here (fact sheet 5.5-5.10; rules 18-21).

This file holds the state machine that the host sees: commands, their legality, their replies.
How bytes travel is in flows.py.
"""

from __future__ import annotations

import random
import selectors
import struct
from collections.abc import Callable
from enum import Enum

from . import ops, structs
from .air import Air
from .clock import Schedule
from .config import Config
from .flows import DatagramFlow, Listener, StreamFlow
from .hif import Hif, Message
from .ip import Ip
from .rules import Book
from .structs import TCP_DATA_OFFSET, TCP_IDS, UDP_DATA_OFFSET, UDP_IDS

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


class Sockets:
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
        self.config = config
        self.hif = hif
        self.ip = ip
        self.air = air
        self.schedule = schedule
        self.book = book
        self.rng = rng
        self.selector = selectors.DefaultSelector()
        self.report_loss = False  # fault option: sockets report -12 when the link is lost
        self.stale_replies = 0  # fault: so many replies are preceded by one of a stale session
        self.counters = {"tcp_sent": 0, "tcp_received": 0, "udp_sent": 0, "udp_received": 0}
        self.socks = [Sock(i) for i in range(UDP_IDS.stop)]
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

    def _sized(self, message: Message, *legal: int) -> bool:
        if len(message.payload) in legal and not message.holes:
            return True
        if message.holes:
            self.book.break_rule(
                13, f"{ops.name(ops.IP, message.op)} committed with unwritten bytes {message.holes}"
            )
        else:
            self.book.break_rule(
                18,
                f"{ops.name(ops.IP, message.op)} with {len(message.payload)} bytes; firmware "
                f"{self.config.firmware} takes {' or '.join(map(str, legal))}; dropped",
            )
        return False

    def _find(self, ident: int, op: int, session: int, udp: bool | None = None) -> Sock | None:
        """The socket of a command, None (and rule 19) when id, kind or session is wrong."""
        if not 0 <= ident < len(self.socks):
            self.book.break_rule(19, f"{ops.name(ops.IP, op)} with socket id {ident}; 0 to 10 exist")
            return None
        sock = self.socks[ident]
        if udp is not None and udp != sock.udp:
            kind = "UDP" if sock.udp else "TCP"
            self.book.break_rule(19, f"{ops.name(ops.IP, op)} on socket {ident}, which is {kind} by its id")
            return None
        if session == 0:
            self.book.note(f"{ops.name(ops.IP, op)} with session 0")
        elif sock.session == 0:
            sock.session = session
        elif session != sock.session and sock.state is not State.CLOSED:
            self.book.break_rule(
                19,
                f"{ops.name(ops.IP, op)} on socket {ident}, session {session}, not {sock.session}; dropped",
            )
            return None
        return sock

    def _post(self, op: int, payload: bytes) -> None:
        self.hif.post(ops.IP, op, payload)

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

    # Send

    def _send(self, message: Message) -> None:
        udp_op = message.op == SENDTO
        payload = message.payload
        if len(payload) < 16:
            self.book.break_rule(18, f"{ops.name(ops.IP, message.op)} with {len(payload)} bytes; dropped")
            message.free()
            return
        command = structs.SendCommand.parse(payload)
        sock = self._find(command.sock, message.op, command.session, udp=True if udp_op else None)
        if sock is None:
            message.free()
            return
        offset = UDP_DATA_OFFSET if sock.udp else TCP_DATA_OFFSET
        if command.size > ops.MAX_SEND:
            self.book.break_rule(19, f"send of {command.size} bytes, {ops.MAX_SEND} is the limit")
            self._reply_send(sock, message, INVALID_ARG)
            return
        if len(payload) != offset + command.size:
            self.book.break_rule(
                18, f"{ops.name(ops.IP, message.op)} of {command.size} bytes in a message of {len(payload)}, "
                f"{offset + command.size} are right (data at {offset})"
            )  # fmt: skip
            self._reply_send(sock, message, INVALID_ARG)
            return
        if any(low < 16 or high > offset for low, high in message.holes):
            self.book.break_rule(13, f"send committed with unwritten bytes {message.holes}")
            self._reply_send(sock, message, INVALID_ARG)
            return
        data = payload[offset:]
        if sock.udp:
            self._send_datagram(sock, message, command, data)
        else:
            self._send_stream(sock, message, data)

    def _send_stream(self, sock: Sock, message: Message, data: bytes) -> None:
        if sock.state is State.DEAD:
            self._reply_send(sock, message, ABORTED)
            return
        if sock.stream is None or sock.state not in (State.CONNECTED, State.ENDED):
            self.book.break_rule(19, f"send on socket {sock.id}, which is {sock.state.value}")
            self._reply_send(sock, message, INVALID)
            return
        if not data:
            self.book.note("send of 0 bytes")
        session = sock.session

        def done(status: int) -> None:
            if status > 0:
                self.counters["tcp_sent"] += status
            self._answer_send(sock.id, SEND, message, status, session)

        sock.stream.send(data, done, message.free)

    def _send_datagram(self, sock: Sock, message: Message, command: structs.SendCommand, data: bytes) -> None:
        peer: tuple[str, int] | None = (command.ip, command.port)
        if message.op == SEND:
            peer = sock.last_peer
        elif command.family != 2 or command.port == 0:
            self.book.break_rule(19, f"sendto to address family {command.family}, port {command.port}")
            self._reply_send(sock, message, BAD_ADDRESS)
            return
        if peer is None:
            self.book.break_rule(19, "UDP send without an address and without a sendto before it")
            self._reply_send(sock, message, NEED_ADDRESS)
            return
        if sock.state is State.DEAD or not self.ip.up:
            if sock.state is not State.DEAD:
                self.book.break_rule(23, "sendto before the module has an address")
            self._reply_send(sock, message, ABORTED)
            return
        if sock.datagram is None:
            sock.datagram = DatagramFlow(self, sock, None)
        sock.last_peer = peer
        host = self.config.ip.nat.get(peer[0], peer[0])
        session = sock.session or command.session

        def done(status: int) -> None:
            if status > 0:
                self.counters["udp_sent"] += 1
            if sock.callback:
                self._answer_send(sock.id, message.op, message, status, session)
            else:
                message.free()

        sock.datagram.send(data, (host, peer[1]), done)

    def _reply_send(self, sock: Sock, message: Message, status: int) -> None:
        session = struct.unpack_from("<H", message.payload, 12)[0]
        self._answer_send(sock.id, message.op, message, status, session)

    def _answer_send(self, ident: int, op: int, message: Message, status: int, session: int) -> None:
        """Reply to a send. Its buffer comes back only when the host has taken the reply (fact sheet 5.10)."""
        if self.stale_replies > 0:
            self.stale_replies -= 1
            self._post(op, structs.send_reply(ident, status, (session + 0x7000) & 0xFFFF))
        self.hif.post(ops.IP, op, structs.send_reply(ident, status, session), message.free)

    # Receive

    def _recv(self, message: Message) -> None:
        if not self._sized(message, *structs.recv_sizes(self.config.version)):
            return
        command = structs.RecvCommand.parse(message.payload)
        sock = self._find(command.sock, message.op, command.session, udp=message.op == RECVFROM)
        if sock is None:
            return
        if sock.udp and sock.state is not State.BOUND and sock.state is not State.DEAD:
            self.book.break_rule(20, f"recvfrom on socket {sock.id}, which is {sock.state.value}, not bound")
            self._fail_recv(sock, command, INVALID)
            return
        if not sock.udp and sock.state not in (State.CONNECTED, State.ENDED, State.DEAD):
            self.book.break_rule(19, f"recv on socket {sock.id}, which is {sock.state.value}")
            self._fail_recv(sock, command, INVALID)
            return
        if sock.pending is not None:
            self.book.break_rule(19, f"second recv on socket {sock.id} while one is pending; dropped")
            return
        if sock.end_told:
            self.book.break_rule(21, f"recv on socket {sock.id} after its end was told; close it")
            self._fail_recv(sock, command, ABORTED)
            return
        if sock.state is State.DEAD:
            self._fail_recv(sock, command, ABORTED)
            return
        sock.pending = command
        sock.recv_count += 1
        if not self.serve(sock) and command.timeout_ms is not None:
            self._watch(sock, command, sock.recv_count)

    def _watch(self, sock: Sock, command: structs.RecvCommand, count: int) -> None:
        def expire() -> None:
            if sock.pending is command and sock.recv_count == count:
                self._reply_recv(sock, TIMEOUT)

        self.schedule.after_us((command.timeout_ms or 0) * 1000, expire)

    def serve(self, sock: Sock) -> bool:
        """Answer the pending recv if there is something to answer. True when it was answered."""
        command = sock.pending
        if command is None:
            return False
        limit = command.size if self.config.version >= (19, 6, 4) else None
        if sock.udp:
            if sock.datagram is None or not (got := sock.datagram.take()):
                return False
            data, (host, port) = got
            if limit:
                data = data[:limit]
            self.counters["udp_received"] += 1
            peer = structs.pack_addr(structs.ip_bytes(host), port)
            self._reply_recv(sock, len(data), data, peer)
            return True
        if sock.stream is None:
            return False
        data = sock.stream.take(limit)
        if data:
            self.counters["tcp_received"] += len(data)
            self._reply_recv(sock, len(data), data, sock.stream.peer)
            return True
        if sock.stream.failed:
            sock.state = State.DEAD
            self._reply_recv(sock, ABORTED)
            return True
        if sock.stream.ended:
            sock.state = State.ENDED
            sock.end_told = True
            self._reply_recv(sock, OK)
            return True
        return False

    def _reply_recv(self, sock: Sock, status: int, data: bytes = b"", peer: bytes = bytes(8)) -> None:
        command = sock.pending
        sock.pending = None
        if command is not None:
            self._fail_recv(sock, command, status, data, peer)

    def _fail_recv(
        self,
        sock: Sock,
        command: structs.RecvCommand,
        status: int,
        data: bytes = b"",
        peer: bytes = bytes(8),
    ) -> None:
        op = RECVFROM if sock.udp else RECV
        offset = UDP_DATA_OFFSET if sock.udp else TCP_DATA_OFFSET
        if self.stale_replies > 0:
            self.stale_replies -= 1
            stale = (command.session + 0x7000) & 0xFFFF
            self._post(op, structs.recv_reply(peer, 5, offset, sock.id, stale, b"stale"))
        self._post(op, structs.recv_reply(peer, status, offset, sock.id, command.session, data))
