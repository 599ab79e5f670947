"""Stock mpremote against the unix board: every verb, many times in a row."""

from __future__ import annotations

import hashlib
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from upyperf import virtual


@pytest.fixture(scope="module")
def board() -> Iterator[virtual.VirtualBoard]:
    with virtual.start("unix") as running:
        yield running


class Mpremote:
    def __init__(self, device: str) -> None:
        self.device = device

    def run(self, *words: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [sys.executable, "-m", "mpremote", "connect", self.device, *words],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=30,
        )

    def __call__(self, *words: str) -> str:
        """Output of a verb that must succeed, with "\\n" as line end."""
        done = self.run(*words)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout.decode().replace("\r\n", "\n")

    def fails(self, *words: str) -> str:
        done = self.run(*words)
        assert done.returncode == 1, (words, done.stdout, done.stderr)
        return (done.stdout + done.stderr).decode().replace("\r\n", "\n")


@pytest.fixture(scope="module")
def mpremote(board: virtual.VirtualBoard) -> Mpremote:
    return Mpremote(board.device)


def test_exec(mpremote: Mpremote) -> None:
    assert mpremote("exec", "for i in range(3): print(i)") == "0\n1\n2\n"


def test_eval(mpremote: Mpremote) -> None:
    assert mpremote("eval", "6*7") == "42\n"


def test_exception_has_the_traceback_of_a_board(mpremote: Mpremote) -> None:
    assert mpremote.fails("exec", "def f():\n raise OSError(5)\nf()") == (
        "Traceback (most recent call last):\n"
        '  File "<stdin>", line 3, in <module>\n'
        '  File "<stdin>", line 2, in f\n'
        "OSError: [Errno 5] EIO\n"
    )


def test_syntax_error(mpremote: Mpremote) -> None:
    assert mpremote.fails("exec", "x = 1\n1+") == (
        'Traceback (most recent call last):\n  File "<stdin>", line 2\nSyntaxError: invalid syntax\n'
    )


