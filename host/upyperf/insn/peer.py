"""The other end of a measured transfer: TCP and UDP, sink and source, on the loopback.

A TCP client that sends a decimal number first gets so many bytes; what else comes is thrown away.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time

_BLOCK = bytes(range(256)) * 256


class Peer:
    """Serves until closed. tcp_sink, tcp_source, udp_sink, udp_source: their ports on `host`."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        self._closing = False
        self._sockets: list[socket.socket] = []
        self.udp_gap_s = 0.015
        """Pause after each datagram of the UDP source."""
        self.tcp_sink = self._serve_tcp(host, self._sink)
        self.tcp_source = self._serve_tcp(host, self._source)
        self.udp_sink = self._serve_udp(host, self._udp_sink)
        self.udp_source = self._serve_udp(host, self._udp_source)

    def _serve_tcp(self, host: str, handler: object) -> int:
        listener = socket.create_server((host, 0))
        self._sockets.append(listener)

        def loop() -> None:
            with contextlib.suppress(OSError):
                while not self._closing:
                    connection, _ = listener.accept()
                    threading.Thread(target=self._guard, args=(handler, connection), daemon=True).start()

        threading.Thread(target=loop, daemon=True).start()
        return int(listener.getsockname()[1])

    def _serve_udp(self, host: str, handler: object) -> int:
        end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 21)
        end.bind((host, 0))
        self._sockets.append(end)
        threading.Thread(target=self._guard, args=(handler, end), daemon=True).start()
        return int(end.getsockname()[1])

    def _guard(self, handler: object, end: socket.socket) -> None:
        with contextlib.suppress(OSError, ValueError), end:
            handler(end)  # type: ignore[operator]

    @staticmethod
    def _sink(connection: socket.socket) -> None:
        while connection.recv(65536):
            pass

    @staticmethod
    def _source(connection: socket.socket) -> None:
        left = int(connection.recv(32))
        while left > 0:
            left -= connection.send(_BLOCK[: min(left, len(_BLOCK))])
        connection.shutdown(socket.SHUT_WR)
        connection.recv(1)

    def _udp_sink(self, end: socket.socket) -> None:
        while not self._closing:
            end.recv(65536)

    def _udp_source(self, end: socket.socket) -> None:
        while not self._closing:
            text, address = end.recvfrom(64)
            size, count = (int(word) for word in text.split())
            for _ in range(count):
                end.sendto(_BLOCK[:size], address)
                time.sleep(self.udp_gap_s)

    def close(self) -> None:
        """Stop serving."""
        self._closing = True
        for end in self._sockets:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
