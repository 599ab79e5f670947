"""upyperf boards, report, compare: what there is and what was measured."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from upyperf.errors import UpyperfError

Results = Annotated[
    str | None, typer.Option("--results", metavar="DIR", help="Folder of all results; default: results.")
]
WHICH = "Folder, beginning of an id, latest, latest:BOARD or latest~1."


def boards(
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, every key.")] = False,
    schema: Annotated[bool, typer.Option("--schema", help="JSON Schema of board.toml.")] = False,
) -> int:
    """List the boards."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from upyperf import boards as library

    if schema:
        print(json.dumps(library.schema(), indent=2))
        return 0
    found, errors = library.load_all()
    if as_json:
        print(json.dumps([board.model_dump(mode="json") for board in found], indent=2))
    else:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for column in ("Board", "Kind", "Port", "Layers", "Network", "Tested on", "What it is"):
            table.add_column(column, overflow="fold")
        for board in found:
            network = board.nic.chip or board.nic.kind
            table.add_row(
                board.name,
                board.kind,
                board.port,
                ", ".join(board.layers),
                network,
                board.tested,
                board.title,
            )
        Console(highlight=False).print(table)
    if errors:
        # Every broken board is named, not only the first.
        raise UpyperfError("config", " | ".join(error.text for error in errors))
    return 0


def report(
    which: Annotated[str, typer.Argument(metavar="RESULT", help=WHICH)] = "latest",
    results: Results = None,
    as_json: Annotated[bool, typer.Option("--json", "-J", help="Print results.json.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print a Markdown table.")] = False,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Make the index anew from the folders.")] = False,
) -> int:
    """Show a result again, and write its reports anew."""
    from upyperf import report as library
    from upyperf.report import markdown as markdown_report
    from upyperf.report import text
    from upyperf.settings import resolve
    from upyperf.store import Index

    index = Index(Path(resolve(results=results).results))
    if rebuild:
        for problem in index.rebuild():
            print(f"upyperf: not indexed: {problem}", file=sys.stderr)
    folder = index.find(which)
    bench = library.load(folder)
    try:
        library.write_all(folder, bench)
    except OSError as error:
        print(f"upyperf: note: the reports in {folder} stay as they are: {error.strerror}", file=sys.stderr)
    if as_json:
        print(bench.model_dump_json(indent=1))
    elif markdown:
        print(markdown_report.render(bench))
    else:
        text.write(bench, sys.stdout)
        print(f"results: {folder}/report.html")
    return 0


def compare(
    base: Annotated[str, typer.Argument(metavar="BASE", help=WHICH)],
    new: Annotated[str, typer.Argument(metavar="NEW", help=WHICH)],
    results: Results = None,
    fail_if: Annotated[
        list[str] | None,
        typer.Option(
            "--fail-if", metavar="-N%", help="Exit 1 when a test fell further than this; repeatable."
        ),
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(
            "--allow", metavar="KIND", help="Compare although this differs: board, kind, firmware, settings."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", "-J", help="As JSON.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="As Markdown.")] = False,
) -> int:
    """Compare two results (several on a side: separated by commas)."""
    from upyperf import report as library
    from upyperf.analysis import compare as analysis
    from upyperf.analysis.gate import evaluate, parse_threshold
    from upyperf.analysis.sameness import MIXTURES
    from upyperf.report import comparison
    from upyperf.settings import resolve
    from upyperf.store import Index

    index = Index(Path(resolve(results=results).results))
    allowed = [kind.strip() for text in allow or [] for kind in text.split(",")]
    known = [kind for kind in MIXTURES if kind in allowed]
    for kind in allowed:
        if kind not in MIXTURES:
            raise UpyperfError("usage", f"--allow {kind}: one of {', '.join(MIXTURES)}")
    thresholds = [parse_threshold(text) for text in fail_if or []]
    sides = [[library.load(index.find(name)) for name in side.split(",")] for side in (base, new)]
    outcome = analysis.compare(sides[0], sides[1], known)
    gates = evaluate(outcome, thresholds)
    if as_json:
        print(comparison.to_json(outcome, gates))
    elif markdown:
        print(comparison.to_markdown(outcome, gates))
    else:
        comparison.write(outcome, sys.stdout, gates)
    return max((gate.exit_code for gate in gates), default=0)


def register(app: typer.Typer) -> None:
    """Add the verbs."""
    app.command()(boards)
    app.command()(report)
    app.command()(compare)
