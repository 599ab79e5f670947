"""The other end of a test on the PC: one interface for every program that can be it."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from upyperf.errors import UpyperfError
from upyperf.peers.process import Process
from upyperf.peers.rows import Gatherer, summed
from upyperf.peers.text2 import Text2
from upyperf.peers.text3 import Text3
from upyperf.records import ErrorInfo, Interval, PeerResult, Test

READY_S = 10.0
"""A server that does not listen after this time is not going to."""
QUIET_S = 1.0
LAST_ROWS_S = 4.0

OnEvent = Callable[[str, dict[str, Any]], None]
"""Called with the kind and the fields of an event of the peer, from a thread of its own."""


class Peer(ABC):
    """The other end of one test. `program` names it; `finish` gives what it printed."""

    program: str

    @abstractmethod
    def start(self) -> None:
        """Start it; a server listens when this returns. Raises UpyperfError of kind peer."""

    @abstractmethod
    def finish(self) -> PeerResult | None:
        """Its result, when the board is done; waits for its last rows, then ends it."""

    @abstractmethod
    def stop(self) -> None:
        """End it at once, within a bounded time."""

    def failed(self) -> str | None:
        """Why it cannot be the other end any more; None while it can."""
        return None

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()


class ProgramPeer(Peer):
    """An iperf or iperf3 process, server or client of one test."""

    def __init__(
        self,
        argv: list[str],
        program: str,
        test: Test,
        server: bool,
        on_event: OnEvent,
        env: dict[str, str] | None = None,
    ) -> None:
        self.program = program
        self.argv = argv
        self.test = test
        self.server = server
        self._env = env
        self._on_event = on_event
        self._process: Process | None = None
        self._listening = False
        self._gatherer = Gatherer(self._sends(), self._interval)
        self._parser: Text2 | Text3
        if test.version == 3:
            sends = None if test.mode == "bidir" else self._sends()
            self._parser = Text3(self._gatherer, sends, test.proto == "udp")
        else:
            self._parser = Text2(self._gatherer, server)

    def _sends(self) -> bool:
        return self.test.mode == "receive"

    def _interval(self, interval: Interval) -> None:
        self._on_event("interval", interval.model_dump(exclude={"bits_per_second"}))

    def _line(self, line: str) -> None:
        if "Server listening on" in line:
            self._listening = True
        self._parser.feed(line)
        if line.strip():
            self._on_event("text", {"text": line})

    def start(self) -> None:
        """Start the program and, for a server, wait until it listens."""
        process = self._process = Process(self.argv, self._line, self._env)
        if not self.server:
            return
        deadline = time.monotonic() + READY_S
        while not self._listening:
            if process.poll() is not None:
                process.wait(1.0)
                why = process.last_error or process.text.strip().rpartition("\n")[2]
                raise UpyperfError("peer", f"{self.program} did not start: {why or 'it said nothing'}")
            if time.monotonic() > deadline:
                self.stop()
                raise UpyperfError("peer", f"{self.program} does not listen after {READY_S:.0f} s")
            time.sleep(0.01)

    def failed(self) -> str | None:
        """Why a server that should still run has ended, e.g. killed by a wrong peer."""
        if self._process is None or (status := self._process.poll()) is None:
            return None
        if not self.server and status == 0:
            return None
        why = getattr(self._parser, "error", None) or self._process.last_error
        how = f"killed by signal {-status}" if status < 0 else f"exit status {status}"
        return f"{self.program} ended early ({how}){': ' + why if why else ''}"

    def finish(self) -> PeerResult:
        """Wait for the last rows (at most 4 s), end the program, and add up."""
        assert self._process is not None
        early = self.failed()
        deadline = time.monotonic() + LAST_ROWS_S
        while time.monotonic() < deadline and self._process.poll() is None:
            # A client ends by itself after its last row.
            if self.server and self._complete():
                break
            time.sleep(0.02)
        # What it says when we end it is no error of its own.
        said = self._parser.error if isinstance(self._parser, Text3) else None
        self.stop()
        streams = self._gatherer.streams()
        error = None
        if early:
            error = ErrorInfo(kind="peer", text=early)
        elif said and not streams:
            error = ErrorInfo(kind="peer", text=f"{self.program}: {said}")
        return PeerResult(
            program=self.program,
            sent=summed(streams, board_sends=False),
            received=summed(streams, board_sends=True),
            streams=streams,
            intervals=list(self._gatherer.intervals),
            text=self._process.text,
            error=error,
        )

    def _complete(self) -> bool:
        assert self._process is not None
        if self._parser.connections and self._gatherer.finished >= self._parser.connections:
            return True
        return time.monotonic() - self._process.last_output > QUIET_S

    def stop(self) -> None:
        """End the process, if it still runs."""
        if self._process is not None:
            self._process.stop()
