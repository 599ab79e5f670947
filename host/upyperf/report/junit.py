"""junit.xml: testsuite = board, testcase = version.proto.direction, every figure a property with its unit."""

import xml.etree.ElementTree as ET
from datetime import datetime

from upyperf.analysis import figures
from upyperf.analysis.figures import Row
from upyperf.records import Bench, ErrorInfo, RunResult
from upyperf.report import words
from upyperf.report.clean import lines, one_line


def _seconds(started: str, ended: str) -> float:
    try:
        span = datetime.fromisoformat(ended) - datetime.fromisoformat(started)
    except ValueError:
        return 0.0
    return max(0.0, span.total_seconds())


def _properties(parent: ET.Element, pairs: list[tuple[str, object]]) -> None:
    known = [(name, value) for name, value in pairs if value is not None and value != ""]
    if known:
        element = ET.SubElement(parent, "properties")
        for name, value in known:
            ET.SubElement(element, "property", name=one_line(name), value=one_line(value))


def _figures(row: Row, prefix: str) -> list[tuple[str, object]]:
    board, peer = row.direction.board, row.direction.peer or row.direction.reported
    bound = row.bound

    def rounded(value: float | None, scale: float = 1.0, digits: int = 6) -> str | None:
        return None if value is None else f"{value / scale:.{digits}f}"

    return [
        (f"{prefix}board [Mbit/s]", rounded(row.board_bps, 1e6)),
        (f"{prefix}peer [Mbit/s]", rounded(row.peer_bps, 1e6)),
        (f"{prefix}delivered [Mbit/s]", rounded(row.delivered_bps, 1e6)),
        (f"{prefix}board bytes [B]", board.bytes if board else None),
        (f"{prefix}board time [s]", rounded(board.us, 1e6) if board else None),
        (f"{prefix}peer bytes [B]", peer.bytes if peer else None),
        (f"{prefix}difference [%]", rounded(row.direction.difference, 0.01, 3)),
        (f"{prefix}difference exempt", row.direction.exempt),
        (f"{prefix}jitter [ms]", rounded(row.jitter_us, 1e3)),
        (f"{prefix}packets", row.packets),
        (f"{prefix}lost", row.lost),
        (f"{prefix}loss [%]", rounded(row.loss_percent, 1, 4)),
        (f"{prefix}out of order", row.ooo),
        (f"{prefix}retries", row.retries),
        (f"{prefix}enomem", row.enomem),
        (f"{prefix}stall [ms]", rounded(row.stall_us, 1e3, 3)),
        (f"{prefix}bound [Mbit/s]", rounded(bound.bps, 1e6) if bound else None),
        (f"{prefix}bound of", bound.what if bound else None),
        (f"{prefix}above bound", "yes" if row.impossible else None),
    ]


def _outcome(case: ET.Element, status: str, error: ErrorInfo | None) -> str:
    """Add failure, error or skipped to a test case; returns which, or ""."""
    if status == "ok" and error is None:
        return ""
    kind = one_line(error.kind) if error else status
    message = one_line(error.text) if error else status
    if status == "skipped":
        ET.SubElement(case, "skipped", message=message)
        return "skipped"
    tag = "failure" if kind == "threshold" else "error"
    element = ET.SubElement(case, tag, message=message, type=kind)
    element.text = f"{kind}: {message}"
    return "failures" if tag == "failure" else "errors"


def _case(suite: ET.Element, bench: Bench, run: RunResult, used: set[tuple[str, str]]) -> str:
    layer = one_line(run.board.layer if run.board and run.board.layer else run.test.layer)
    place = f"upyperf.{one_line(bench.board.name)}.{layer}"
    name = f"{run.test.version}.{run.test.proto}.{run.test.mode}"
    if run.repeat > 1:
        name += f"#{run.repeat}"
    if (place, name) in used:  # the same test under other options, or as a server
        name += f" {one_line(run.test.name)}"
    while (place, name) in used:
        name += f" {one_line(run.id)}"
    used.add((place, name))
    case = ET.SubElement(
        suite,
        "testcase",
        name=name,
        classname=place,
        time=f"{_seconds(run.started, run.ended):.3f}",
    )
    rows = figures.rows(bench, [run])
    pairs: list[tuple[str, object]] = [("run", run.id), ("test", run.test.name), ("role", run.test.role)]
    for row in rows:
        pairs += _figures(row, f"{row.way} " if len(rows) > 1 else "")
    pairs.append(("peer program", run.peer.program if run.peer else None))
    pairs += [(f"option {k}", v) for k, v in (run.board.options if run.board else run.test.options).items()]
    _properties(case, pairs)
    outcome = _outcome(case, run.status, run.error)
    said = [line for row in rows for line in figures.warnings(row)]
    said += [*(run.board.adapted if run.board else []), *figures.remarks(run)]
    if said:
        ET.SubElement(case, "system-out").text = lines("\n".join(said))
    return outcome


def _told(bench: Bench, error: ErrorInfo) -> bool:
    """Whether a test case already says what ended the bench."""
    if any(r.status in ("error", "interrupted") and r.error == error for r in bench.runs):
        return True
    return error.kind == "board" and any(r.status == "skipped" and r.error == error for r in bench.runs)


def render(bench: Bench) -> str:
    """The bench as a JUnit XML document (one testsuite, named after the board)."""
    counts = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
    board = one_line(bench.board.name)
    suites = ET.Element("testsuites")
    suite = ET.SubElement(suites, "testsuite", name=board)
    info = bench.info
    _properties(
        suite,
        [
            ("bench", bench.id),
            ("plan", bench.plan),
            ("board title", bench.board.title),
            ("board kind", bench.board.kind),
            ("virtual", figures.virtual_mark(bench)),
            ("micropython", info.micropython if info else None),
            ("machine", info.machine if info else None),
            ("rssi [dBm]", info.rssi if info else None),
            ("upyperf", bench.host.upyperf),
            *((f"lwip {k}", v) for k, v in ((info.lwip or {}) if info else {}).items()),
            *((f"tool {k}", v) for k, v in bench.host.tools.items()),
        ],
    )
    used: set[tuple[str, str]] = set()
    for run in bench.runs:
        counts["tests"] += 1
        outcome = _case(suite, bench, run, used)
        if outcome:
            counts[outcome] += 1
    if bench.error is not None and not _told(bench, bench.error):
        # What stopped the bench belongs to no test: without a board nothing was tested, which is no failure.
        counts["tests"] += 1
        case = ET.SubElement(suite, "testcase", name="bench", classname=f"upyperf.{board}", time="0.000")
        status = "skipped" if bench.error.kind == "board" and not bench.runs else "error"
        counts[_outcome(case, status, bench.error)] += 1
    for name, count in counts.items():
        suite.set(name, str(count))
        suites.set(name, str(count))
    suite.set("time", f"{_seconds(bench.started, bench.ended):.3f}")
    suite.set("timestamp", bench.started.removesuffix("Z").partition(".")[0])
    suite.set("hostname", one_line(bench.host.hostname))
    problems = [line for severity, line in words.notes(bench) if severity != "note"]
    if problems:
        ET.SubElement(suite, "system-out").text = lines("\n".join(problems))
    ET.indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(suites, encoding="unicode") + "\n"
