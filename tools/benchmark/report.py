"""Medians, ratios, goals; the document for machines and the texts for people."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

C, NATIVE, BYTECODE, UIPERF3 = "C iperf3", "upyperf, native", "upyperf, bytecode", "uiperf3"

# case, contender, compared with, at least; from the issue that asked for the benchmark
GOALS = [
    ("tcp-send", NATIVE, C, 0.8),
    ("tcp-send", NATIVE, UIPERF3, 5.0),
    ("tcp-receive", NATIVE, C, 0.8),
    ("tcp-receive", NATIVE, UIPERF3, 5.0),
    ("udp-send", NATIVE, C, 0.75),
    ("udp-send", BYTECODE, C, 0.6),
    ("udp-send", NATIVE, UIPERF3, 1.5),
    ("udp-receive", NATIVE, C, 0.75),
    ("udp-receive", BYTECODE, C, 0.6),
    ("udp-receive", NATIVE, UIPERF3, 1.5),
]


@dataclass
class Case:
    """One protocol and direction: every contender's values, one per round."""

    name: str
    values: dict[str, list[float]]

    @property
    def unit(self) -> str:
        return "datagrams/s" if self.name.startswith("udp") else "bit/s"

    def text(self, value: float) -> str:
        """A value for people."""
        return f"{value:,.0f} datagrams/s" if self.unit == "datagrams/s" else f"{value / 1e6:,.0f} Mbit/s"

    def ratio(self, one: str, other: str) -> float:
        """Median of the rounds' ratios."""
        return median(a / b for a, b in zip(self.values[one], self.values[other], strict=True))


def document(
    cases: list[Case], pairs: int, seconds: float, started: float, versions: dict[str, str]
) -> dict[str, Any]:
    """Everything that was measured, for machines (benchmarks.json)."""
    by_name = {case.name: case for case in cases}
    return {
        "schema_version": 1,
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
        "command": "make benchmark",
        "pairs": pairs,
        "seconds_per_run": {"others": seconds, "uiperf3": 10},
        "versions": versions,
        "cases": [
            {
                "case": case.name,
                "unit": case.unit,
                "contenders": {
                    name: {"median": median(values), "values": values} for name, values in case.values.items()
                },
            }
            for case in cases
        ],
        "goals": [
            {
                "case": name, "contender": one, "over": other, "at_least": least,
                "ratio": by_name[name].ratio(one, other), "met": by_name[name].ratio(one, other) >= least,
            }
            for name, one, other, least in GOALS
            if name in by_name
        ],
    }  # fmt: skip


def _rows(document: dict[str, Any]) -> list[list[str]]:
    rows = []
    for entry in document["cases"]:
        case = Case(entry["case"], {name: found["values"] for name, found in entry["contenders"].items()})
        for name, values in case.values.items():
            spread = f"{case.text(min(values))} to {case.text(max(values))}"
            ratios = [f"{case.ratio(name, other):.2f}" for other in (C, UIPERF3)]
            rows.append([case.name.replace("-", " "), name, case.text(median(values)), spread, *ratios])
    return rows


def _goals(document: dict[str, Any]) -> list[list[str]]:
    return [
        [
            goal["case"].replace("-", " "),
            f"{goal['contender']} / {goal['over']}",
            f"{goal['at_least']:.2f}",
            f"{goal['ratio']:.2f}",
            "met" if goal["met"] else "missed",
        ]
        for goal in document["goals"]
    ]


HEAD = ["case", "program", "median", "lowest to highest", "x C iperf3", "x uiperf3"]
GOAL_HEAD = ["case", "ratio of", "goal", "measured", ""]


def text(document: dict[str, Any]) -> str:
    """The tables for a terminal."""
    out = []
    for head, rows in ((HEAD, _rows(document)), (GOAL_HEAD, _goals(document))):
        widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
        out += ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
                for row in [head, *rows]]  # fmt: skip
        out.append("")
    return "\n".join(out)


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def markdown(document: dict[str, Any], note: Path) -> str:
    """benchmarks.md; ``note`` is a file with what a person found out about missed goals, if it exists."""
    versions = "\n".join(f"- {name}: {value}" for name, value in document["versions"].items())
    remarks = f"\n{note.read_text().strip()}\n" if note.exists() else ""
    return f"""# Benchmarks

Measured on {document["date"][:10]} by `{document["command"]}` ({document["pairs"]} alternated rounds,
{document["seconds_per_run"]["others"]:g} s a run, uiperf3 10 s since it knows no other; medians, ratios are
medians of the rounds' ratios). Loopback of one machine, every contender against a server of the same C
iperf3, on MicroPython's unix port: this is the speed of the code, not of a board or a network. Not run on
hardware. `benchmarks.json` holds every value.

"send" and "receive" are the contender's direction. TCP at each program's own default length (iperf3 and
upyperf 128 KiB, uiperf3 3000 bytes). UDP without a rate limit, {1458} bytes a datagram: sent datagrams by
the sequence numbers that the server saw, received ones as the receiver counted its bytes. uiperf3 has the
one-line shim that it needs on this port and a rate that it cannot reach. "native": hot loops through the
native emitter, as the unix board is given them; "bytecode": all of it bytecode.

{_table(HEAD, _rows(document))}

## Goals

{_table(GOAL_HEAD, _goals(document))}
{remarks}
## What ran

{versions}
"""
