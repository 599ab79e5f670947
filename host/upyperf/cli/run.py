"""upyperf run: one test on a board, with iperf's letters."""

from __future__ import annotations

from typing import Annotated

import typer

from upyperf.cli import options as o
from upyperf.errors import UpyperfError


def _mode(reverse: bool, bidir: bool, dual: bool, tradeoff: bool) -> str:
    asked = [
        name
        for name, on in (("receive", reverse), ("bidir", bidir), ("dual", dual), ("tradeoff", tradeoff))
        if on
    ]
    if len(asked) > 1:
        raise UpyperfError("usage", "only one of -R, --bidir, -d and -r at a time")
    return asked[0] if asked else "send"


def run(
    board: Annotated[str | None, typer.Argument(metavar="BOARD", help="Board; see upyperf boards.")] = None,
    version: Annotated[int, typer.Option("--iperf", min=2, max=3, metavar="2|3", help="iPerf version.")] = 3,
    serve: Annotated[
        bool, typer.Option("--serve", "-s", help="The board serves, the PC is the client.")
    ] = False,
    udp: Annotated[bool, typer.Option("--udp", "-u", help="UDP instead of TCP.")] = False,
    reverse: Annotated[
        bool, typer.Option("--reverse", "-R", help="The server sends: the board receives.")
    ] = False,
    bidir: Annotated[bool, typer.Option("--bidir", help="Both directions at once.")] = False,
    dual: Annotated[
        bool, typer.Option("--dualtest", "-d", help="iPerf 2: both directions, two connections.")
    ] = False,
    tradeoff: Annotated[
        bool, typer.Option("--tradeoff", "-r", help="iPerf 2: one direction after the other.")
    ] = False,
    server_port: Annotated[
        int | None,
        typer.Option("-p", "--server-port", min=1, max=65535, metavar="N", help="Port of the server."),
    ] = None,
    time: o.Time = None,
    interval: o.Interval = None,
    length: o.Length = None,
    bandwidth: o.Bandwidth = None,
    parallel: o.Parallel = None,
    window: o.Window = None,
    mss: o.Mss = None,
    nodelay: o.Nodelay = False,
    tos: o.Tos = None,
    omit: o.Omit = None,
    num_bytes: o.NumBytes = None,
    blocks: o.Blocks = None,
    ipv6: Annotated[bool, typer.Option("--ipv6", "-6", help="IPv6.")] = False,
    get_server_output: Annotated[
        bool, typer.Option("--get-server-output", help="iPerf 3: take the server's own text into the result.")
    ] = False,
    layer: Annotated[str | None, typer.Option("--layer", metavar="NAME", help="Socket layer.")] = None,
    repeats: o.Repeats = None,
    port: o.Port = None,
    server: o.Server = None,
    peer_address: o.PeerAddress = None,
    ip: o.Ip = None,
    gateway: o.Gateway = None,
    result_dir: o.ResultDir = None,
    as_json: o.Json = False,
    json_stream: o.JsonStream = False,
    markdown: o.Markdown = False,
    twin: o.Twin = False,
    virtual: o.VirtualOption = None,
    no_deploy: o.NoDeploy = False,
    live: o.Live = False,
) -> int:
    """Run one test on a board; the letters are iperf's, the board is the client unless -s."""
    from upyperf import plan as plans
    from upyperf.bench import Order
    from upyperf.cli import work
    from upyperf.settings import resolve

    settings = resolve(
        board=board, port=port, server=server, peer_address=peer_address, ip=ip, gateway=gateway
    )
    chosen, twin_of = work.board_of(settings.board, twin)
    options = o.overrides(
        version, time=time, interval=interval, length=length, bandwidth=bandwidth, parallel=parallel,
        window=window, mss=mss, nodelay=nodelay, tos=tos, omit=omit, num_bytes=num_bytes, blocks=blocks,
        ipv6=ipv6, get_server_output=get_server_output,
    )  # fmt: skip
    mode = _mode(reverse, bidir, dual, tradeoff)
    if serve:
        # With the board as server, iperf's -R still means: the server sends.
        mode = {"send": "receive", "receive": "send"}.get(mode, mode)
    used = layer or chosen.layers[0]
    if used not in chosen.layers:
        raise UpyperfError(
            "unsupported", f"{chosen.name} has no layer {used!r}, only {', '.join(chosen.layers)}"
        )
    test = plans.make(version, "udp" if udp else "tcp", mode, used, options, "server" if serve else "client")
    access = work.access(settings, o.key_values(virtual), not no_deploy, twin_of)
    access.server_port = server_port
    order = Order(
        board=chosen,
        tests=[test],
        plan="run",
        repeats=repeats or 1,
        live=live,
        interval_s=interval or 1.0,
        access=access,
    )
    return work.perform(order, settings, result_dir, as_json, json_stream, markdown)


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command()(run)
