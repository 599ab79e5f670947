"""Sends and receives on the module's sockets: legality and replies (fact sheet 5.6, 5.10; rules 18-21)."""

from __future__ import annotations

import random
import selectors
import struct

from . import ops, structs
from .air import Air
from .clock import Schedule
from .config import Config
from .datagrams import DatagramFlow
from .hif import Hif, Message
from .ip import Ip
from .rules import Book
from .sock import (
    ABORTED,
    BAD_ADDRESS,
    INVALID,
    INVALID_ARG,
    NEED_ADDRESS,
    OK,
    RECV,
    RECVFROM,
    SEND,
    SENDTO,
    TIMEOUT,
    Sock,
    State,
)
from .structs import TCP_DATA_OFFSET, UDP_DATA_OFFSET, UDP_IDS


class Transfers:
    """The data path; sockets.Sockets adds how sockets come and go."""

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
