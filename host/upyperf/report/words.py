"""What every report says in words: single figures as text, and the lines around the figures."""

import re
from collections.abc import Iterator, Sequence

from upyperf.analysis import ends, figures, units
from upyperf.analysis.figures import Row
from upyperf.analysis.repeats import summarise
from upyperf.records import Bench, RunResult
from upyperf.report.clean import one_line


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
    return ends.difference_text(row.direction)


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


def _run_notes(bench: Bench, run: RunResult) -> Iterator[tuple[str, str]]:
    """What is to be said about one run, as (severity, line)."""
    # A test that was never begun failed for what ended the bench, which is said once below.
    if run.status not in ("ok", "skipped") or (run.error is not None and bench.error is None):
        yield "error", error_text(run)
    for row in figures.rows(bench, [run]):
        for line in figures.warnings(row):
            yield "warning", line
    if run.lost_records:
        yield "warning", f"{run.lost_records} records from the board are lost"
    if run.board is not None and run.board.intervals_dropped:
        yield "warning", f"{run.board.intervals_dropped} intervals did not fit the board's memory"
    for line in run.board.adapted if run.board is not None else ():
        yield "note", one_line(line)
    for line in figures.remarks(run):
        yield "note", one_line(line)


def _names(runs: Sequence[RunResult]) -> str:
    """The runs that a line is about: "r03 iPerf 2 TCP send", "r01, r02", "r01, r02, r03 and 5 more"."""
    if len(runs) == 1:
        return f"{one_line(runs[0].id)} {figures.label_of(runs[0].test)}"
    shown = runs if len(runs) <= 4 else runs[:3]
    more = f" and {len(runs) - 3} more" if len(runs) > 4 else ""
    return ", ".join(one_line(run.id) for run in shown) + more


def notes(bench: Bench) -> list[tuple[str, str]]:
    """What is to be said below the table, as (severity, line): "error", "warning" or "note".

    What several runs have to say alike is said once, with their ids.
    """
    said: dict[tuple[str, str], list[RunResult]] = {}
    for run in bench.runs:
        for note in dict.fromkeys(_run_notes(bench, run)):
            said.setdefault(note, []).append(run)
    mark = figures.virtual_mark(bench)
    found = [("warning", one_line(mark))] if mark else []
    found += [(severity, f"{_names(runs)}: {line}") for (severity, line), runs in said.items()]
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
