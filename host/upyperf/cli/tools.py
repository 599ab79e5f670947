"""upyperf deploy, serve, virtual, doctor: the parts of a bench alone."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from upyperf.cli import options as o
from upyperf.errors import UpyperfError


def deploy(
    board: Annotated[str | None, typer.Argument(metavar="BOARD", help="Board; see upyperf boards.")] = None,
    port: o.Port = None,
    as_json: Annotated[bool, typer.Option("--json", "-J", help="As JSON.")] = False,
) -> int:
    """Put the iperf modules onto a board, without measuring."""
    from dataclasses import asdict

    from upyperf import boards, link
    from upyperf import deploy as library
    from upyperf.boards.find import port_of
    from upyperf.settings import resolve

    settings = resolve(board=board, port=port)
    chosen = boards.load(settings.board)
    if chosen.kind == "virtual" and settings.port is None:
        raise UpyperfError(
            "usage",
            f"{chosen.name} is virtual and gone after a run: start it by upyperf virtual, then name --port",
        )
    device = settings.port or port_of(chosen)
    with link.connect(device, baud=chosen.serial.baud, dtr=chosen.serial.dtr, rts=chosen.serial.rts) as line:
        serial = chosen.serial
        line.identify().require(chosen.name, device, platform=serial.platform, machine=serial.machine)
        done = library.deploy(line, chosen)
        line.soft_reset()
    if as_json:
        print(json.dumps(asdict(done)))
    else:
        print(f"{done.files} files ({done.bytes} bytes, {done.form}), {done.changed} of them new or changed")
        for note in done.notes:
            print(f"note: {note}", file=sys.stderr)
    return 0


def serve(
    version: Annotated[int, typer.Option("--iperf", min=2, max=3, metavar="2|3", help="iPerf version.")] = 3,
    udp: Annotated[bool, typer.Option("--udp", "-u", help="iPerf 2: serve UDP instead of TCP.")] = False,
    address: Annotated[
        str, typer.Option("--bind", "-B", metavar="ADDRESS", help="Address to listen at.")
    ] = "0.0.0.0",
    server_port: Annotated[
        int | None, typer.Option("-p", "--server-port", min=1, max=65535, metavar="N", help="Port.")
    ] = None,
    one_off: Annotated[bool, typer.Option("--one-off", "-1", help="End after one test.")] = False,
) -> int:
    """Serve tests on this PC with our own iperf package, until Ctrl-C."""
    from upyperf import own_server

    return own_server.serve(version, udp, address, server_port, one_off)


def virtual(
    board: Annotated[str, typer.Argument(metavar="BOARD", help="A virtual board; see upyperf boards.")],
    option: o.VirtualOption = None,
    log_dir: Annotated[
        Path | None,
        typer.Option("--log-dir", metavar="DIR", help="Where its log goes; default: a new folder."),
    ] = None,
) -> int:
    """Start a virtual board and leave it running: prints its serial device, ends with Ctrl-C."""
    from upyperf import boards
    from upyperf import virtual as library

    chosen = boards.load(board)
    if chosen.virtual is None:
        known = [b.name for b in boards.load_all()[0] if b.virtual]
        raise UpyperfError("usage", f"{board} is hardware; virtual are: {', '.join(known)}")
    folder = log_dir or Path(tempfile.mkdtemp(prefix=f"upyperf-{board}-"))
    options = {**chosen.virtual.options, **o.key_values(option)}
    library.serve_forever(chosen.virtual.launcher, chosen, options, folder, out=sys.stdout)
    return 0


def doctor(as_json: Annotated[bool, typer.Option("--json", "-J", help="As JSON.")] = False) -> int:
    """Look at this PC: tools and versions, serial ports, permissions, peer programs."""
    from rich.console import Console
    from rich.text import Text

    from upyperf.doctor import findings

    found = findings()
    if as_json:
        print(json.dumps([finding.to_dict() for finding in found], indent=2))
    else:
        console = Console(highlight=False, soft_wrap=True)
        marks = {"ok": ("✔", "green"), "note": ("·", "yellow"), "problem": ("✘", "red")}
        for finding in found:
            mark, colour = marks[finding.level]
            todo = f" → {finding.todo}" if finding.todo else ""
            console.print(Text.assemble((mark, colour), f" {finding.what}: {finding.found}{todo}"))
    return 2 if any(finding.level == "problem" for finding in found) else 0


def register(app: typer.Typer) -> None:
    """Add the verbs."""
    for verb in (deploy, serve, virtual, doctor):
        app.command()(verb)
