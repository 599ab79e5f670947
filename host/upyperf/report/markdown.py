"""summary.md: the result as a table for `$GITHUB_STEP_SUMMARY` and for comments on a pull request."""

import re

from upyperf.analysis import figures, units
from upyperf.analysis.figures import Row
from upyperf.records import Bench
from upyperf.report import words
from upyperf.report.clean import one_line

_SPECIAL = re.compile(r"([\\`*_\[\]<>#|~$])")


def escape(value: object) -> str:
    """Text that Markdown shows as it is: no links, HTML, code, table cells or mentions come of it."""
    escaped = _SPECIAL.sub(r"\\\1", one_line(value)).replace("&", "&amp;")
    escaped = escaped.replace("\\<", "&lt;").replace("\\>", "&gt;")
    # A word joiner behind the @ stops GitHub from mentioning a user; "://" and "www." would become links.
    escaped = escaped.replace("@", "@\u2060").replace("://", ":\u2060//")
    return re.sub(r"(?i)\bwww\.", "www\u2060.", escaped)


def _cell(value: str, flagged: bool) -> str:
    return f"**{value}** ⚠" if flagged else value


def _line(row: Row) -> str:
    label = row.label + (f" #{row.run.repeat}" if row.run.repeat > 1 else "")
    if row.board_bps is None and row.peer_bps is None:
        cells = [label, f"**{escape(row.run.error.kind if row.run.error else row.run.status)}**"] + [""] * 6
    else:
        cells = [
            label,
            units.format_mbit(row.board_bps),
            units.format_mbit(row.peer_bps),
            _cell(words.difference_text(row), row.direction.flagged),
            words.jitter_text(row),
            units.format_loss(row.lost, row.packets) if row.lost is not None else units.UNKNOWN,
            words.counters_text(row),
            _cell(words.bound_text(row), bool(row.impossible)),
        ]
    return "| " + " | ".join(cells) + " |"


def render(bench: Bench) -> str:
    """The bench as a Markdown document."""
    out = [f"### upyperf: {escape(bench.board.name)}, {escape(words.summary_line(bench))}", ""]
    mark = figures.virtual_mark(bench)
    if mark:
        out += [f"> {escape(mark)}", ""]
    if bench.runs:
        out += [
            "| Test | Board Mbit/s | Peer Mbit/s | Differ | Jitter | Lost | Retries/ENOMEM | Bound Mbit/s |",
            "|:--|--:|--:|--:|--:|--:|--:|--:|",
            *(_line(row) for row in figures.rows(bench)),
            "",
        ]
    out += [f"- {line}" for line in words.repeat_lines(bench)]
    for severity, line in words.notes(bench):
        if line != one_line(mark or ""):
            out.append(f"- {'' if severity == 'note' else severity + ': '}{escape(line)}")
    info = bench.info
    about = [escape(words.title_line(bench))]
    if info and info.lwip:
        options = ", ".join(f"{escape(k)} {escape(v)}" for k, v in info.lwip.items())
        about.append(f"lwIP: {options}")
    about.append(f"{escape(bench.id)}, upyperf {escape(bench.host.upyperf)}")
    out += ["", "<sub>" + "<br>".join(about) + "</sub>", ""]
    return "\n".join(out)
