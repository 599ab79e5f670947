"""The table at the end of a bench, for a terminal or, plain, for a pipe."""

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from upyperf.analysis import figures, units
from upyperf.analysis.figures import Row
from upyperf.records import Bench
from upyperf.report import words
from upyperf.report.clean import one_line

_PIPED_WIDTH = 240

_STATUS_STYLE = {"ok": "", "error": "red", "interrupted": "yellow", "skipped": "yellow"}


def _label(row: Row) -> Text:
    label = Text(row.label)
    if row.run.repeat > 1:
        label.append(f" #{row.run.repeat}", style="dim")
    return label


def _rate(row: Row, bps: float | None) -> Text:
    """A rate in Mbit/s; where a row has none at all, in its first column why."""
    if row.board_bps is None and row.peer_bps is None:
        if bps is row.board_bps and row.run.error:
            return Text(one_line(row.run.error.kind))
        return Text(row.run.status if row.run.status != "ok" else "no figure")
    return Text(units.format_mbit(bps))


def _flag(words: str, flagged: bool) -> Text:
    return Text(words + (" !" if flagged else ""), style="bold yellow" if flagged else "")


def _lost(row: Row, short: bool = False) -> str:
    if row.lost is None:
        return units.UNKNOWN
    if short:
        percent = row.loss_percent
        return units.format_percent(percent, decimals=2 if percent is not None and 0 < percent < 10 else 1)
    return units.format_loss(row.lost, row.packets)


def _curve(row: Row) -> Text:
    board, peer = figures.curves(row.run, row.way)
    return Text(units.sparkline([p.bps for p in board or peer if not p.omitted]), style="cyan")


@dataclass(frozen=True)
class _Column:
    """A column of the table: its head, its cell of a row, and whether a row without figures has it."""

    head: str
    cell: Callable[[Row], Text]
    right: bool = True
    always: bool = False


_COLUMNS = {
    "run": _Column("Run", lambda r: Text(one_line(r.run.id)), right=False, always=True),
    "test": _Column("Test", _label, right=False, always=True),
    "board": _Column("Board\nMbit/s", lambda r: _rate(r, r.board_bps), always=True),
    "peer": _Column("Peer\nMbit/s", lambda r: Text(units.format_mbit(r.peer_bps))),
    "differ": _Column("Differ", lambda r: _flag(words.difference_text(r), r.direction.flagged)),
    "jitter": _Column("Jitter", lambda r: Text(words.jitter_text(r))),
    "lost": _Column("Lost", lambda r: Text(_lost(r))),
    "loss": _Column("Lost", lambda r: Text(_lost(r, short=True))),
    "counters": _Column("Retries/\nENOMEM", lambda r: Text(words.counters_text(r))),
    "bound": _Column("Bound\nMbit/s", lambda r: _flag(words.bound_text(r), bool(r.impossible))),
    "curve": _Column("Rate over time", _curve, right=False),
}
_FULL = ("run", "test", "board", "peer", "differ", "jitter", "lost", "counters", "bound", "curve")


def _table(bench: Bench, names: Sequence[str]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in names:
        column = _COLUMNS[name]
        table.add_column(column.head, justify="right" if column.right else "left", no_wrap=True)
    for row in figures.rows(bench):
        known = row.board_bps is not None or row.peer_bps is not None
        cells = [c.cell(row) if known or c.always else Text() for c in map(_COLUMNS.__getitem__, names)]
        table.add_row(*cells, style=_STATUS_STYLE.get(row.run.status, ""))
    return table


def _fitting_table(bench: Bench, console: Console) -> Table:
    """The table with as many columns as the terminal takes: a figure is left out, never cut."""
    wide = Console(width=1000)  # to measure: a console never tells more than its own width
    names = list(_FULL)
    table = _table(bench, names)
    for drop, instead in (("curve", None), ("lost", "loss"), ("bound", None), ("run", None), ("jitter", None),
                          ("counters", None), ("differ", None), ("loss", None)):  # fmt: skip
        if wide.measure(table).maximum <= console.width:
            break
        at = names.index(drop)
        names[at : at + 1] = [instead] if instead else []
        table = _table(bench, names)
    return table


_NOTE_STYLE = {"error": "red", "warning": "yellow", "note": "dim"}


def print_bench(bench: Bench, console: Console) -> None:
    """Print the table and what is to be said about it to a rich console."""
    console.print(Text(words.title_line(bench), style="bold"))
    if bench.runs:
        console.print()
        console.print(_fitting_table(bench, console))
    console.print()
    for line in words.repeat_lines(bench):
        console.print(Text(line))
    for severity, line in words.notes(bench):
        head = "" if severity == "note" else f"{severity}: "
        console.print(Text(head + line, style=_NOTE_STYLE[severity]))
    console.print(Text(words.summary_line(bench)))


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
