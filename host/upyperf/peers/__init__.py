"""The other end of a test: iperf, iperf3, our own package, or a server that already runs."""

from __future__ import annotations

import socket
from dataclasses import dataclass

from upyperf.errors import UpyperfError
from upyperf.peers import arguments, programs
from upyperf.peers.base import OnEvent, Peer, ProgramPeer
from upyperf.peers.own import OwnPeer
from upyperf.records import PeerResult, Test

__all__ = ["OnEvent", "Peer", "RemotePeer", "Served", "client_of_board", "free_port", "serve"]

DEFAULT_PORTS = {2: 5001, 3: 5201}
_PORT_TRIES = 5


def free_port(address: str) -> int:
    """A port that is free for TCP and UDP at this address of the PC.

    Raises UpyperfError of kind peer when the address is not ours.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    for _ in range(50):
        stream, datagram = (socket.socket(family, kind) for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM))
        with stream as tcp, datagram as udp:
            try:
                tcp.bind((address, 0))
            except OSError as error:
                raise UpyperfError("peer", f"cannot listen at {address}: {error.strerror}") from None
            port: int = tcp.getsockname()[1]
            try:
                udp.bind((address, port))
            except OSError:
                continue
            return port
    raise UpyperfError("peer", f"no port is free for TCP and UDP at {address}")


@dataclass
class Served:
    """A server that is ready: connect the board to `port`."""

    peer: Peer
    port: int


class RemotePeer(Peer):
    """A server that already runs elsewhere (--server): nothing to start, nothing printed."""

    def __init__(self, host: str) -> None:
        self.program = f"server at {host}"

    def start(self) -> None:
        """Nothing: it runs already."""

    def finish(self) -> PeerResult | None:
        """Nothing: its figures come through the protocol."""
        return None

    def stop(self) -> None:
        """Nothing: it is not ours to stop."""


def serve(test: Test, address: str, interval_s: float, on_event: OnEvent, port: int | None = None) -> Served:
    """Start the server for a test at an address of the PC, on a free port unless one is given.

    Raises UpyperfError of kind peer.
    """
    program = programs.find(test.version)
    last: UpyperfError | None = None
    for _ in range(1 if port else _PORT_TRIES):
        chosen = port or free_port(address)
        peer: Peer
        if program is None:
            peer = OwnPeer(test, True, address, chosen, interval_s, on_event)
        else:
            argv = [program.path, *arguments.server(test, address, chosen, interval_s)]
            peer = ProgramPeer(argv, program.title, test, True, on_event)
        try:
            peer.start()
            return Served(peer, chosen)
        except UpyperfError as error:
            # Another program may have taken the port in between.
            last = error
            peer.stop()
            if "in use" not in error.text:
                break
    assert last is not None
    raise last


def client_of_board(test: Test, host: str, port: int, interval_s: float, on_event: OnEvent) -> Peer:
    """The client for a test that the board serves at `host`, not started yet."""
    program = programs.find(test.version)
    if program is None:
        return OwnPeer(test, False, host, port, interval_s, on_event)
    listen = free_port("0.0.0.0") if test.mode in ("dual", "tradeoff") else None
    argv = [program.path, *arguments.client(test, host, port, interval_s, listen)]
    return ProgramPeer(argv, program.title, test, False, on_event)
