"""upyperf winc: look at the WINC1500 driver and at its traffic."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from upyperf.errors import EXIT_CODES, UpyperfError
from upyperf.paths import root
from upyperf.virtual.winc import trace as traces
from upyperf.virtual.winc.cost import Cost, measure
from upyperf.virtual.winc.decode_hif import Entry, Summary, decode
from upyperf.virtual.winc.experiments import EXPERIMENTS, run

app = typer.Typer(
    name="winc", help="ATWINC15x0: the driver's cost, decoded SPI traces.", no_args_is_help=True
)


def register(parent: typer.Typer) -> None:
    """Add `upyperf winc` to the command."""
    parent.add_typer(app)


@app.command()
def cost(
    as_json: Annotated[bool, typer.Option("--json", "-J", help="Print JSON, nothing else.")] = False,
    firmware: Annotated[str, typer.Option(help="Firmware version of the simulated module.")] = "19.7.7",
    packets: Annotated[int, typer.Option(min=1, max=100_000, help="Packets to take the mean of.")] = 200,
) -> None:
    """Measure SPI calls and bus bytes of one 1400-byte packet, on the simulator.

    Exit status 1 when the driver needs more than its limits.
    """
    try:
        costs = measure(root() / "firmware", firmware=firmware, packets=packets)
    except ValueError as error:
        raise UpyperfError("config", str(error)) from None
    except (RuntimeError, OSError) as error:
        raise UpyperfError("protocol", f"the driver does not get through on the simulator: {error}") from None
    if as_json:
        typer.echo(json.dumps([one.to_dict() for one in costs], indent=2))
    else:
        _show_cost(costs)
    if any(one.ok is False for one in costs):
        # Not an UpyperfError: with --json that would print a second document.
        typer.echo("upyperf: error: the driver needs more SPI calls or bus bytes than it may", err=True)
        raise typer.Exit(EXIT_CODES["threshold"])


def _show_cost(costs: list[Cost]) -> None:
    table = Table(title="One 1400-byte TCP packet on the simulated SPI bus", title_justify="left")
    for name in ("Direction", "Filler"):
        table.add_column(name)
    for name in ("Calls", "Most", "Limit", "Bus bytes", "Per payload byte", "Limit", ""):
        table.add_column(name, justify="right")
    for one in costs:
        row = one.to_dict()
        verdict = {True: "ok", False: "[red]too much", None: ""}[one.ok]
        table.add_row(
            one.direction,
            one.filler,
            f"{one.calls:.2f}",
            str(one.calls_max),
            str(row["calls_limit"] or "–"),
            f"{one.bytes:.0f}",
            f"{one.ratio:.3f}",
            f"{one.limit:.2f}" if one.limit else "–",
            verdict,
        )
    console = Console()
    console.print(table)
    console.print("simulated; a send includes its reply, a receive the next request")


@app.command()
def experiments(
    names: Annotated[list[str] | None, typer.Argument(help="W1 to W9, W13; default: all.")] = None,
    seconds: Annotated[
        float, typer.Option("--time", "-t", min=0.1, max=60, help="Length of a run, s.")
    ] = 1.0,
    as_json: Annotated[bool, typer.Option("--json", "-J", help="One JSON object a line.")] = False,
) -> None:
    """Repeat the field report's experiments with our driver on the simulator's model, in virtual time.

    The figures are those of the model: the same on every PC, however busy, and of no hardware.
    """
    try:
        rows = run([name.upper() for name in names or EXPERIMENTS], root() / "firmware", seconds)
        table = Table(title="Our driver on the simulated module (virtual time)", title_justify="left")
        for name in ("", "Setting"):
            table.add_column(name)
        for name in ("Mbit/s", "Lost", "Calls", "SPI busy"):
            table.add_column(name, justify="right")
        last = ""
        for row in rows:
            if as_json:
                typer.echo(json.dumps(row.to_dict()))
                continue
            if row.experiment != last:
                table.add_section()
                title = f"[bold]{EXPERIMENTS[row.experiment][0]}[/] (field report: {row.report})"
                table.add_row(f"[bold]{row.experiment}", title)
                last = row.experiment
            loss = "–" if row.loss is None else f"{row.loss:.2%}"
            calls = f"{row.calls_per_packet:.1f}"
            table.add_row("", row.setting, f"{row.mbps:.2f}", loss, calls, f"{row.bus_share:.0%}")
    except ValueError as error:
        raise UpyperfError("usage", str(error)) from None
    if not as_json:
        console = Console()
        console.print(table)
        console.print("simulated; Calls: SPI calls for each 1400 bytes sent; SPI busy: share of the time")


@app.command()
def trace(
    file: Annotated[Path, typer.Argument(help="Trace of the simulator, or a logic analyser's CSV.")],
    spi: Annotated[bool, typer.Option("--spi", help="Show every SPI command, not only messages.")] = False,
    summary: Annotated[bool, typer.Option("--summary", help="Show figures only.")] = False,
    as_json: Annotated[bool, typer.Option("--json", "-J", help="One JSON object a line.")] = False,
) -> None:
    """Decode SPI traffic with the module into commands, messages and socket calls.

    The CSV needs columns named like MOSI and MISO, one byte or several in a row, in hex; a time column helps.
    """
    try:
        entries, figures = decode(traces.read(file), spi)
        for entry in entries:
            if summary:
                continue
            typer.echo(_json_line(entry) if as_json else _line(entry))
    except ValueError as error:
        raise UpyperfError("usage", str(error)) from None
    if as_json:
        typer.echo(json.dumps({"summary": figures.to_dict()}))
    else:
        _show_summary(figures)


def _json_line(entry: Entry) -> str:
    return json.dumps(
        {"time_s": entry.time, "level": entry.level, "text": entry.text, "wire_bytes": entry.wire_bytes}
    )


def _line(entry: Entry) -> str:
    size = f"  [{entry.wire_bytes} B]" if entry.level == "hif" and entry.wire_bytes else ""
    line = f"{entry.time:12.6f}  {entry.level:7}  {entry.text}{size}"
    return typer.style(line, fg="red", bold=True) if entry.level == "problem" else line


def _show_summary(figures: Summary) -> None:
    console = Console()
    console.print(
        f"{figures.transfers} transfers, {figures.bytes} bytes in {figures.end - figures.start:.3f} s, "
        f"longest gap {figures.longest_gap * 1000:.1f} ms, {figures.empty_polls} polls that found nothing, "
        f"{figures.no_buffer} requests without a buffer, {figures.problems} problems, "
        f"{figures.stray_bytes} bytes outside any command"
    )
    groups = {"commands": figures.commands, "to the chip": figures.messages, "from it": figures.events}
    for title, counts in groups.items():
        if counts:
            console.print(f"{title}: " + ", ".join(f"{n} {name}" for name, n in sorted(counts.items())))
