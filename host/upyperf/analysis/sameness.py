"""Whether benches may be compared: in what they differ beside their results."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from upyperf.analysis import figures
from upyperf.records import Bench, RunResult

Mixture = Literal["board", "kind", "firmware", "settings"]
"""What two sides may differ in only when told: another board, virtual against real, other firmware
(MicroPython, iperf package, lwIP options), other settings of a test."""
MIXTURES: tuple[Mixture, ...] = ("board", "kind", "firmware", "settings")


@dataclass(frozen=True)
class Difference:
    """Something in which the sides differ beside the result; `kind` None is only worth a note."""

    kind: Mixture | None
    text: str


def _firmware(bench: Bench) -> dict[str, Any]:
    """What makes two benches runs of the same firmware, by name."""
    info = bench.info
    if info is None:
        return {}
    return {
        "MicroPython": info.micropython,
        "machine": info.machine,
        "iperf package": info.iperf,
        "firmware file": bench.config.get("firmware"),
        **{f"lwIP {name}": value for name, value in sorted((info.lwip or {}).items())},
    }


def _settings(run: RunResult) -> dict[str, Any]:
    """What makes two runs the same test, by name; options as planned, since the plan is the intention."""
    return {"layer": run.test.layer, "role": run.test.role, **run.test.options}


def _named(values: dict[str, set[str]]) -> str:
    return "; ".join(f"{name} {' / '.join(sorted(seen))}" for name, seen in values.items())


def _varying(tables: Iterable[dict[str, Any]], absent: str) -> dict[str, set[str]]:
    """The names whose values are not the same in all tables, with the values that were seen."""
    tables = list(tables)
    names = dict.fromkeys(name for table in tables for name in table)
    seen = {
        name: {absent if table.get(name) in (None, "") else str(table[name]) for table in tables}
        for name in names
    }
    return {name: values for name, values in seen.items() if len(values) > 1}


def differences(benches: Sequence[Bench]) -> list[Difference]:
    """In what the benches differ beside their results: refusals first, notes behind."""
    found: list[Difference] = []
    boards = sorted({b.board.name for b in benches})
    if len(boards) > 1:
        found.append(Difference("board", f"different boards: {', '.join(boards)}"))
    kinds = {
        "virtual time"
        if b.board.time == "virtual"
        else "virtual board"
        if b.board.kind == "virtual"
        else "hardware"
        for b in benches
    }
    if len(kinds) > 1:
        found.append(Difference("kind", f"virtual and real mixed: {', '.join(sorted(kinds))}"))
    firmware = _varying((_firmware(b) for b in benches), "not known")
    if firmware:
        found.append(Difference("firmware", f"different firmware: {_named(firmware)}"))
    tests: dict[str, list[dict[str, Any]]] = {}
    for bench in benches:
        for run in bench.runs:
            tests.setdefault(f"{run.test.name}|{figures.key_of(run.test)}", []).append(_settings(run))
    for test, tables in tests.items():
        settings = _varying(tables, "not set")
        if settings:
            found.append(
                Difference("settings", f"different settings of {test.rpartition('|')[0]}: {_named(settings)}")
            )
    peers = sorted({r.peer.program for b in benches for r in b.runs if r.peer})
    by_version: dict[str, set[str]] = {}
    for peer in peers:
        by_version.setdefault(peer.split(" ")[0], set()).add(peer)
    for programs in by_version.values():
        if len(programs) > 1:
            found.append(Difference(None, f"different peer programs: {', '.join(sorted(programs))}"))
    hosts = sorted({b.host.hostname for b in benches})
    if len(hosts) > 1:
        found.append(Difference(None, f"measured from different PCs: {', '.join(hosts)}"))
    return found
