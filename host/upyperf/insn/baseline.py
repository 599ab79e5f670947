"""The regression gate: rows against a file keyed by board, compiler and lwIP."""

from __future__ import annotations

import json
import re
from pathlib import Path

from upyperf.errors import UpyperfError
from upyperf.insn.measure import Cell

TOLERANCE = {"send": 0.02, "receive": 0.06}
FOLDER = Path(__file__).with_name("baselines")


def path_for(board: str, compiler: str, lwip: str, profile: str) -> Path:
    """The baseline file of a board for one compiler (its version line), lwIP version and profile."""
    version = re.search(r"(\d+\.\d+\.\d+)", compiler)
    return FOLDER / f"{board}-gcc-{version[1] if version else 'unknown'}-lwip-{lwip}-{profile}.json"


def load(path: Path) -> list[Cell]:
    """The rows of a baseline file. Raises UpyperfError `config`."""
    try:
        return [Cell(**row) for row in json.loads(path.read_text())]
    except (OSError, ValueError, TypeError) as error:
        raise UpyperfError("config", f"baseline {path}: {error}") from None


def save(path: Path, rows: list[Cell]) -> None:
    """Write rows as a baseline file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("[\n" + ",\n".join("  " + json.dumps(row.model_dump()) for row in rows) + "\n]\n")


def compare(rows: list[Cell], base: list[Cell]) -> list[str]:
    """One sentence for each row that is above its baseline by more than the tolerance."""
    known = {cell.key: cell for cell in base}
    worse = []
    for row in rows:
        old = known.get(row.key)
        limit = TOLERANCE[row.direction]
        if old and row.insn_per_byte > old.insn_per_byte * (1 + limit):
            more = row.insn_per_byte / old.insn_per_byte - 1
            worse.append(
                f"{row.layer} {row.transport} {row.direction} {row.size} B: {row.insn_per_byte:.3f} "
                f"instructions/B, {more:+.1%} over {old.insn_per_byte:.3f} (tolerance {limit:.0%})"
            )
    return worse
