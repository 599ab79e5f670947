"""The simulator behind a Unix or TCP socket (docs/winc-sim.md, section 2)."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import socket
import struct
import time
from pathlib import Path
from typing import Any

from .chip import Chip
from .power import PINS
from .rules import RuleError
from .workload import Workload, peer_pid

TRANSFER, WRITE, READ, PIN, STATE, WAIT, SPI, SUBSCRIBE = range(1, 9)
HELLO, CONTROL, EDGE, ERROR = 0x10, 0x11, 0x40, 0x7F
CS_LOW, CS_HIGH, POSTED = 1, 2, 4
MAX_WAIT_US = 60_000_000
LOOK_NS = 100_000
# How often timers and sockets are looked after while the client is silent: none there, some, EDGE wanted.
QUIET_US, IDLE_US, EDGE_US = 50_000, 2000, 200
HEADER = struct.Struct("<BBH")


class Ended(Exception):
    """The connection is over; the text (if any) goes to the client as ERROR."""


class Server:
    """Serves one chip to one client at a time. Raises OSError when the address cannot be opened."""

    def __init__(self, chip: Chip, *, unix: Path | None = None, tcp: tuple[str, int] | None = None) -> None:
        self.chip = chip
        chip.look_every_ns = LOOK_NS
        chip.power.own_delay_ns = Workload.delay_ns
        self._stop_read, self._stop_write = os.pipe()
        self._stopped = False
        self._unix = unix
        if unix is not None:
            self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            if unix.is_socket():
                unix.unlink()
            self._listener.bind(str(unix))
            self.address = f"unix:{unix}"
        else:
            host, port = tcp or ("127.0.0.1", 0)
            self._listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._listener.bind((host, port))
            host, port = self._listener.getsockname()[:2]
            self.address = f"tcp:{host}:{port}"
        self._listener.listen(4)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._stop_read, selectors.EVENT_READ)
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._client: _Client | None = None

    def serve(self) -> None:
        """Run until stop() is called (from a signal handler or another thread)."""
        try:
            while not self._stopped:
                client = self._client
                if client is None:
                    self._wait_for_client()
                elif not client.turn():
                    client.close()
                    self._client = None
        finally:
            self._close()

    def stop(self) -> None:
        """End serve()."""
        self._stopped = True
        os.write(self._stop_write, b"x")

    def _wait_for_client(self) -> None:
        # The chip lives on without a client: its sockets, its timers.
        idle = 0.005 if self.chip.sockets.selector.get_map() else 0.05
        for key, _ in self._selector.select(idle):
            if key.fileobj is self._listener:
                self._accept()
        self.chip.poll()

    def _accept(self) -> None:
        sock, _ = self._listener.accept()
        self._client = _Client(self.chip, sock)

    def _close(self) -> None:
        if self._client is not None:
            self._client.close()
        self._selector.close()
        self._listener.close()
        if self._unix is not None:
            self._unix.unlink(missing_ok=True)
        os.close(self._stop_read)
        os.close(self._stop_write)
        self.chip.close()


class _Client:
    """One connection."""

    def __init__(self, chip: Chip, sock: socket.socket) -> None:
        self.chip = chip
        self.sock = sock
        # One system call per frame each way: the kernel, not a selector, ends a wait for the client, so that
        # timers and sockets are looked after. A client that does not read its answers is dropped.
        sock.setblocking(True)
        self._patience = 0
        self._be_patient(IDLE_US)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", 10, 0))
        if sock.family == socket.AF_INET:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._in = bytearray()
        self._edges = chip.edges
        self._seen_violations = sum(chip.book.counts.values())
        self._subscribed = False
        chip.edge_listeners.append(self._edge)
        self._edge_due = False
        self._busy = False
        chip.pacer.busy_ns = Workload(peer_pid(sock)).busy_ns

    def close(self) -> None:
        """Forget the client. The chip stays as it is, but its chip select is released."""
        self.chip.edge_listeners.remove(self._edge)
        self.chip.pacer.busy_ns = None
        self.chip.power.levels["cs"] = 1
        self.sock.close()

    def _edge(self) -> None:
        if not self._subscribed:
            return
        if self._busy:
            self._edge_due = True
        else:
            self._send_edge()

    def _send_edge(self) -> None:
        self._edge_due = False
        try:
            self.sock.sendall(HEADER.pack(EDGE, self._pins(), 0))
        except OSError:
            self._subscribed = False  # the connection is over; the next read will say so

    def _be_patient(self, us: int) -> None:
        if us != self._patience:
            self._patience = us
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, us))

    def turn(self) -> bool:
        """Wait a moment for bytes and serve them. False when the connection is over."""
        try:
            got = self.sock.recv(262_144)
        except BlockingIOError:
            self.chip.poll()
            self._look_ahead()
            return True
        except OSError:
            return False
        if not got:
            if self._in:
                self._error("the connection ended inside a frame")
            return False
        self._in += got
        try:
            self._busy = True
            self._frames()
        except (Ended, RuleError) as end:
            self._error(str(end))
            return False
        except OSError:
            return False
        finally:
            self._busy = False
        if self._edge_due:
            self._send_edge()
        if self._patience == QUIET_US:
            self._look_ahead()
        return True

    def _look_ahead(self) -> None:
        quiet = self.chip.schedule.next_due() is None and not self.chip.sockets.selector.get_map()
        self._be_patient(QUIET_US if quiet else EDGE_US if self._subscribed else IDLE_US)

    def _error(self, text: str) -> None:
        payload = text.replace("\n", " ").encode()[:4000]
        try:
            self.sock.sendall(HEADER.pack(ERROR, 0, len(payload)) + payload)
        except OSError:
            return  # nobody is there to be told

    def _frames(self) -> None:
        at, data = 0, self._in
        while len(data) - at >= 4:
            op, arg, size = HEADER.unpack_from(data, at)
            if len(data) - at - 4 < size:
                break
            payload = bytes(data[at + 4 : at + 4 + size])
            at += 4 + size
            self._serve(op, arg, payload)
        del data[:at]

    def _pins(self) -> int:
        chip = self.chip
        pins = 1 if not chip.power.up or chip.hif.irqn else 0
        if chip.edges != self._edges:
            self._edges = chip.edges
            pins |= 2
        if chip.power.up:
            pins |= 4
        if chip.pacer.take_late():
            pins |= 0x40
        violations = sum(chip.book.counts.values())
        if violations != self._seen_violations:
            self._seen_violations = violations
            pins |= 0x80
        return pins

    def _reply(self, op: int, payload: bytes = b"") -> None:
        self.sock.sendall(HEADER.pack(op, self._pins(), len(payload)) + payload)

    def _serve(self, op: int, arg: int, payload: bytes) -> None:
        chip = self.chip
        if op in (TRANSFER, WRITE, READ):
            if op == READ:
                count, fill = self._unpack("<HB", payload, "READ")
                payload = bytes((fill,)) * count
            if arg & CS_LOW:
                chip.power.levels["cs"] = 0
            miso = chip.transfer(payload)
            if arg & CS_HIGH:
                chip.power.levels["cs"] = 1
            if arg & POSTED and op != READ:
                return
            self._reply(op, b"" if op == WRITE else miso)
        elif op == PIN:
            if arg < 2:
                chip.power.levels["cs"] = arg
            elif arg >> 1 < len(PINS):
                chip.set_pin(PINS[arg >> 1], arg & 1)
            else:
                raise Ended(f"there is no pin {arg >> 1}")
        elif op == STATE:
            _ = chip.irqn
            self._reply(op)
        elif op == WAIT:
            (timeout_us,) = self._unpack("<I", payload, "WAIT")
            self._wait(timeout_us)
            self._reply(op)
        elif op == SPI:
            chip.spi_init(*self._unpack("<IBBBB", payload, "SPI"))
        elif op == SUBSCRIBE:
            self._subscribed = bool(arg)
            self._be_patient(EDGE_US if arg else IDLE_US)
            self._reply(op)
        elif op == HELLO:
            self._reply(op, json.dumps(hello(chip)).encode())
        elif op == CONTROL:
            self._reply(op, _answer(chip, payload))
        else:
            raise Ended(f"unknown op 0x{op:02X}")

    def _wait(self, timeout_us: int) -> None:
        """Wait for IRQN, but not longer than the client stays."""
        end = time.monotonic() + min(timeout_us, MAX_WAIT_US) / 1e6
        while (left := end - time.monotonic()) > 0:
            if self.chip.wait_irq(min(left, 0.25)):
                return
            with contextlib.suppress(BlockingIOError):  # still there, nothing sent
                if self.sock.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b"":
                    raise Ended("")

    @staticmethod
    def _unpack(form: str, payload: bytes, name: str) -> tuple[Any, ...]:
        try:
            return struct.unpack(form, payload)
        except struct.error:
            raise Ended(f"{name} takes {struct.calcsize(form)} bytes, got {len(payload)}") from None


def hello(chip: Chip) -> dict[str, Any]:
    """What HELLO answers."""
    return {
        "protocol": 1,
        "chip": "WINC1510",
        "simulated": True,
        "firmware": chip.config.firmware,
        "mac": chip.config.mac,
        "strict": chip.config.strict,
    }


def _answer(chip: Chip, payload: bytes) -> bytes:
    try:
        request = json.loads(payload)
    except ValueError as error:
        answer: dict[str, Any] = {"ok": False, "error": f"not JSON: {error}"}
    else:
        if isinstance(request, dict):
            answer = chip.control(request)
        else:
            answer = {"ok": False, "error": "a CONTROL request is a JSON object"}
    raw = json.dumps(answer).encode()
    if len(raw) > 65_535:
        raw = json.dumps(
            {"ok": False, "error": f"the answer has {len(raw)} bytes, too long for a frame"}
        ).encode()
    return raw
