"""A comparison of results for a terminal, for a comment on a pull request, and for programs."""

import io
import json
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TextIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from upyperf.analysis import units
from upyperf.analysis.compare import ALPHA, Change, Comparison
from upyperf.analysis.gate import Gate
from upyperf.report.clean import one_line
from upyperf.report.markdown import escape

_STYLE = {"slower": "red", "faster": "green"}
_PIPED_WIDTH = 240


def _base_text(change: Change) -> str:
    if change.base is None:
        return units.UNKNOWN
    return units.format_rate_spread(change.base.mean, change.base.half_width)


def _interval_text(change: Change) -> str:
    if change.ci is None:
        return units.UNKNOWN
    low, high = (units.format_percent(v * 100, signed=True) for v in change.ci)
    return f"{low} … {high}"


def _repeats_text(change: Change) -> str:
    return f"{change.base.n if change.base else 0} / {change.new.n if change.new else 0}"


def _pair_text(pair: tuple[float | None, float | None], unit: str) -> str:
    """ "0.38 → 1.2 %"; empty where neither side knows it."""
    if pair == (None, None):
        return ""
    shown = [units.UNKNOWN if v is None else f"{v:.3g}" for v in pair]
    return f"{shown[0]} → {shown[1]}{unit}"


def _labels(comparison: Comparison) -> list[str]:
    """The tests' names for people; with the plan's name where two would read alike."""
    counts = Counter(c.label for c in comparison.changes)
    return [
        c.label if counts[c.label] == 1 else f"{c.label} ({one_line(c.name)})" for c in comparison.changes
    ]


def _remarks(comparison: Comparison) -> list[str]:
    said = [d.text for d in comparison.differences]
    if comparison.virtual:
        said.append(comparison.virtual)
    said.append(
        "rates at the receiving end; ± is half the 95 % bootstrap interval of the mean, "
        f"p that of the Mann–Whitney test, significant below {ALPHA:g}"
    )
    return [one_line(line) for line in said]


def _title(comparison: Comparison) -> str:
    base, new = (", ".join(one_line(i) for i in side) for side in (comparison.base, comparison.new))
    return f"{one_line(comparison.board)}: {base} → {new}"


def _errors(comparison: Comparison) -> list[str]:
    """Why there is no figure, or one less, for each test and side."""
    return [
        f"{label}, {side}: {one_line(text)}"
        for label, change in zip(_labels(comparison), comparison.changes, strict=True)
        for side, errors in (("BASE", change.base_errors), ("NEW", change.new_errors))
        for text in dict.fromkeys(errors)
    ]


_CELLS: dict[str, tuple[str, Callable[[Change], str]]] = {
    "base": ("Base", _base_text),
    "new": ("New", lambda c: one_line(c.wording)),
    "ci": ("95 % CI of the change", _interval_text),
    "n": ("n", _repeats_text),
    "loss": ("Loss", lambda c: _pair_text(c.loss, " %")),
    "retries": ("Retries + ENOMEM", lambda c: _pair_text(c.retries, "")),
}


def _table(comparison: Comparison, names: Sequence[str], fold: bool) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("Test", no_wrap=not fold)
    for name in names:
        table.add_column(
            _CELLS[name][0],
            justify="right" if name == "base" else "left",
            no_wrap=not (fold and name == "new"),
        )
    for label, change in zip(_labels(comparison), comparison.changes, strict=True):
        cells = [Text(label), *(Text(_CELLS[name][1](change)) for name in names)]
        table.add_row(*cells, style=_STYLE.get(change.verdict, ""))
    return table


def _fitting_table(comparison: Comparison, console: Console) -> Table:
    """The table with as many columns as the terminal takes; in the end the new figure is folded."""
    wide = Console(width=1000)
    names = ["base", "new", "ci", "n"]
    names += ["loss"] if any(c.loss != (None, None) for c in comparison.changes) else []
    names += ["retries"] if any(c.retries != (None, None) for c in comparison.changes) else []
    for drop in ("retries", "ci", "n", "loss"):
        table = _table(comparison, names, fold=False)
        if wide.measure(table).maximum <= console.width:
            return table
        if drop in names:
            names.remove(drop)
    return _table(comparison, names, fold=True)


def print_comparison(comparison: Comparison, console: Console, gates: Sequence[Gate] = ()) -> None:
    """Print the table, what else differs, and the outcome of the gates to a rich console."""
    console.print(Text(_title(comparison), style="bold"))
    console.print()
    console.print(_fitting_table(comparison, console))
    console.print()
    for line in _errors(comparison):
        console.print(Text(line, style="yellow"))
    for line in _remarks(comparison):
        console.print(Text(line, style="dim"))
    for gate in gates:
        console.print(Text(gate.text, style="green" if gate.passed else "bold red"))
        for failure in gate.failures:
            console.print(Text(f"  {failure.change.label}: {one_line(failure.text)}", style="red"))


def to_text(comparison: Comparison, gates: Sequence[Gate] = (), width: int = _PIPED_WIDTH) -> str:
    """The same as plain text: no colour, nothing cut, no trailing blanks."""
    buffer = io.StringIO()
    console = Console(file=buffer, width=width, no_color=True, force_terminal=False, highlight=False)
    print_comparison(comparison, console, gates)
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()) + "\n"


def write(comparison: Comparison, out: TextIO, gates: Sequence[Gate] = ()) -> None:
    """To a stream: coloured and fitted where it is a terminal, plain where it is not."""
    if out.isatty():
        print_comparison(comparison, Console(file=out, highlight=False), gates)
        return
    encoding = getattr(out, "encoding", None) or "utf-8"
    out.write(to_text(comparison, gates).encode(encoding, "replace").decode(encoding))


def to_markdown(comparison: Comparison, gates: Sequence[Gate] = ()) -> str:
    """The comparison as Markdown, for a comment on a pull request."""
    out = [f"### upyperf compare: {escape(_title(comparison))}", ""]
    for gate in gates:
        out.append(f"{'✅' if gate.passed else '❌'} {escape(gate.text)}")
        out += [f"- {escape(f.change.label)}: {escape(f.text)}" for f in gate.failures]
        out.append("")
    with_loss = any(c.loss != (None, None) for c in comparison.changes)
    head = ["Test", "Base", "New", "95 % CI of the change", "n", *(["Loss"] if with_loss else [])]
    out += ["| " + " | ".join(head) + " |", "|:--|--:|:--|:--|--:|" + (":--|" if with_loss else "")]
    for label, change in zip(_labels(comparison), comparison.changes, strict=True):
        wording = escape(change.wording)
        cells = [
            escape(label),
            escape(_base_text(change)),
            f"**{wording}**" if change.verdict in _STYLE else wording,
            _interval_text(change),
            _repeats_text(change),
        ]
        if with_loss:
            cells.append(_pair_text(change.loss, " %"))
        out.append("| " + " | ".join(cells) + " |")
    out += ["", *(f"- {escape(line)}" for line in _errors(comparison))]
    out += ["", "<sub>" + "<br>".join(escape(line) for line in _remarks(comparison)) + "</sub>", ""]
    return "\n".join(out)


def to_json(comparison: Comparison, gates: Sequence[Gate] = ()) -> str:
    """The comparison as one JSON document: rates in bit/s, changes in percent."""
    document = {**comparison.to_dict(), "gates": [g.to_dict() for g in gates]}
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
