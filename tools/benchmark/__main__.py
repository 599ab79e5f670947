"""Side by side on the unix board's MicroPython: our package, the PyPI package uiperf3, and the C client
iperf3, each against the same iperf3 server on loopback.

    tools/benchmark [--pairs 7] [--time 3] [--only tcp-send ...] [--out docs]

Each round runs every contender once, in an order that rotates, so that what else the machine does
falls on all of them; figures are medians over the rounds, ratios medians of the rounds' own ratios.
Writes benchmarks.md and benchmarks.json. Exit codes: 0 ran (goals met or not), 2 usage, 3 or 5 a
contender or the server failed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import contenders
import report
from upyperf.errors import UpyperfError

CASES = ["tcp-send", "tcp-receive", "udp-send", "udp-receive"]


def run(cases: list[str], pairs: int, seconds: float) -> list[report.Case]:
    """All rounds of all cases; progress goes to stderr."""
    everyone = contenders.everyone(seconds)
    measured = []
    for name in cases:
        case = report.Case(name, {contender.name: [] for contender in everyone})
        for number in range(pairs):
            turn = number % len(everyone)
            for contender in everyone[turn:] + everyone[:turn]:
                value = contender.measure(contenders.Job.of(name))
                case.values[contender.name].append(value)
                print(f"{name} {number + 1}/{pairs} {contender.name}: {case.text(value)}", file=sys.stderr)
        measured.append(case)
    return measured


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=7, help="rounds per case (7)")
    parser.add_argument("--time", type=float, default=3, help="seconds per run (3); uiperf3 knows only 10")
    parser.add_argument("--only", action="append", choices=CASES, help="this case alone, repeatable")
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[2] / "docs")
    options = parser.parse_args()
    if options.pairs < 1 or options.time < 1:
        parser.error("--pairs and --time must be 1 or more")
    started = time.time()
    try:
        cases = run(options.only or CASES, options.pairs, options.time)
        document = report.document(cases, options.pairs, options.time, started, contenders.versions())
    except UpyperfError as error:
        print(f"benchmark: {error}", file=sys.stderr)
        return error.exit_code
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "benchmarks.json").write_text(json.dumps(document, indent=1) + "\n")
    (options.out / "benchmarks.md").write_text(report.markdown(document, options.out / "benchmarks-note.md"))
    print(report.text(document))
    return 0


if __name__ == "__main__":
    sys.exit(main())
