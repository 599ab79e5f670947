"""The table at the end of a bench, for a terminal or, plain, for a pipe."""

import io
import re
from typing import TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from upyperf.analysis import figures, units
from upyperf.analysis.figures import Row
from upyperf.analysis.repeats import summarise
from upyperf.records import Bench, RunResult
from upyperf.report.clean import one_line

_WIDE = 100
"""Columns of a terminal from which on bound and curve are shown."""
_PIPED_WIDTH = 240

_STATUS_STYLE = {"ok": "", "error": "red", "interrupted": "yellow", "skipped": "yellow"}


def repeat_groups(bench: Bench) -> dict[str, list[Row]]:
    """The rows of each test that ran more than once, by test and direction."""
    groups: dict[str, list[Row]] = {}
    for row in figures.rows(bench):
        groups.setdefault(f"{row.run.test.name} {row.key}", []).append(row)
    return {key: rows for key, rows in groups.items() if len(rows) > 1}


def difference_text(row: Row) -> str:
    """The difference of the two ends in percent; "exempt" where it is not judged."""
    if row.direction.exempt:
        return "exempt"
    difference = row.direction.difference
    return units.format_percent(abs(difference) * 100 if difference is not None else None)


def jitter_text(row: Row) -> str:
    """Jitter in ms with its unit, or a dash."""
    return units.format_time_us(row.jitter_us)


def counters_text(row: Row) -> str:
    """ "31/2": retries and ENOMEM of the board's sends; a dash for each that is not known."""
    if row.retries is None and row.enomem is None:
        return units.UNKNOWN
    return f"{units.format_count(row.retries)}/{units.format_count(row.enomem)}"


def bound_text(row: Row) -> str:
    """The tightest bound in Mbit/s and what binds ("94.9 wire", "9.22 window/RTT", "1.05 -b")."""
    bound = row.bound
    return f"{units.format_mbit(bound.bps)} {bound.short}" if bound else units.UNKNOWN


def error_text(run: RunResult) -> str:
    """Kind and text of the failure of a run on one line."""
    if run.error is None:
        return run.status
    return f"{one_line(run.error.kind)}: {one_line(run.error.text)}"


def summary_line(bench: Bench) -> str:
    """ "8 runs: 7 ok, 1 error"."""
    counts: dict[str, int] = {}
    for run in bench.runs:
        counts[run.status] = counts.get(run.status, 0) + 1
    total = len(bench.runs)
    parts = [f"{counts[s]} {s}" for s in ("ok", "error", "interrupted", "skipped") if s in counts]
    return f"{total} run{'' if total == 1 else 's'}" + (f": {', '.join(parts)}" if parts else "")


def micropython_text(version: str) -> str:
    """ "MicroPython 1.24.1" of what the agent says ("micropython 1.24.1")."""
    return re.sub(r"^(?:micropython )?", "MicroPython ", one_line(version), flags=re.IGNORECASE)


def title_line(bench: Bench) -> str:
    """Board, its MicroPython and the peers on one line."""
    info = bench.info
    parts = [one_line(bench.board.name)]
    if info and info.micropython:
        parts.append(micropython_text(info.micropython))
    if info and info.machine:
        parts.append(one_line(info.machine))
    peers = dict.fromkeys(one_line(r.peer.program) for r in bench.runs if r.peer)
    if peers:
        parts.append("against " + ", ".join(peers))
    return " · ".join(parts)


def notes(bench: Bench) -> list[tuple[str, str]]:
    """What is to be said below the table, as (severity, line): "error", "warning" or "note"."""
    found: list[tuple[str, str]] = []
    mark = figures.virtual_mark(bench)
    if mark:
        found.append(("warning", one_line(mark)))
    for run in bench.runs:
        name = f"{one_line(run.id)} {figures.label_of(run.test)}"
        # A test that was never begun failed for what ended the bench, which is said once below.
        if run.status not in ("ok", "skipped") or (run.error is not None and bench.error is None):
            found.append(("error", f"{name}: {error_text(run)}"))
        for row in figures.rows(bench, [run]):
            found += [("warning", f"{name}: {line}") for line in figures.warnings(row)]
        if run.lost_records:
            found.append(("warning", f"{name}: {run.lost_records} records from the board are lost"))
        if run.board is not None and run.board.intervals_dropped:
            dropped = run.board.intervals_dropped
            found.append(("warning", f"{name}: {dropped} intervals did not fit the board's memory"))
        for line in run.board.adapted if run.board is not None else ():
            found.append(("note", f"{name}: {one_line(line)}"))
        found += [("note", f"{name}: {one_line(line)}") for line in figures.remarks(run)]
    if bench.error is not None and not any(
        r.error == bench.error and r.status == "error" for r in bench.runs
    ):
        found.append(("error", f"{one_line(bench.error.kind)}: {one_line(bench.error.text)}"))
    found += [("note", one_line(line)) for line in bench.notes]
    return found


