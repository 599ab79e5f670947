"""A bench on each board that UPYPERF_HARDWARE names, as "board" or "board=port", separated by spaces.

Nothing is looked for unasked: a board that happens to be connected may be somebody's work.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from harness.notrun import not_run

NAMED = os.environ.get("UPYPERF_HARDWARE", "").split()


@pytest.mark.parametrize("named", NAMED or ["none"])
@pytest.mark.timeout(900)
def test_quick_plan(named: str, tmp_path: Path) -> None:
    if named == "none":
        not_run("hardware: UPYPERF_HARDWARE names no board on this machine")
    board, _, port = named.partition("=")
    words = ["bench", board, "--plan", "quick", "--json", "--result-dir", str(tmp_path / "results")]
    done = subprocess.run(
        [Path(sys.executable).with_name("upyperf"), *words, *(["--port", port] if port else [])],
        capture_output=True, text=True, timeout=840, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["runs"]
    assert (tmp_path / "results/report.html").exists()
