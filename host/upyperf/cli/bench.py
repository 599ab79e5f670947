"""upyperf bench: a plan on a board."""

from __future__ import annotations

from typing import Annotated

import typer

from upyperf.cli import options as o


def bench(
    board: Annotated[str | None, typer.Argument(metavar="BOARD", help="Board; see upyperf boards.")] = None,
    plan: Annotated[
        str | None, typer.Option("--plan", metavar="NAME|FILE", help="Plan; default: standard.")
    ] = None,
    port: o.Port = None,
    server: o.Server = None,
    peer_address: o.PeerAddress = None,
    ip: o.Ip = None,
    gateway: o.Gateway = None,
    layer: o.Layer = None,
    time: o.Time = None,
    interval: o.Interval = None,
    length: o.Length = None,
    bandwidth: o.Bandwidth = None,
    parallel: o.Parallel = None,
    repeats: o.Repeats = None,
    result_dir: o.ResultDir = None,
    as_json: o.Json = False,
    json_stream: o.JsonStream = False,
    markdown: o.Markdown = False,
    twin: o.Twin = False,
    virtual: o.VirtualOption = None,
    no_deploy: o.NoDeploy = False,
    live: o.Live = False,
) -> int:
    """Run a plan on a board against the real iperf and iperf3, show and store the result."""
    from upyperf import plan as plans
    from upyperf.bench import Order
    from upyperf.cli import work
    from upyperf.settings import resolve

    settings = resolve(
        board=board, plan=plan, port=port, server=server, peer_address=peer_address, ip=ip, gateway=gateway
    )
    chosen, twin_of = work.board_of(settings.board, twin)
    name = settings.plan or chosen.plan or plans.STANDARD
    loaded = plans.load(name)
    # A plan of both versions takes one rate: lower-case suffixes mean the same to both.
    over = o.overrides(3, time=time, interval=interval, length=length, bandwidth=bandwidth, parallel=parallel)
    tests = plans.expand(loaded, chosen.layers, layer or (), over)
    order = Order(
        board=chosen,
        tests=tests,
        plan=name,
        repeats=repeats or loaded.repeats,
        live=live,
        interval_s=interval or 1.0,
        access=work.access(settings, o.key_values(virtual), not no_deploy, twin_of),
    )
    return work.perform(order, settings, result_dir, as_json, json_stream, markdown)


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command()(bench)
