"""report.html: one page that needs no network, for screen (light and dark), phone and paper.

Every string passes `clean` and is escaped by Jinja2; only the plots and the style sheet are trusted.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.figure import Figure

from upyperf.analysis import figures, units
from upyperf.analysis.figures import Row
from upyperf.analysis.repeats import Summary, summarise
from upyperf.records import Bench, RunResult, Sum
from upyperf.report import environment, plots, svg, words
from upyperf.report.clean import lines, one_line

_FILES = ("results.json", "results.csv", "intervals.csv", "summary.md", "junit.xml", "records.jsonl")


def _finalize(value: object) -> object:
    """Every value that the template prints: without control characters, then escaped by Jinja2."""
    if isinstance(value, Markup):
        return value
    return units.UNKNOWN if value is None else one_line(value, 2000)


def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("upyperf.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        keep_trailing_newline=True,
    )


def _css() -> Markup:
    return Markup(files("upyperf.report").joinpath("templates/report.css").read_text("utf-8"))


def _when(bench: Bench) -> str:
    try:
        start = datetime.fromisoformat(bench.started)
    except ValueError:
        return one_line(bench.started)
    stamp = start.strftime("%Y-%m-%d %H:%M UTC")
    try:
        seconds = (datetime.fromisoformat(bench.ended) - start).total_seconds()
    except (ValueError, TypeError):
        return stamp
    return f"{stamp}, took {units.format_time_us(seconds * 1e6)}" if seconds >= 0 else stamp


def _anchor(number: int) -> str:
    return f"run{number}"


def _label(row: Row) -> str:
    return row.label + (f" #{row.run.repeat}" if row.run.repeat > 1 else "")


MANY_RUNS = 24
"""From here on each plot is drawn once, not for a wide page and a phone: drawing takes most of the time."""


def _svg(
    draw: Callable[[bool], Figure], prefix: str, title: str, description: str, once: bool = False
) -> Markup:
    """The plot for a wide page and for a phone (the style sheet shows the one that fits), or one for both."""
    if once:
        return Markup(svg.inline(draw(False), prefix, title, description))
    wide = svg.inline(draw(False), prefix + "w-", title, description, "wide")
    narrow = svg.inline(draw(True), prefix + "n-", title, description, "narrow")
    return Markup(wide + "\n" + narrow)


# --- the overview --------------------------------------------------------------------------------


def _overview_row(row: Row, anchor: str) -> dict[str, Any]:
    return {
        "anchor": anchor,
        "label": _label(row),
        "has_figures": row.board_bps is not None or row.peer_bps is not None,
        "error": words.error_text(row.run) if row.run.status != "ok" or row.run.error else "no figure",
        "board": units.format_mbit(row.board_bps),
        "peer": units.format_mbit(row.peer_bps),
        "difference": words.difference_text(row),
        "flagged": row.direction.flagged,
        "jitter": words.jitter_text(row),
        "lost": units.format_loss(row.lost, row.packets) if row.lost is not None else units.UNKNOWN,
        "counters": words.counters_text(row),
        "bound": words.bound_text(row),
        "above": bool(row.impossible),
    }


def _overview_plot(rows: list[Row]) -> Markup | None:
    shown = [r for r in rows if r.run.repeat <= 1]
    if not any(r.board_bps is not None or r.peer_bps is not None for r in shown):
        return None
    labels = [r.label for r in shown]
    said = "; ".join(
        f"{r.label}: board {units.format_rate(r.board_bps)}, peer {units.format_rate(r.peer_bps)}"
        for r in shown
    )
    return _svg(
        lambda narrow: plots.overview_figure(shown, labels, narrow), "ov-", "Rates of all tests", said
    )


# --- repeats -------------------------------------------------------------------------------------


def _repeats(bench: Bench) -> tuple[list[dict[str, Any]], Markup | None]:
    table: list[dict[str, Any]] = []
    summaries: list[Summary] = []
    for rows in words.repeat_groups(bench).values():
        values = [r.delivered_bps for r in rows if r.delivered_bps is not None and r.run.status == "ok"]
        if len(values) < 2:
            continue
        s = summarise(values)
        summaries.append(s)
        mbit = units.format_mbit
        table.append(
            {
                "label": rows[0].label,
                "n": s.n,
                "median": mbit(s.median),
                "mad": mbit(s.mad),
                "mean": mbit(s.mean),
                "ci": f"{mbit(s.ci[0])} – {mbit(s.ci[1])}" if s.ci else "too few repeats",
                "trimmed": mbit(s.trimmed),
                "range": f"{mbit(s.low)} – {mbit(s.high)}",
            }
        )
    if not table:
        return [], None
    names = [str(r["label"]) for r in table]
    said = "; ".join(f"{r['label']}: median {r['median']} Mbit/s of {r['n']}" for r in table)
    plot = _svg(
        lambda narrow: plots.repeats_figure(names, summaries, narrow), "rep-", "Repeats of each test", said
    )
    return table, plot


# --- one run -------------------------------------------------------------------------------------


_OPTION_UNITS: dict[str, Callable[[float], str]] = {
    "bandwidth": lambda v: units.format_rate(v) if v else "as fast as it goes",
    "time": lambda v: f"{v:g} s",
    "interval": lambda v: f"{v:g} s",
    "omit": lambda v: f"{v:g} s",
    "length": lambda v: f"{v:g} B",
    "window": lambda v: f"{v:g} B",
    "mss": lambda v: f"{v:g} B",
    "num_bytes": lambda v: f"{v:g} B",
}


def _option(name: str, value: object) -> object:
    """An option's value with its unit."""
    if name in _OPTION_UNITS and isinstance(value, int | float) and not isinstance(value, bool):
        return _OPTION_UNITS[name](value)
    return value


