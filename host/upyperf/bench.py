"""A bench: every test of a plan on one board, each result kept as soon as it is there."""

from __future__ import annotations

import platform
import re
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from upyperf import __version__, peers
from upyperf.boards import Board
from upyperf.errors import EXIT_CODES, UpyperfError
from upyperf.peers import programs
from upyperf.records import Bench, BoardRef, ErrorInfo, HostRef, RunResult, Test, now
from upyperf.runner import INTERRUPTED, Execution, Interrupted
from upyperf.session import Access, Session, open_session
from upyperf.sink import Sink
from upyperf.store import RunFolder

UNFINISHED = ErrorInfo(
    kind="interrupted", text="the bench did not come to its end; what it recorded is in records.jsonl"
)
_ENDS_THE_BENCH = ("serial-lost",)


@dataclass
class Order:
    """What to run, and how."""

    board: Board
    tests: Sequence[Test]
    plan: str = ""
    repeats: int = 1
    live: bool = False
    interval_s: float = 1.0
    access: Access = field(default_factory=Access)
    command: list[str] = field(default_factory=list)


def host_reference() -> HostRef:
    """This PC, and the versions of what takes part."""
    tools: dict[str, str | None] = {}
    for generation, name in programs.NAMES.items():
        program = programs.find(generation)
        tools[name] = program.version if program else None
    return HostRef(
        hostname=socket.gethostname(),
        platform=platform.platform(),
        python=platform.python_version(),
        upyperf=__version__,
        tools=tools,
    )


def run_bench(order: Order, folder: RunFolder, sink: Sink, progress: Callable[[str], None]) -> Bench:
    """Run the order; the result is saved after each test and at the end, whatever happens.

    Never raises UpyperfError: a failure is in `error` and `exit_code` of the bench.
    """
    board = order.board
    bench = Bench(
        id=folder.path.name,
        started=now(),
        board=BoardRef(
            name=board.name,
            title=board.title,
            kind=board.kind,
            time=board.time,
            mcu=board.mcu,
            figures=board.figures,
        ),
        host=host_reference(),
        plan=order.plan,
        command=order.command or ["upyperf", *sys.argv[1:]],
    )
    for _ in range(order.repeats):
        bench.runs += [
            RunResult(id=f"r{len(bench.runs) + n:02d}", test=test, status="skipped")
            for n, test in enumerate(order.tests, 1)
        ]
    for position, run in enumerate(bench.runs):
        run.repeat = position // max(1, len(order.tests)) + 1
    # What the file says when nobody comes to write its end: power off, kill -9.
    bench.error, bench.exit_code = UNFINISHED, EXIT_CODES[UNFINISHED.kind]
    folder.save(bench)
    ended_by: ErrorInfo | None = None
    try:
        with open_session(board, order.access, sink, folder.path, progress) as session:
            bench.board, bench.info = session.reference, session.info
            bench.network, bench.config = session.network, session.config
            bench.notes += session.notes
            folder.save(bench)
            _run_all(order, bench, session, folder, progress)
    except UpyperfError as error:
        ended_by = ErrorInfo(kind=error.kind, text=error.text)
    except KeyboardInterrupt:
        ended_by = ErrorInfo(kind="interrupted", text=INTERRUPTED)
    bench.error = ended_by
    bench.ended = now()
    bench.exit_code = exit_code(bench)
    for run in bench.runs:
        if run.status == "skipped" and run.error is None and bench.error is not None:
            run.error = bench.error.model_copy()
    folder.save(bench)
    return bench


def _run_all(
    order: Order, bench: Bench, session: Session, folder: RunFolder, progress: Callable[[str], None]
) -> None:
    for position, planned in enumerate(bench.runs):
        execution = Execution(
            session, planned.test, planned.id, planned.repeat, order.live,
            float(planned.test.options.get("interval") or order.interval_s),
        )  # fmt: skip
        try:
            result = execution.run()
        except Interrupted as interrupted:
            bench.runs[position] = interrupted.result
            raise KeyboardInterrupt from None
        bench.runs[position] = result
        folder.save(bench)
        if result.error is None:
            continue
        if result.error.kind in _ENDS_THE_BENCH:
            raise UpyperfError(result.error.kind, result.error.text)
        if position + 1 < len(bench.runs):
            # A failed test may have left sockets open and the heap in pieces.
            session.recover(progress)


def exit_code(bench: Bench) -> int:
    """0, or the code of what ended the bench, or of the first test that failed."""
    if bench.error is not None:
        return EXIT_CODES.get(bench.error.kind, 6)
    for run in bench.runs:
        if run.error is not None and run.status != "skipped":
            return EXIT_CODES.get(run.error.kind, 6)
    return 0


def server_address(text: str) -> tuple[str, int | None]:
    """HOST or HOST:PORT or [IPV6]:PORT. Raises UpyperfError of kind usage."""
    host, port = text, ""
    if text.startswith("["):
        host, closed, rest = text[1:].partition("]")
        port = rest.removeprefix(":")
        if not closed or (rest and not rest.startswith(":")):
            host = ""
    elif text.count(":") == 1:
        host, _, port = text.partition(":")
    if not host or re.search(r"[\s/\[\]]", host) or (port and not (port.isdigit() and 0 < int(port) < 65536)):
        raise UpyperfError("usage", f"--server {text!r}: write HOST or HOST:PORT")
    return host, int(port) if port else None


def describe_peers() -> dict[str, Any]:
    """Which program serves which version, for doctor."""
    out: dict[str, Any] = {}
    for generation, name in programs.NAMES.items():
        program = programs.find(generation)
        out[name] = program.title if program else peers.own.PROGRAM
    return out
