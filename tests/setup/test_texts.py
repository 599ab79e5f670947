"""What the texts say of the project is so."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

from upyperf.boards.model import Board
from upyperf.errors import EXIT_CODES

ROOT = Path(__file__).resolve().parents[2]
TEXTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")]


def test_links_lead_to_files() -> None:
    for text in TEXTS:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text.read_text()):
            if "://" not in target:
                assert (text.parent / target).exists(), f"{text.name}: {target}"


def test_host_and_device_have_one_version() -> None:
    host = tomllib.loads((ROOT / "host/pyproject.toml").read_text())["project"]["version"]
    device = re.search(r'__version__ = "(.*)"', (ROOT / "firmware/iperf/__init__.py").read_text())
    assert device
    assert device[1] == host


def test_make_targets_in_the_texts_exist() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M))
    for text in TEXTS:
        for target in re.findall(r"`make ([a-z]+)", text.read_text()):
            assert target in targets, f"{text.name}: make {target}"


def test_paths_in_the_texts_exist() -> None:
    for text in (ROOT / "README.md", ROOT / "CONTRIBUTING.md"):
        for path in re.findall(
            r"`((?:host|firmware|tests|tools|docs|boards|requirements)/[\w./-]+)`", text.read_text()
        ):
            assert (ROOT / path).exists(), f"{text.name}: {path}"


def test_the_board_of_the_readme_is_valid() -> None:
    block = re.search(r"```toml\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    assert block
    board = Board.model_validate(tomllib.loads(block[1]))
    assert board.nic.create


def test_the_readme_tells_every_verb_and_exit_code() -> None:
    text = (ROOT / "README.md").read_text()
    program = Path(sys.executable).with_name("upyperf")
    shown = subprocess.run([program, "--help"], capture_output=True, text=True, timeout=60, check=True).stdout
    verbs = re.findall(r"^│ (\w+)  ", shown[shown.index("Commands") :], re.M)
    assert "bench" in verbs
    for verb in verbs:
        assert f"`{verb}`" in text
    for code in sorted({0, 130, *EXIT_CODES.values()}):
        assert f"| {code} |" in text