@dataclass
class _Part:
    """One direction of a run on the page."""

    title: str
    facts: list[tuple[str, str]]
    plot: Markup | None = None
    no_plot: str = ""


@dataclass
class _Run:
    anchor: str
    id: str
    label: str
    headline: str = ""
    headline_note: str = ""
    error: str = ""
    parts: list[_Part] = field(default_factory=list)
    notices: list[tuple[str, str]] = field(default_factory=list)
    settings: list[tuple[str, object]] = field(default_factory=list)
    counters: list[tuple[str, object]] = field(default_factory=list)
    output: Markup | None = None


def _end_text(total: Sum | None) -> str:
    if total is None:
        return units.UNKNOWN
    rate = units.format_rate(total.bits_per_second)
    return f"{rate} ({units.format_size(total.bytes)} in {units.format_time_us(total.us)})"


def _facts(row: Row) -> list[tuple[str, str]]:
    direction = row.direction
    facts = [
        ("Board", _end_text(direction.board)),
        (_peer_head(row), _end_text(direction.peer or direction.reported)),
    ]
    if direction.peer is not None and direction.reported is not None:
        facts.append(("As reported to the board", _end_text(direction.reported)))
    facts.append(
        ("Differ", f"{words.difference_text(row)}{f' ({direction.exempt})' if direction.exempt else ''}")
    )
    if row.jitter_us is not None:
        facts.append(("Jitter", units.format_time_us(row.jitter_us)))
    if row.lost is not None:
        facts.append(("Lost", units.format_loss(row.lost, row.packets)))
    if row.ooo is not None:
        facts.append(("Out of order", units.format_count(row.ooo)))
    if row.retries is not None:
        facts.append(("Retries", units.format_count(row.retries)))
    if row.enomem is not None:
        facts.append(("ENOMEM", units.format_count(row.enomem)))
    if row.stall_us:
        facts.append(("Stalled", units.format_time_us(row.stall_us)))
    for bound in row.limits:
        if bound.of_sender:
            facts.append(("Target rate (-b)", units.format_rate(bound.bps)))
        else:
            facts.append(("Bound", f"{units.format_rate(bound.bps)} ({bound.what}: {bound.how})"))
    return facts


def _peer_head(row: Row) -> str:
    return f"Peer, {one_line(row.peer_name)}" if row.peer_name else "Peer"


def _plot(row: Row, prefix: str, once: bool) -> Markup | None:
    board, peer = figures.curves(row.run, row.way)
    if not board and not peer:
        return None
    # The receiver's rows tell of loss: the board's own when it receives, else the peer's.
    result = row.run.board if row.way == "receive" else row.run.peer
    received = [i for i in result.intervals if i.sender == (row.way == "send")] if result else []
    rates = [p.bps for p in board or peer]
    said = (
        f"{len(rates)} intervals, from {units.format_rate(min(rates))} to {units.format_rate(max(rates))}, "
        f"first {units.format_rate(rates[0])}, last {units.format_rate(rates[-1])}"
    )
    return _svg(
        lambda narrow: plots.curve_figure(row, board, peer, received, narrow),
        prefix,
        f"Rate over time, {row.label}",
        said,
        once,
    )


