"""A small client of QEMU's machine protocol (QMP) over a unix socket."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path
from typing import Any

from upyperf.errors import UpyperfError


class Qmp:
    """A QMP session. Raises UpyperfError `board` when QEMU does not answer or refuses a command."""

    def __init__(self, path: Path, timeout: float = 10.0) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(timeout)
        self._buffer = b""
        deadline = time.monotonic() + timeout
        while True:
            try:
                self._socket.connect(str(path))
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise UpyperfError("board", f"QEMU does not open its control socket {path}") from None
                time.sleep(0.05)
        self._read()
        self.command("qmp_capabilities")

    def _read(self) -> dict[str, Any]:
        while b"\n" not in self._buffer:
            try:
                data = self._socket.recv(65536)
            except OSError as error:
                raise UpyperfError("board", f"QEMU does not answer on its control socket: {error}") from None
            if not data:
                raise UpyperfError("board", "QEMU closed its control socket")
            self._buffer += data
        line, self._buffer = self._buffer.split(b"\n", 1)
        answer: dict[str, Any] = json.loads(line)
        return answer

    def command(self, execute: str, /, **arguments: object) -> Any:
        """Execute a command, return its answer. Events in between are dropped."""
        self._socket.sendall(json.dumps({"execute": execute, "arguments": arguments}).encode() + b"\n")
        while True:
            answer = self._read()
            if "error" in answer:
                raise UpyperfError("board", f"QEMU refuses {execute}: {answer['error'].get('desc')}")
            if "return" in answer:
                return answer["return"]

    def monitor(self, line: str) -> str:
        """Run a line of the human monitor, return what it prints."""
        return str(self.command("human-monitor-command", **{"command-line": line}))

    def close(self) -> None:
        self._socket.close()
