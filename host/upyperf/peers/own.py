"""Our own `iperf` package under CPython as the other end, where the PC has no iperf program.

Runs as a process of its own (`python -m upyperf.peers.own '<job>'`) that prints one JSON
object a line: what the agent on a board sends in frames, without the frames.
"""

from __future__ import annotations

import json
import platform
import sys
import time
from typing import Any

from upyperf.errors import UpyperfError
from upyperf.paths import firmware_package
from upyperf.peers.base import LAST_ROWS_S, READY_S, OnEvent, Peer
from upyperf.peers.process import Process
from upyperf.records import BoardResult, ErrorInfo, Interval, PeerResult, Stream, Test

PROGRAM = f"upyperf's own iperf (CPython {platform.python_version()})"


class OwnPeer(Peer):
    """Our package as server or client of one test."""

    def __init__(
        self, test: Test, server: bool, host: str, port: int, interval_s: float, on_event: OnEvent
    ) -> None:
        self.program = PROGRAM
        self.test = test
        self.server = server
        options: dict[str, Any] = {
            "version": test.version, "udp": test.proto == "udp", "port": port, "interval": interval_s,
        }  # fmt: skip
        if server:
            options.update(one_off=True, bind=host)
        else:
            skipped = {"port", "interval", "connect_timeout", "listen_port"}
            options.update({k: v for k, v in test.options.items() if k not in skipped})
            options.update(_direction(test))
        self._job = {"role": "server" if server else "client", "host": host, "options": options}
        self._on_event = on_event
        self._process: Process | None = None
        self._listening = False
        self._result: BoardResult | None = None
        self._error: ErrorInfo | None = None
        self._intervals: list[Interval] = []

    def _line(self, line: str) -> None:
        try:
            record = json.loads(line)
            kind = record.pop("k")
        except (ValueError, KeyError, TypeError, AttributeError):
            if line.strip():
                self._on_event("text", {"text": line})
            return
        if kind == "listening":
            self._listening = True
        elif kind == "interval":
            # The peer's rows say whether the board sends.
            record["sender"] = not record["sender"]
            interval = Interval.model_validate(record)
            self._intervals.append(interval)
            self._on_event("interval", interval.model_dump(exclude={"bits_per_second"}))
        elif kind == "result":
            self._result = BoardResult.model_validate(record)
        elif kind == "error":
            self._error = ErrorInfo(kind=record["kind"], text=record["text"])

    def start(self) -> None:
        """Start the process and, for a server, wait until it listens."""
        paths = str(firmware_package().parent)
        argv = [sys.executable, "-u", "-m", "upyperf.peers.own", json.dumps(self._job)]
        process = self._process = Process(argv, self._line, {"UPYPERF_FIRMWARE": paths})
        deadline = time.monotonic() + READY_S
        while self.server and not self._listening:
            if process.poll() is not None:
                process.wait(1.0)
                why = self._error.text if self._error else process.last_error
                raise UpyperfError("peer", f"{self.program} did not start: {why}")
            if time.monotonic() > deadline:
                self.stop()
                raise UpyperfError("peer", f"{self.program} does not listen after {READY_S:.0f} s")
            time.sleep(0.01)

    def finish(self) -> PeerResult:
        """Wait for the result (at most 4 s), then end the process."""
        assert self._process is not None
        self._process.wait(LAST_ROWS_S)
        self.stop()
        if self._result is None and self._error is None:
            why = self._process.last_error or "it ended without a result"
            self._error = ErrorInfo(kind="peer", text=f"{self.program}: {why}")
        result = self._result
        streams = []
        for stream in result.streams if result else []:
            fields = stream.model_dump(exclude={"bits_per_second", "peer"})
            streams.append(Stream.model_validate({**fields, "sender": not stream.sender}))
        return PeerResult(
            program=self.program,
            sent=result.sent if result else None,
            received=result.received if result else None,
            streams=streams,
            intervals=self._intervals,
            text=self._process.text,
            error=self._error,
        )

    def failed(self) -> str | None:
        """Why it ended without a result."""
        if self._process is None or self._process.poll() in (None, 0):
            return None
        return self._error.text if self._error else f"{self.program} ended early"

    def stop(self) -> None:
        """End the process, if it still runs."""
        if self._process is not None:
            self._process.stop()


def _direction(test: Test) -> dict[str, Any]:
    """The options that make our client the other end of what the board does."""
    if test.mode == "send":
        return {"reverse": True}
    if test.mode == "bidir":
        return {"bidir": True} if test.version == 3 else {"full_duplex": True}
    return {test.mode: True} if test.mode in ("dual", "tradeoff") else {}


def main(text: str) -> int:
    """The process: run the job and print its records. Returns the exit status."""
    import os

    sys.path.insert(0, os.environ["UPYPERF_FIRMWARE"])
    import iperf  # type: ignore[import-not-found]
    from iperf.errors import IperfError  # type: ignore[import-not-found]

    job = json.loads(text)

    def say(kind: str, fields: dict[str, Any]) -> None:
        print(json.dumps({"k": kind, **fields}), flush=True)

    def on_event(kind: str, fields: Any) -> None:
        if kind == "start" and job["role"] == "server":
            say("listening", {})
        elif kind in ("interval", "error"):
            say(kind, fields)

    options = {**job["options"], "on_event": on_event, "live": True}
    try:
        if job["role"] == "server":
            results = iperf.server(**options)
            result = results[-1] if results else None
        else:
            result = iperf.client(job["host"], **options)
    except IperfError as error:
        say("error", {"kind": error.kind, "text": error.text})
        return 1
    if result is None:
        return 1
    say("result", {k: v for k, v in result.to_dict().items() if k != "intervals"})
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