def repeat_lines(bench: Bench) -> list[str]:
    """One line for each test that ran more than once: n, median, MAD, mean with its interval."""
    lines = []
    for rows in repeat_groups(bench).values():
        values = [r.delivered_bps for r in rows if r.delivered_bps is not None and r.run.status == "ok"]
        if len(values) < 2:
            continue
        s = summarise(values)
        lines.append(
            f"{rows[0].label}: {s.n} repeats, median {units.format_rate(s.median)}, "
            f"MAD {units.format_rate(s.mad)}, mean {units.format_rate_spread(s.mean, s.half_width)}"
            + (" (95 % CI)" if s.ci else "")
        )
    return lines


def _table(bench: Bench, wide: bool) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("Run")
    table.add_column("Test", no_wrap=True)
    for name in ("Board\nMbit/s", "Peer\nMbit/s", "Differ", "Jitter", "Lost", "Retries/\nENOMEM"):
        table.add_column(name, justify="right", no_wrap=True)
    if wide:
        table.add_column("Bound\nMbit/s", justify="right", no_wrap=True)
        table.add_column("Rate over time", no_wrap=True)
    for row in figures.rows(bench):
        table.add_row(*_cells(row, wide), style=_STATUS_STYLE.get(row.run.status, ""))
    return table


def _cells(row: Row, wide: bool) -> list[Text]:
    label = Text(row.label)
    if row.run.repeat > 1:
        label.append(f" #{row.run.repeat}", style="dim")
    cells = [Text(one_line(row.run.id)), label]
    if row.board_bps is None and row.peer_bps is None:
        why = (
            row.run.error.kind if row.run.error else row.run.status if row.run.status != "ok" else "no figure"
        )
        cells.append(Text(one_line(why)))
        return cells
    flagged = row.direction.flagged
    difference = Text(
        difference_text(row) + (" !" if flagged else ""), style="bold yellow" if flagged else ""
    )
    lost = units.format_loss(row.lost, row.packets) if row.lost is not None else units.UNKNOWN
    cells += [
        Text(units.format_mbit(row.board_bps)),
        Text(units.format_mbit(row.peer_bps)),
        difference,
        Text(jitter_text(row)),
        Text(lost),
        Text(counters_text(row)),
    ]
    if wide:
        above = bool(row.impossible)
        cells.append(Text(bound_text(row) + (" !" if above else ""), style="bold yellow" if above else ""))
        board, peer = figures.curves(row.run, row.way)
        cells.append(Text(units.sparkline([p.bps for p in board or peer if not p.omitted]), style="cyan"))
    return cells


_NOTE_STYLE = {"error": "red", "warning": "yellow", "note": "dim"}


def print_bench(bench: Bench, console: Console) -> None:
    """Print the table and what is to be said about it to a rich console."""
    console.print(Text(title_line(bench), style="bold"))
    if bench.runs:
        console.print()
        console.print(_table(bench, wide=console.width >= _WIDE))
    console.print()
    for line in repeat_lines(bench):
        console.print(Text(line))
    for severity, line in notes(bench):
        head = "" if severity == "note" else f"{severity}: "
        console.print(Text(head + line, style=_NOTE_STYLE[severity]))
    console.print(Text(summary_line(bench)))


def to_text(bench: Bench, width: int = _PIPED_WIDTH) -> str:
    """The same as plain text: no colour, nothing cut, no trailing blanks."""
    buffer = io.StringIO()
    print_bench(
        bench, Console(file=buffer, width=width, no_color=True, force_terminal=False, highlight=False)
    )
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"


def write(bench: Bench, out: TextIO) -> None:
    """The table to a stream: coloured and fitted where it is a terminal, plain where it is not."""
    if out.isatty():
        print_bench(bench, Console(file=out, highlight=False))
        return
    text = to_text(bench)
    encoding = getattr(out, "encoding", None) or "utf-8"
    # A pipe in the C locale may take ASCII only; a report must not end in a UnicodeEncodeError.
    out.write(text.encode(encoding, "replace").decode(encoding))
