"""One planned test: peer and board run it, every record becomes an event, both ends become one result."""

from __future__ import annotations

import contextlib
import json
import threading
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from upyperf import hints, peers, plan
from upyperf.analysis.ends import VIRTUAL_TIME, explain, pair_all
from upyperf.errors import EXIT_CODES, UpyperfError
from upyperf.frames import JobRecords
from upyperf.records import BoardResult, ErrorInfo, Interval, PeerResult, RunResult, Test, now
from upyperf.session import Session

ASK_AGAIN = 3
"""How often a board is asked for records that were torn or lost."""
INTERRUPTED = "stopped by Ctrl-C; what was measured until then is kept"


class Interrupted(Exception):
    """Ctrl-C came during a test; `result` holds what was measured."""

    def __init__(self, result: RunResult) -> None:
        super().__init__("interrupted")
        self.result = result


def deadline_s(test: Test, virtual_time: bool) -> float:
    """How long the board may take for a test, in s: its planned time and what setting up,
    retries, results and slow printing take at most. Virtual time may run much slower."""
    planned = test.seconds
    if virtual_time:
        return planned * 60 + 300
    return planned * 1.5 + 60


@dataclass
class Execution:
    """One test being run."""

    session: Session
    test: Test
    run_id: str
    repeat: int = 1
    live: bool = False
    interval_s: float = 1.0
    _records: JobRecords = field(init=False)
    _result: RunResult = field(init=False)
    _client: peers.Peer | None = field(init=False, default=None)
    _client_error: UpyperfError | None = field(init=False, default=None)
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._records = JobRecords(self._on_record, self._on_output)
        self._result = RunResult(id=self.run_id, test=self.test, repeat=self.repeat, started=now())

    # What comes in while it runs

    def _on_record(self, record: dict[str, Any]) -> None:
        fields = {k: v for k, v in record.items() if k not in ("k", "run")}
        kind = record["k"]
        if kind == "error":
            fields["error"] = fields.pop("kind", "protocol")
        self.session.sink.emit("board", kind, self.run_id, fields)
        if kind == "start" and self.test.role == "server":
            self._start_client(fields)

    def _on_output(self, line: str) -> None:
        self.session.sink.emit("board", "output", self.run_id, {"text": line})

    def _on_peer(self, kind: str, fields: dict[str, Any]) -> None:
        self.session.sink.emit("peer", kind, self.run_id, fields)

    def _start_client(self, _fields: dict[str, Any]) -> None:
        """The board listens: start the client on the PC (from the link's callback)."""
        if self._client is None or self._client_error is not None:
            return
        try:
            self._client.start()
        except UpyperfError as error:
            self._client_error = error
            self.session.link.interrupt()

    # Running it

    def run(self) -> RunResult:
        """Run the test. Raises Interrupted; every other failure is in the result."""
        session, sink, result = self.session, self.session.sink, self._result
        sink.emit("host", "run-start", self.run_id, {"test": self.test.model_dump(), "repeat": self.repeat})
        interrupted = False
        host, port = session.peer_host, 0
        try:
            with contextlib.ExitStack() as stack:
                peer, host, port = self._peer(stack)
                try:
                    self._execute(host, port)
                except UpyperfError as error:
                    # What the peer counted is kept, whatever became of the board.
                    self._fail(ErrorInfo(kind=error.kind, text=error.text))
                except KeyboardInterrupt:
                    interrupted = True
                    self._stop_board()
                result.peer = self._finish(peer)
        except UpyperfError as error:
            self._fail(ErrorInfo(kind=error.kind, text=error.text))
        except KeyboardInterrupt:
            interrupted = True
        self._conclude(host, port, interrupted)
        sink.emit("host", "run-end", self.run_id, {"result": result.model_dump()})
        if interrupted:
            raise Interrupted(result)
        return result

    @property
    def _on_pc(self) -> bool:
        """Whether the board uses this PC's own network."""
        return self.session.board.nic.kind == "host"

    def _peer(self, stack: contextlib.ExitStack) -> tuple[peers.Peer, str, int]:
        """The other end, and host and port that the job names."""
        session, test = self.session, self.test
        if test.role == "server":
            host = session.board_host
            if host is None:
                raise UpyperfError("unsupported", "the PC cannot reach this board, so it cannot serve")
            port = session.access.server_port or (
                peers.free_port(host) if self._on_pc else peers.DEFAULT_PORTS[test.version]
            )
            self._client = peers.client_of_board(test, host, port, self.interval_s, self._on_peer)
            return stack.enter_context(self._client), host, port
        if session.access.server:
            host, given = session.access.server
            port = given or session.access.server_port or peers.DEFAULT_PORTS[test.version]
            return peers.RemotePeer(host), host, port
        served = peers.serve(
            test, session.listen_host, self.interval_s, self._on_peer, session.access.server_port
        )
        return stack.enter_context(served.peer), session.peer_host, served.port

    def _execute(self, host: str, port: int) -> None:
        """Run the job on the board and see that every record came."""
        test, link = self.test, self.session.link
        options = plan.job_options(test, None if test.role == "server" else host, port)
        options.setdefault("interval", self.interval_s)
        if test.mode in ("dual", "tradeoff") and test.role == "client" and self._on_pc:
            # Board and peer share an address, so they cannot listen on the same port.
            options.setdefault("listen_port", peers.free_port(self.session.board_host or "0.0.0.0"))
        job = {"id": self.run_id, "role": test.role, "live": self.live, "options": options}
        code = f"from iperf import agent; agent.run({json.dumps(job)!a})"
        limit = deadline_s(test, self.session.board.time == "virtual")
        try:
            link.exec(code, timeout=limit, on_line=self._records.feed)
        except UpyperfError as error:
            if error.kind == "serial-lost":
                raise
            # It hangs or printed an exception: what it has may still be had.
            self._fail(ErrorInfo(kind=error.kind, text=error.text))
            self._feed_rest(link.interrupt())
        self._ask_again()

    def _feed_rest(self, output: str) -> None:
        """What the board still printed when it was interrupted, without the REPL's prompt."""
        for line in output.splitlines():
            if line.strip("> "):
                self._records.feed(line)

    def _ask_again(self) -> None:
        for _ in range(ASK_AGAIN):
            if self._records.complete:
                return
            missing = self._records.missing
            what = "the end of the run" if missing is None else f"{len(missing)} record(s)"
            self.session.sink.note(f"{what} did not come whole: asking the board again", self.run_id)
            with contextlib.suppress(UpyperfError):
                self.session.link.exec("agent.again()", timeout=60, on_line=self._records.feed)
        missing = self._records.missing
        self._result.lost_records = len(missing) if missing else 0

    def _stop_board(self) -> None:
        """After Ctrl-C: end the test on the board and fetch what it measured."""
        with contextlib.suppress(UpyperfError, KeyboardInterrupt):
            # The agent ends the test with what it has; that comes as the rest of its output.
            self._feed_rest(self.session.link.interrupt())
            if not self._records.complete:
                code = "from iperf import agent; agent.again()"
                self.session.link.exec(code, timeout=15, on_line=self._records.feed)

    def _finish(self, peer: peers.Peer) -> PeerResult | None:
        if self._client_error is not None:
            raise self._client_error
        outcome = peer.finish()
        if outcome is not None:
            fields = outcome.model_dump(include={"program", "sent", "received", "streams"})
            self.session.sink.emit("peer", "result", self.run_id, fields)
        return outcome

    # What it comes to

    def _fail(self, error: ErrorInfo) -> None:
        if self._result.error is None:
            self._result.error = error

    def _conclude(self, host: str, port: int, interrupted: bool) -> None:
        result, test = self._result, self.test
        result.ended = now()
        self._take_board()
        for record in self._records.of_kind("error"):
            kind = record.get("kind") if record.get("kind") in EXIT_CODES else "protocol"
            error = ErrorInfo(kind=str(kind), text=str(record.get("text")), errno=record.get("errno"))
            if not interrupted:
                remote = self.session.access.server is not None
                error = hints.improve(error, test, host, port, remote)
            # What the board says is nearer to the cause than that its job failed.
            result.error = error
        if result.peer and result.peer.error and not interrupted:
            self._judge_peer(result.peer.error)
        if result.error is None and not interrupted and self._records.missing != []:
            self._fail(ErrorInfo(kind="protocol", text="records of the board were lost; see serial.log"))
        exempt = VIRTUAL_TIME if self.session.board.time == "virtual" else None
        if interrupted:
            exempt = "interrupted"
        if result.board is not None or result.peer is not None:
            result.directions = pair_all(test.mode, test.proto, result.board, result.peer, exempt)
        for direction in result.directions:
            if text := explain(direction, test.proto):
                result.notes.append(text)
        if result.board:
            result.notes += result.board.adapted
        if interrupted:
            result.status = "interrupted"
            result.error = ErrorInfo(kind="interrupted", text=INTERRUPTED)
        elif result.error:
            result.status = "error"

    def _judge_peer(self, error: ErrorInfo) -> None:
        result = self._result
        if result.error is None and result.board is None:
            result.error = error
        elif result.error is None:
            result.notes.append(error.text)
        elif error.text not in result.error.text:
            text = f"{result.error.text}; {error.text}"
            result.error = result.error.model_copy(update={"text": text})

    def _take_board(self) -> None:
        results = self._records.of_kind("result")
        if not results:
            return
        fields = {k: v for k, v in results[-1].items() if k not in ("k", "run")}
        try:
            board = BoardResult.model_validate(fields)
            board.intervals = [Interval.model_validate(row) for row in self._records.of_kind("interval")]
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            self._fail(ErrorInfo(kind="protocol", text=f"the board's result: {where}: {first['msg']}"))
            return
        self._result.board = board
