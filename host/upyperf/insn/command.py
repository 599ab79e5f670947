"""`upyperf insn BOARD`: table, JSON, gate and profile."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from upyperf import boards, firmware
from upyperf.errors import UpyperfError
from upyperf.insn import baseline
from upyperf.insn.clients import compare_clients
from upyperf.insn.measure import REPEATS, Cell, all_cells, measure
from upyperf.insn.profile import profile


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("insn")(insn)


def _select(only: list[str] | None) -> list[tuple[str, str, str, int]]:
    cells = all_cells()
    if not only:
        return cells
    picked = [c for c in cells if any(set(o.split("/")) <= {str(part) for part in c} for o in only)]
    if not picked:
        raise UpyperfError("usage", f"--only {' '.join(only)} matches no cell: e.g. netconn/tcp/send/16384")
    return picked


def _table(rows: list[Cell], about: str) -> Table:
    table = Table(title=f"Instructions per payload byte ({about})", title_justify="left")
    for head in ("layer", "transport", "direction"):
        table.add_column(head)
    for head in ("size B", "insn/B", "repeats", "spread"):
        table.add_column(head, justify="right")
    for r in rows:
        table.add_row(
            r.layer,
            r.transport,
            r.direction,
            str(r.size),
            f"{r.insn_per_byte:.3f}",
            str(r.repeats),
            f"{r.spread:.2%}",
        )
    return table


def insn(
    board: Annotated[str, typer.Argument(help="A board on an emulator that counts instructions.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the rows as JSON.")] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(help="Cells to measure, e.g. netconn/tcp/send or 16384; may be repeated."),
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, max=99)] = REPEATS,
    lwip_profile: Annotated[str, typer.Option(help="lwIP options of the firmware.")] = "tuned",
    out: Annotated[Path | None, typer.Option(help="Also write the rows to this file.")] = None,
    gate: Annotated[bool, typer.Option(help="Fail (exit 1) when a cell is over its baseline.")] = False,
    update: Annotated[bool, typer.Option(help="Write the baseline file from this run.")] = False,
    clients: Annotated[
        bool, typer.Option("--clients", help="The whole iperf client against uiperf3's.")
    ] = False,
    functions: Annotated[
        bool, typer.Option("--functions", help="Which function costs what, for one cell (--only).")
    ] = False,
) -> None:
    """Count the instructions per payload byte of each socket layer."""
    found = boards.load(board)
    if found.virtual is None or found.virtual.launcher != "qemu":
        raise UpyperfError(
            "unsupported", f"board {board} does not count instructions: use one that runs on QEMU"
        )
    options: dict[str, Any] = {**found.virtual.options, "profile": lwip_profile}
    cells = _select(only)
    console = Console()
    if clients:
        found_ratio = compare_clients(found, options)
        print(json.dumps(found_ratio) if as_json else "TCP send, instructions/B, whole clients: "
              f"iperf {found_ratio['iperf']:.3f}, uiperf3 {found_ratio['uiperf3']:.3f}, "
              f"ratio {found_ratio['ratio']:.2f}")  # fmt: skip
        return
    if functions:
        _functions(found, cells, options, as_json, console)
        return
    show = (
        None
        if as_json
        else (lambda c: print(f"{'/'.join(map(str, c.key))} {c.insn_per_byte}", file=sys.stderr))
    )
    rows, lwip = measure(found, cells, repeats=repeats, options=options, on_cell=show)
    text = json.dumps([r.model_dump() for r in rows], indent=1)
    if out:
        out.write_text(text + "\n")
    about = f"{board}, {firmware.compiler()}, lwIP {lwip['lwip']}, profile {lwip['name']}"
    if as_json:
        print(text)
    else:
        console.print(_table(rows, about))
        console.print("Instructions, not cycles: compare layers with them, not chips.")
    path = baseline.path_for(board, firmware.compiler(), lwip["lwip"], lwip["name"])
    if update:
        merged = {c.key: c for c in (baseline.load(path) if path.exists() else [])} | {c.key: c for c in rows}
        baseline.save(path, list(merged.values()))
        print(f"baseline written: {path}", file=sys.stderr)
    if gate:
        if not path.exists():
            raise UpyperfError(
                "config", f"no baseline for this compiler and lwIP: {path.name} (make it with --update)"
            )
        worse = baseline.compare(rows, baseline.load(path))
        if worse:
            raise UpyperfError("threshold", "; ".join(worse))


def _functions(
    board: object,
    cells: list[tuple[str, str, str, int]],
    options: dict[str, Any],
    as_json: bool,
    console: Console,
) -> None:
    if len(cells) != 1:
        names = ", ".join("/".join(map(str, c)) for c in cells[:4])
        raise UpyperfError("usage", f"--functions profiles one cell; --only chose {len(cells)}: {names} …")
    rows = profile(board, cells[0], options=options)
    total = sum(n for _, n in rows)
    if as_json:
        print(json.dumps([{"function": f, "insn_per_byte": round(n, 4)} for f, n in rows], indent=1))
        return
    table = Table(title=f"{'/'.join(map(str, cells[0]))}: {total:.3f} instructions/B", title_justify="left")
    table.add_column("function")
    table.add_column("insn/B", justify="right")
    table.add_column("share", justify="right")
    for name, n in rows[:25]:
        table.add_row(name, f"{n:.3f}", f"{n / total:.1%}")
    console.print(table)