def test_run(mpremote: Mpremote, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    lines = [f"x{i} = {i}" for i in range(2000)]
    script.write_text("\n".join([*lines, "print('sum', x1999 + x1)"]))
    assert mpremote("run", str(script)) == "sum 2000\n"


def test_files(mpremote: Mpremote, tmp_path: Path) -> None:
    data = os.urandom(10_000)
    (tmp_path / "in.bin").write_bytes(data)
    mpremote("mkdir", "data")
    mpremote("cp", str(tmp_path / "in.bin"), ":data/x.bin")
    assert hashlib.sha256(data).hexdigest() in mpremote("sha256sum", "data/x.bin")
    assert "Up to date" in mpremote("cp", str(tmp_path / "in.bin"), ":data/x.bin")
    mpremote("cp", ":data/x.bin", str(tmp_path / "out.bin"))
    assert (tmp_path / "out.bin").read_bytes() == data
    mpremote("touch", "data/empty")
    assert mpremote("ls", "data").splitlines()[1:] in (
        [f"{10000:12} x.bin", f"{0:12} empty"],
        [f"{0:12} empty", f"{10000:12} x.bin"],
    )
    assert "data/" in mpremote("ls")
    assert "x.bin" in mpremote("tree")
    assert "rmdir" in mpremote.fails("rmdir", "data")
    mpremote("rm", "data/x.bin", ":data/empty")
    mpremote("rmdir", "data")
    assert "No such file or directory" in mpremote.fails("cat", "data/x.bin")


def test_cat_and_recursive_copy(mpremote: Mpremote, tmp_path: Path) -> None:
    source = tmp_path / "pkg"
    (source / "sub").mkdir(parents=True)
    (source / "__init__.py").write_text("NAME = 'pkg'\n")
    (source / "sub" / "m.py").write_text("# 漢字\nvalue = 5\n")
    mpremote("cp", "-r", str(source), ":lib")
    assert mpremote("cat", "lib/sub/m.py") == "# 漢字\nvalue = 5\n"
    assert mpremote("exec", "from lib.sub import m; print(m.value)") == "5\n"
    mpremote("rm", "-r", ":lib")


def test_import_from_lib(mpremote: Mpremote, tmp_path: Path) -> None:
    (tmp_path / "mod.py").write_text("print('hi from', __name__)\n")
    mpremote("mkdir", "lib")
    mpremote("cp", str(tmp_path / "mod.py"), ":lib/")
    assert mpremote("exec", "import mod") == "hi from mod\n"
    assert mpremote("eval", "__import__('sys').path") == "['', '.frozen', '/lib']\n"
    mpremote("rm", "-r", "lib")


def test_mount_transfers_binary_data(mpremote: Mpremote, tmp_path: Path) -> None:
    """With 03 (Ctrl-C), 0A and 04 among it, in both directions."""
    data = bytes(range(256)) * 20 + b"\x03" * 300
    (tmp_path / "b.bin").write_bytes(data)
    (tmp_path / "mounted.py").write_text("value = 42\n" + "# filler\n" * 200)
    code = (
        "import mounted, os\n"
        "print(mounted.value, os.getcwd(), sorted(os.listdir()))\n"
        "d = open('b.bin', 'rb').read()\n"
        "with open('out.bin', 'wb') as f: f.write(d[::-1] if False else d)\n"
        "print(len(d))"
    )
    for _ in range(3):
        output = mpremote("mount", str(tmp_path), "exec", code)
        assert "42 /remote ['b.bin', 'mounted.py'" in output
        assert f"{len(data)}\n" in output
        assert (tmp_path / "out.bin").read_bytes() == data
    assert "RemoteFS" not in mpremote("exec", "import vfs; print(vfs.mount())")


def test_soft_reset_and_resume(mpremote: Mpremote) -> None:
    mpremote("exec", "x = 5")
    assert mpremote("resume", "exec", "print(x)") == "5\n"
    assert "NameError" in mpremote.fails("exec", "print(x)")
    assert mpremote("exec", "x = 6", "soft-reset", "eval", "'x' in globals()") == "False\n"


def test_reset(mpremote: Mpremote) -> None:
    mpremote("exec", "x = 5")
    mpremote("reset")
    time.sleep(0.5)
    assert mpremote("resume", "eval", "'x' in globals()") == "False\n"


def test_sys_exit_is_a_soft_reset(mpremote: Mpremote) -> None:
    mpremote("exec", "x = 1\nimport sys\nsys.exit()")
    assert mpremote("resume", "sleep", "0.3", "eval", "'x' in globals()") == "False\n"


def test_df_rtc_sleep_repl_help(mpremote: Mpremote) -> None:
    assert "mounted on" in mpremote("df")
    assert mpremote("rtc").startswith("(20")
    mpremote("rtc", "--set")
    mpremote("exec", "import machine\nmachine.RTC().datetime((2031, 5, 6, 1, 7, 8, 9, 0))")
    assert mpremote("rtc").startswith("(2031, 5, 6, 1, 7, 8,")
    mpremote("rtc", "--set")
    assert mpremote("sleep", "0.1", "eval", "1") == "1\n"
    assert "mip" in mpremote("exec", "help('modules')")


def test_output_and_exec_no_follow(mpremote: Mpremote) -> None:
    mpremote("exec", "--no-follow", "import time\ntime.sleep(60)")
    assert mpremote("eval", "1") == "1\n"


def test_many_times_in_a_row(mpremote: Mpremote) -> None:
    for i in range(10):
        assert mpremote("eval", f"{i}+1") == f"{i + 1}\n"


def test_repl(mpremote: Mpremote, tmp_path: Path) -> None:
    """mpremote's terminal with a mounted folder, through a soft reset at Ctrl-D."""
    (tmp_path / "here.py").write_text("value = 11\n")
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "mpremote", "connect", mpremote.device, "mount", str(tmp_path), "repl"],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    )
    os.close(slave)
    seen = b""

    def expect(text: bytes) -> None:
        nonlocal seen
        end = time.monotonic() + 20
        while text not in seen:
            assert select.select([master], [], [], max(0, end - time.monotonic()))[0], seen
            seen += os.read(master, 4096)
        seen = seen.partition(text)[2]

    try:
        expect(b"Use Ctrl-]")
        os.write(master, b"\r")
        expect(b">>> ")
        os.write(master, b"import here; here.value\r")
        expect(b"\r\n11\r\n>>> ")
        os.write(master, b"while True: pass\r\r")
        time.sleep(0.5)
        os.write(master, b"\x03")
        expect(b"KeyboardInterrupt: \r\n>>> ")
        os.write(master, b"\x04")
        expect(b"MPY: soft reboot\r\n")
        expect(b"Remount local directory")
        expect(b">>> ")
        os.write(master, b"import here; here.value + 1\r")
        expect(b"\r\n12\r\n>>> ")
        os.write(master, b"\x1d")
        assert process.wait(10) == 0
    finally:
        process.kill()
        process.wait()
        os.close(master)
