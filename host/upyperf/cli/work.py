"""What `bench` and `run` have in common: run an order, store it, show it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from upyperf import boards, network
from upyperf.bench import Order, run_bench, server_address
from upyperf.boards import Board
from upyperf.cli.progress import Progress
from upyperf.errors import UpyperfError
from upyperf.events import Event
from upyperf.records import Bench
from upyperf.session import Access
from upyperf.settings import Settings
from upyperf.sink import Listener, Sink
from upyperf.store import Index, RunFolder


def board_of(name: str, twin: bool) -> tuple[Board, str | None]:
    """The board to run on, and whose twin it is. Raises UpyperfError of kind usage."""
    board = boards.load(name)
    if not twin:
        return board, None
    if board.twin is None:
        raise UpyperfError("usage", f"{name} names no twin")
    return boards.load(board.twin), name


def access(settings: Settings, virtual_options: dict[str, Any], deploy: bool, twin_of: str | None) -> Access:
    """How to reach the board. Raises UpyperfError of kind usage."""
    if settings.gateway and not settings.ip:
        raise UpyperfError("usage", "--gateway goes with --ip")
    return Access(
        port=settings.port,
        server=server_address(settings.server) if settings.server else None,
        peer_address=settings.peer_address,
        static=network.Static.parse(settings.ip, settings.gateway) if settings.ip else None,
        virtual_options=virtual_options,
        deploy=deploy,
        twin_of=twin_of,
    )


def perform(
    order: Order, settings: Settings, result_dir: Path | None, as_json: bool, stream: bool, markdown: bool
) -> int:
    """Run the order with progress on stderr, write every report, print the result on stdout.

    Returns the exit status. Raises UpyperfError when nothing could be started.
    """
    from upyperf.report import markdown as markdown_report
    from upyperf.report import text

    base = Path(settings.results)
    folder = RunFolder.at(result_dir) if result_dir else RunFolder.new(base, order.board.name)
    console = Console(stderr=True, highlight=False)
    progress = Progress(console, len(order.tests) * order.repeats)
    listeners: list[Listener] = [folder.record, progress]
    if stream:
        listeners.append(_stream)
    with folder:
        bench = run_bench(order, folder, Sink(*listeners), progress.status)
        unwritten = folder.error or _write_reports(bench, folder.path, base)
    if as_json:
        print(bench.model_dump_json(indent=1))
    elif markdown:
        print(markdown_report.render(bench))
    elif not stream:
        text.write(bench, sys.stdout)
        print(f"results: {folder.path}/report.html")
    _say_error(bench)
    if unwritten:
        raise UpyperfError(
            "config",
            f"the results in {folder.path} are not whole: {unwritten} (what is printed is all there is)",
        )
    return bench.exit_code


def _write_reports(bench: Bench, folder: Path, base: Path) -> str | None:
    """Write every report and the index; why that failed, or None."""
    from upyperf import report

    try:
        report.write_all(folder, bench)
    except OSError as error:
        return error.strerror or str(error)
    try:
        Index(base).add(bench, folder)
    except UpyperfError as error:
        # It is made anew from the folders when it is needed.
        print(f"upyperf: note: {error.text}", file=sys.stderr)
    return None


def _stream(event: Event) -> None:
    print(event.model_dump_json(), flush=True)


def _say_error(bench: Bench) -> None:
    error = bench.error or next((run.error for run in bench.runs if run.error), None)
    if error is not None and bench.exit_code:
        print(f"upyperf: error: {' '.join(error.text.split())}", file=sys.stderr)