def _run(bench: Bench, run: RunResult, number: int) -> _Run:
    rows = figures.rows(bench, [run])
    page = _Run(
        anchor=_anchor(number),
        id=one_line(run.id),
        label=figures.label_of(run.test) + (f" #{run.repeat}" if run.repeat > 1 else ""),
    )
    delivered = [(r.way, r.delivered_bps) for r in rows if r.delivered_bps is not None]
    if len(delivered) == 1:
        page.headline, page.headline_note = units.format_rate(delivered[0][1]), "received"
    elif delivered:
        page.headline = " / ".join(units.format_rate(bps) for _, bps in delivered)
        page.headline_note = "received " + " / ".join(
            "by the peer" if w == "send" else "by the board" for w, _ in delivered
        )
    if run.status != "ok" or run.error is not None:
        page.error = words.error_text(run)
    for n, row in enumerate(rows):
        if not delivered and run.status != "ok" and not any(figures.curves(run, row.way)):
            continue
        plot = _plot(row, f"{page.anchor}-{n}-", len(bench.runs) > MANY_RUNS)
        title = f"Board {'sends' if row.way == 'send' else 'receives'}" if len(rows) > 1 else ""
        page.parts.append(_Part(title, _facts(row), plot, "" if plot else "No intervals were recorded."))
        page.notices += [("warning", line) for line in figures.warnings(row)]
    board = run.board
    for line in board.adapted if board else ():
        page.notices.append(("note", f"adapted: {line}"))
    page.notices += [("note", line) for line in figures.remarks(run)]
    if run.lost_records:
        page.notices.append(("warning", f"{run.lost_records} records from the board are lost"))
    options = {**run.test.options, **(board.options if board else {})}
    page.settings = [
        ("test", run.test.name),
        ("role of the board", run.test.role),
        ("layer", board.layer if board and board.layer else run.test.layer),
        *((k, _option(k, v)) for k, v in sorted(options.items()) if v is not None),
    ]
    if board is not None:
        page.counters = sorted(board.counters.items())
        if board.heap is not None:
            free = f"{units.format_size(board.heap.free_before)} → {units.format_size(board.heap.free_after)}"
            page.counters.insert(0, ("heap free, before → after", free))
        page.counters += [(f"cpu {k}", v) for k, v in (board.cpu or {}).items()]
    printed = run.peer.text if run.peer and run.peer.text else board.peer_text if board else None
    if printed:
        page.output = Markup.escape(lines(printed, 16384))
    return page


def _notices(bench: Bench) -> list[tuple[str, str]]:
    mark = figures.virtual_mark(bench)
    found = [("mark", mark)] if mark else []
    # What belongs to one run is said there; the head keeps errors and warnings.
    said = [n for n in words.notes(bench) if n[0] != "note" and n[1] != one_line(mark or "")]
    return found + said + [("note", line) for line in bench.notes]


def render(bench: Bench) -> str:
    """The bench as one HTML page."""
    rows = figures.rows(bench)
    anchors = {id(run): _anchor(n) for n, run in enumerate(bench.runs, 1)}
    table, repeats_plot = _repeats(bench)
    info = bench.info
    lead = [
        bench.board.name,
        info.machine if info else "",
        words.micropython_text(info.micropython) if info and info.micropython else "",
    ]
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            bench=bench,
            css=_css(),
            lead=" · ".join(one_line(v) for v in lead if v),
            summary=words.summary_line(bench),
            bad=bench.error is not None or any(r.status != "ok" for r in bench.runs),
            when=_when(bench),
            notices=_notices(bench),
            rows=[_overview_row(r, anchors[id(r.run)]) for r in rows],
            overview=_overview_plot(rows),
            repeats=table,
            repeats_plot=repeats_plot,
            runs=[_run(bench, run, n) for n, run in enumerate(bench.runs, 1)],
            environment=environment.sections(bench),
            files=_FILES,
        )
    )
