"""What is recorded survives: full disks, read-only folders, kill -9, damaged files; each is one line."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from upyperf import entry
from upyperf.bench import UNFINISHED
from upyperf.errors import UpyperfError
from upyperf.events import NoteEvent
from upyperf.store import Index, RunFolder

UPYPERF = [sys.executable, "-c", "import sys; from upyperf.entry import main; sys.exit(main())"]


def upyperf(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*UPYPERF, *words], cwd=folder, capture_output=True, text=True, timeout=90)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with results/, one bench in it."""
    folder = tmp_path_factory.mktemp("measured")
    done = upyperf(folder, "run", "unix", "-t", "0.5")
    assert done.returncode == 0, done.stderr
    return folder


def the_line(done: subprocess.CompletedProcess[str]) -> str:
    assert "Traceback" not in done.stderr + done.stdout
    assert "bug in upyperf" not in done.stderr
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("upyperf: error: ")]
    return line


class _Full:
    """A file on a full disk."""

    closed = False

    def write(self, _text: str) -> int:
        raise OSError(28, "No space left on device")

    def close(self) -> None:
        raise OSError(28, "No space left on device")


def test_a_full_disk_does_not_end_the_thread_that_records(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "r")
    folder._records.close()
    folder._records = _Full()  # type: ignore[assignment]
    folder.record(NoteEvent(source="host", text="x"))
    folder.close()
    assert folder.error == "No space left on device"


def test_results_that_cannot_be_written_are_printed_and_told(tmp_path: Path) -> None:
    # a bounded file system needs no rights in a user namespace of our own
    script = f"mount -t tmpfs -o size=96k none {tmp_path} && cd {tmp_path} && exec " + " ".join(
        f"'{word}'" for word in [*UPYPERF, "run", "unix", "-t", "1", "-i", "0.1", "--result-dir", "x"]
    )
    done = subprocess.run(["unshare", "-rm", "sh", "-c", script], capture_output=True, text=True, timeout=90)
    assert done.returncode == 2, done.stderr
    assert "No space left on device" in the_line(done)
    assert "iPerf 3 TCP send" in done.stdout


def test_a_read_only_folder_can_be_read(measured: Path) -> None:
    script = (
        f"mount --bind {measured} {measured} && mount -o remount,ro,bind {measured} && cd {measured} && exec "
        + (" ".join(f"'{word}'" for word in UPYPERF))
    )
    for words in ("report latest", "compare latest latest"):
        done = subprocess.run(
            ["unshare", "-rm", "sh", "-c", f"{script} {words}"], capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        assert "iPerf 3 TCP send" in done.stdout
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", f"{script} run unix -t 1"], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert "Read-only file system" in the_line(done)


def test_an_index_that_cannot_be_opened_is_done_without(measured: Path, tmp_path: Path) -> None:
    shutil.copytree(measured / "results", tmp_path / "results")
    (tmp_path / "results/index.sqlite3").unlink()
    (tmp_path / "results/index.sqlite3").mkdir()
    assert Index(tmp_path / "results").find("latest").is_dir()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "EOF"),
        (b"[]", "Input should be an object"),
        (b'{"schema_version": 1}', "id: Field required"),
        (b"\xff\xfe\x00", "Invalid JSON"),
        (None, "records.jsonl but no results.json"),
    ],
)
def test_a_damaged_result_is_named(measured: Path, tmp_path: Path, content: bytes | None, words: str) -> None:
    torn = tmp_path / "torn"
    shutil.copytree(next(p for p in (measured / "results").iterdir() if p.is_dir()), torn)
    if content is None:
        (torn / "results.json").unlink()
    else:
        (torn / "results.json").write_bytes(content)
    done = upyperf(tmp_path, "report", str(torn))
    assert done.returncode == 2
    assert words in the_line(done)


@pytest.mark.parametrize("name", ["", "latest~x", "latest~-1", "latest~99999999999999999999"])
def test_names_that_mean_no_result(measured: Path, name: str) -> None:
    with pytest.raises(UpyperfError) as caught:
        Index(measured / "results").find(name)
    assert caught.value.exit_code == 2


def test_hostile_folder_names(measured: Path, tmp_path: Path) -> None:
    name = "a b;$(touch x) 漢'\"\u202e"
    shutil.copytree(next(p for p in (measured / "results").iterdir() if p.is_dir()), tmp_path / name)
    done = upyperf(tmp_path, "report", name)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "x").exists()


def _until_it_measures(process: subprocess.Popen[str], records: Path) -> None:
    deadline = time.monotonic() + 60
    while not (records.is_file() and '"kind":"interval"' in records.read_text()):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_kill_9_leaves_the_records_and_no_process(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*UPYPERF, "run", "unix", "-t", "30", "--result-dir", "r"],
        cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    children: list[psutil.Process] = []
    try:
        _until_it_measures(process, tmp_path / "r/records.jsonl")
        children = psutil.Process(process.pid).children(recursive=True)
    finally:
        process.kill()
        process.wait(10)
    assert children
    _, alive = psutil.wait_procs(children, timeout=10)
    for child in alive:
        with contextlib.suppress(psutil.Error):
            child.kill()
    assert not alive
    bench = json.loads((tmp_path / "r/results.json").read_text())
    assert bench["error"]["text"] == UNFINISHED.text
    assert bench["exit_code"] == 130
    done = upyperf(tmp_path, "report", "r")
    assert done.returncode == 0
    assert "records.jsonl" in done.stdout


def test_ctrl_c_twice_is_still_one_line(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*UPYPERF, "run", "unix", "-t", "30", "--result-dir", "r"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    _until_it_measures(process, tmp_path / "r/records.jsonl")
    children = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGINT)
    time.sleep(0.15)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Traceback" not in out + err
    assert [line for line in err.splitlines() if line.startswith("upyperf: error: ")]
    _, alive = psutil.wait_procs(children, timeout=10)
    assert not alive
    assert json.loads((tmp_path / "r/results.json").read_text())["exit_code"] == 130


@pytest.fixture
def no_cli(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Ctrl-C while the modules load."""

    class Interrupted:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "upyperf.cli":
                raise KeyboardInterrupt

    kept = {name: sys.modules.pop(name) for name in list(sys.modules) if name.startswith("upyperf.cli")}
    monkeypatch.setattr(sys, "meta_path", [Interrupted(), *sys.meta_path])
    yield
    sys.modules.update(kept)


def test_ctrl_c_while_it_loads(no_cli: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.main() == 130
    assert capsys.readouterr().err == "upyperf: error: interrupted\n"


def test_ctrl_c_before_anything_ran_says_so(tmp_path: Path) -> None:
    code = (
        "import sys; from upyperf import cli, doctor\n"
        "def stop(): raise KeyboardInterrupt\n"
        "doctor.findings = stop\n"
        "sys.exit(cli.main(['doctor']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 130
    assert done.stderr == "upyperf: error: interrupted\n"


def test_stdout_that_is_full_or_closed(measured: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*UPYPERF, "boards", "--json"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60
        )
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert "No space left" in done.stderr
    closed = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *UPYPERF, "report", "latest"],
        cwd=measured, capture_output=True, text=True, timeout=60, env={**os.environ, "TERM": "dumb"},
    )  # fmt: skip
    assert "Traceback" not in closed.stderr
