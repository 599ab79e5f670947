"""python -m upyperf.virtual.winc: a simulated module behind a socket (docs/winc-sim.md)."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from pathlib import Path

from .chip import Chip
from .config import PROFILES, load
from .server import Server
from .trace import Recorder


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m upyperf.virtual.winc", description=__doc__)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--unix", type=Path, metavar="PATH", help="serve on a Unix socket")
    where.add_argument("--tcp", metavar="HOST:PORT", help="serve on TCP; port 0 picks a free one")
    parser.add_argument("--profile", default="field", choices=sorted(PROFILES))
    parser.add_argument("--config", type=Path, metavar="FILE.toml")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="settings")
    parser.add_argument("--strict", action="store_true", help="a rule violation ends the connection")
    parser.add_argument("--trace", type=Path, metavar="FILE", help="record every transfer")
    parser.add_argument("--stats", type=Path, metavar="FILE", help="write the counters there at the end")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT. Returns the exit status."""
    options = _arguments(argv)
    try:
        settings = dict(item.split("=", 1) for item in options.settings)
    except ValueError:
        print("error: --set takes KEY=VALUE", file=sys.stderr)
        return 2
    if options.strict:
        settings["strict"] = "true"
    try:
        chip = Chip(load(options.profile, options.config, settings))
        tcp = None
        if options.tcp:
            host, _, port = options.tcp.rpartition(":")
            tcp = host or "127.0.0.1", int(port)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    try:
        server = Server(chip, unix=options.unix, tcp=tcp)
        if options.trace:
            chip.trace = Recorder(options.trace)
    except (OSError, OverflowError) as error:
        print(f"error: cannot serve: {error}", file=sys.stderr)
        return 2
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: server.stop())
    print(f"ready {server.address}", flush=True)
    server.serve()
    stats = chip.stats()
    if options.stats:
        options.stats.write_text(json.dumps(stats, indent=2) + "\n", encoding="utf-8")
    if stats["spi"]["behind"]:
        lost = stats["spi"]["behind_us"] / 1000
        print(f"warning: fell {lost:.0f} ms behind the model of time; rates may be too low", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
