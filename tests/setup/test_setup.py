"""Set-up and the make targets, as a person meets them. What needs a network is in CONTRIBUTING.md."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOBODY = 65534


def call(*words: str | Path, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    # Variables of the `make test` around this must not reach a make in here.
    around = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    return subprocess.run(
        words, cwd=cwd, env={**around, **environment}, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A copy of what set-up consists of, without a .venv."""
    folder = tmp_path / "a clone's folder"
    folder.mkdir()
    for name in ("tools", "requirements"):
        shutil.copytree(ROOT / name, folder / name)
    (folder / "host").mkdir()
    shutil.copy(ROOT / "host/pyproject.toml", folder / "host")
    shutil.copy(ROOT / "Makefile", folder)
    return folder


@pytest.fixture
def bare_path(tmp_path: Path) -> Path:
    """A PATH with everything of the system but iperf, iperf3, sudo and apt-get."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for source in ("/usr/bin", "/bin", "/usr/sbin", "/sbin"):
        for program in Path(source).iterdir():
            if program.name not in ("iperf", "iperf3", "sudo", "apt-get"):
                link = folder / program.name
                if not link.is_symlink():
                    link.symlink_to(program)
    return folder


def test_nothing_to_do_is_silent_and_needs_no_network() -> None:
    assert call("tools/setup.sh", "bench").returncode == 0
    done = call("tools/setup.sh", "bench", http_proxy="http://127.0.0.1:9", https_proxy="http://127.0.0.1:9")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_missing_packages_are_one_line_to_run(clone: Path, bare_path: Path) -> None:
    python = ROOT / ".venv/bin/python"
    done = call("tools/setup.sh", "test", cwd=clone, PATH=str(bare_path), PYTHON=str(python))
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert len(lines) == 1
    assert "sudo apt-get install -y iperf iperf3" in lines[0]
    assert not (clone / ".venv").exists()


def test_a_python_that_is_too_old_is_named(clone: Path) -> None:
    old = clone / "python-old"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    done = call("tools/setup.sh", "bench", cwd=clone, PYTHON=str(old))
    assert done.returncode == 1
    assert done.stderr == f"set-up: PYTHON={old} is not a Python from 3.11 on\n"


def test_pip_that_fails_leaves_no_stamp_and_says_so(clone: Path) -> None:
    (clone / "requirements/pins.txt").write_text("setuptools==0.0.0\n")
    done = call("tools/setup.sh", "bench", cwd=clone, PIP_NO_INDEX="1", PIP_RETRIES="0")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("set-up: pip could not install the pinned packages")
    assert not list((clone / ".venv").glob(".upyperf-setup-*"))


def test_a_goal_that_is_none(clone: Path) -> None:
    done = call("tools/setup.sh", "world", cwd=clone)
    assert done.returncode == 2
    assert "unknown goal 'world'" in done.stderr


def test_every_pin_is_exact_and_covers_what_is_asked_for() -> None:
    pins = [line for line in (ROOT / "requirements/pins.txt").read_text().splitlines() if line[0] != "#"]
    names = {line.partition("==")[0].lower().replace("_", "-") for line in pins}
    assert all("==" in line for line in pins)
    for file in ("bench", "test", "benchmark"):
        for line in (ROOT / f"requirements/{file}.txt").read_text().splitlines():
            name = line.partition(";")[0].strip()
            if name and not name.startswith("#"):
                assert name.lower().replace("_", "-") in names


def test_help_lists_every_target() -> None:
    text = call("make", "help").stdout
    targets = {
        line.split(":")[0] for line in (ROOT / "Makefile").read_text().splitlines() if ":.*" not in line
    }
    for target in ("setup", "bench", "test", "lint", "benchmark", "clean"):
        assert target in targets
        assert f"make {target} " in text


@pytest.fixture
def with_recorder(clone: Path) -> Path:
    """The clone, whose upyperf only writes down its words and whose set-up does nothing."""
    (clone / ".venv/bin").mkdir(parents=True)
    (clone / "tools/setup.sh").write_text("#!/bin/sh\n")
    recorder = clone / ".venv/bin/upyperf"
    recorder.write_text('#!/bin/sh\nfor word; do echo "<$word>"; done\nexit ${CODE:-0}\n')
    recorder.chmod(0o755)
    return clone


def test_bench_passes_its_variables_on(with_recorder: Path) -> None:
    done = call("make", "bench", cwd=with_recorder)
    assert done.stdout.split() == ["<bench>", "<unix>"]
    done = call(
        "make", "bench", "BOARD=a b'c;$x", "PLAN=quick", "TIME=3", "PORT=/dev/tty 1", "SERVER=h", "ARGS=-P 2",
        cwd=with_recorder,
    )  # fmt: skip
    words = [
        "bench",
        "a b'c;",
        "--plan",
        "quick",
        "--time",
        "3",
        "--port",
        "/dev/tty 1",
        "--server",
        "h",
        "-P",
        "2",
    ]
    assert [line[1:-1] for line in done.stdout.splitlines()] == words


def test_bench_takes_no_variable_of_the_environment(with_recorder: Path) -> None:
    done = call(
        "make", "bench", cwd=with_recorder, PORT="8080", TIME="%e s", SERVER="web", ARGS="-x", BOARD="b"
    )
    assert done.stdout.split() == ["<bench>", "<unix>"]


def test_make_fails_where_upyperf_fails(with_recorder: Path) -> None:
    done = call("make", "bench", cwd=with_recorder, CODE="3")
    assert done.returncode != 0


def test_debsrc_names_a_suite_without_the_version(tmp_path: Path) -> None:
    sha = "0" * 64
    done = call("tools/debsrc.py", "fetch", "trixie", "lwip", "0.0-1", sha, tmp_path / "lwip")
    assert done.returncode == 1
    assert "trixie has no lwip 0.0-1 (it has: " in done.stderr
    assert not (tmp_path / "lwip").exists()


def test_debsrc_refuses_another_hash_and_keeps_what_is_right(tmp_path: Path) -> None:
    dest = tmp_path / "lwip"
    listed = call("tools/debsrc.py", "versions", "lwip", "trixie").stdout
    version = listed.split(": ")[1].split(",")[0].strip()
    done = call("tools/debsrc.py", "fetch", "trixie", "lwip", version, "0" * 64, dest)
    assert done.returncode == 1
    assert "expected 0000" in done.stderr
    assert not dest.exists()
    sha = done.stderr.split("has SHA-256 ")[1].split(",")[0]
    done = call("tools/debsrc.py", "fetch", "trixie", "lwip", version, sha, dest)
    assert (done.returncode, done.stdout) == (0, f"lwip {version}: fetched\n")
    assert (dest / "src/include/lwip/tcp.h").exists()
    done = call(
        "tools/debsrc.py", "fetch", "trixie", "lwip", version, sha, dest,
        http_proxy="http://127.0.0.1:9", PATH=f"{Path(shutil.which('env') or '').parent}",
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, f"lwip {version}: already there\n")
