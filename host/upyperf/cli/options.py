"""Options that several verbs share, and what their values become."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from upyperf import quantities
from upyperf.errors import UpyperfError

Port = Annotated[
    str | None,
    typer.Option(
        "--port",
        metavar="DEVICE",
        help="Serial device: /dev/ttyACM0, COM12, socket://H:P, rfc2217://H:P, id:SERIAL.",
    ),
]
Server = Annotated[
    str | None,
    typer.Option(
        "--server", "-c", metavar="HOST[:PORT]", help="Use an iperf server that already runs there."
    ),
]
PeerAddress = Annotated[
    str | None,
    typer.Option("--peer-address", metavar="ADDRESS", help="Address or interface of this PC for the peer."),
]
Ip = Annotated[
    str | None,
    typer.Option("--ip", metavar="ADDRESS/PREFIX", help="Fixed address of the board, e.g. 192.168.7.2/24."),
]
Gateway = Annotated[
    str | None, typer.Option("--gateway", metavar="ADDRESS", help="Gateway of the board, with --ip.")
]
ResultDir = Annotated[
    Path | None,
    typer.Option(
        "--result-dir", metavar="DIR", help="Write the results into DIR, not into results/<time>-<board>."
    ),
]
Json = Annotated[bool, typer.Option("--json", "-J", help="Print results.json on stdout, nothing else.")]
JsonStream = Annotated[
    bool,
    typer.Option("--json-stream", help="Print every event on stdout as it comes, one JSON object a line."),
]
Markdown = Annotated[bool, typer.Option("--markdown", help="Print a Markdown table, for a pull request.")]
Twin = Annotated[bool, typer.Option("--twin", help="Run on the virtual board nearest to BOARD instead.")]
VirtualOption = Annotated[
    list[str] | None,
    typer.Option("--virtual", metavar="KEY=VALUE", help="Option of a virtual board's launcher; repeatable."),
]
NoDeploy = Annotated[bool, typer.Option("--no-deploy", help="Use the modules that are on the board.")]
Live = Annotated[
    bool, typer.Option("--live", help="Let the board send its intervals during the test (costs rate).")
]
Time = Annotated[
    float | None, typer.Option("--time", "-t", min=0.1, max=86400, metavar="S", help="Length of a test, s.")
]
Interval = Annotated[
    float | None,
    typer.Option("--interval", "-i", min=0.1, max=60, metavar="S", help="Time between intervals, s."),
]
Length = Annotated[
    str | None,
    typer.Option("--length", "-l", metavar="N[KMG]", help="Block or datagram length, bytes (x1024)."),
]
Bandwidth = Annotated[
    str | None,
    typer.Option(
        "--bandwidth", "-b", metavar="N[KMG]", help="Target rate, bit/s (x1000; iPerf 2: K, M, G are x1024)."
    ),
]
Parallel = Annotated[
    int | None, typer.Option("--parallel", "-P", min=1, max=128, metavar="N", help="Parallel streams.")
]
Window = Annotated[
    str | None, typer.Option("--window", "-w", metavar="N[KM]", help="Socket buffer or window, bytes.")
]
Mss = Annotated[int | None, typer.Option("--mss", "-M", min=1, metavar="N", help="TCP maximum segment size.")]
Nodelay = Annotated[bool, typer.Option("--nodelay", "-N", help="TCP_NODELAY: no Nagle.")]
Omit = Annotated[
    float | None,
    typer.Option("--omit", "-O", min=0, max=600, metavar="S", help="Do not count the first S seconds."),
]
NumBytes = Annotated[
    str | None, typer.Option("--bytes", "-n", metavar="N[KMG]", help="Bytes to transfer instead of a time.")
]
Blocks = Annotated[
    int | None,
    typer.Option("--blocks", "-k", min=1, metavar="N", help="Blocks to transfer instead of a time."),
]
Tos = Annotated[
    str | None, typer.Option("--tos", "-S", metavar="N", help="IP type of service (0x.. or decimal).")
]
Repeats = Annotated[
    int | None, typer.Option("--repeats", min=1, max=1000, metavar="N", help="Run the plan N times.")
]
Layer = Annotated[
    list[str] | None,
    typer.Option("--layer", metavar="NAME", help="Socket layer; repeatable; all: each that the board has."),
]


def overrides(version: int, **given: Any) -> dict[str, Any]:
    """The options that were given, in bytes, bit/s and s. Raises UpyperfError of kind usage."""
    out: dict[str, Any] = {}
    for name, value in given.items():
        if value is None or value is False:
            continue
        try:
            if name in ("length", "window", "num_bytes"):
                value = quantities.size(value, version)
            elif name == "bandwidth":
                # iperf3's -b also takes a burst behind a slash; only the rate is ours.
                value = quantities.rate(value, version)
            elif name == "tos":
                value = _tos(value)
        except ValueError as error:
            raise UpyperfError("usage", f"--{name.replace('num_', '')}: {error}") from None
        out[name] = value
    return out


def _tos(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise ValueError(f"{text!r} is not a number: write 0 to 255 or 0x00 to 0xff") from None


def key_values(pairs: list[str] | None) -> dict[str, Any]:
    """KEY=VALUE texts; numbers become numbers. Raises UpyperfError of kind usage."""
    out: dict[str, Any] = {}
    for pair in pairs or []:
        key, sign, value = pair.partition("=")
        if not sign or not key:
            raise UpyperfError("usage", f"--virtual {pair!r}: write KEY=VALUE")
        try:
            out[key] = int(value)
        except ValueError:
            try:
                out[key] = float(value)
            except ValueError:
                out[key] = value
    return out
