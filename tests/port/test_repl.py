"""REPL, resets, file system; stock mpremote's verbs."""

import http.server
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from harness.qemu_board import Board


@pytest.fixture(scope="module")
def bare(elf, isolated):
    running = Board(elf)
    running.link.close()
    yield running
    running.close()


@pytest.fixture
def mpremote(bare, tmp_path):
    program = shutil.which("mpremote", path=str(Path(sys.executable).parent)) or "mpremote"

    def run(*words, fails=False):
        done = subprocess.run(
            [program, "connect", bare.machine.device, *words],
            capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert (done.returncode != 0) == fails, done.stdout + done.stderr
        return done.stdout

    return run


def test_exec_eval_run(mpremote, tmp_path):
    assert mpremote("exec", "print(6 * 7)") == "42\n"
    assert mpremote("eval", "'a' + 'b'") == "ab\n"
    (tmp_path / "s.py").write_text("print('ran')\n")
    assert mpremote("run", "s.py") == "ran\n"


def test_identity(mpremote):
    assert mpremote("eval", "__import__('sys').platform").strip() == "qemu-an386"
    assert mpremote("exec", "import sys; print(sys.implementation._machine)").startswith(
        "qemu-an386 with Cortex-M4F"
    )


def test_files(mpremote, tmp_path):
    data = bytes(range(256)) * 20
    (tmp_path / "f.bin").write_bytes(data)
    mpremote("mkdir", "d")
    mpremote("cp", "f.bin", ":d/f.bin")
    assert "f.bin" in mpremote("ls", ":d")
    mpremote("cp", ":d/f.bin", "back.bin")
    assert (tmp_path / "back.bin").read_bytes() == data
    mpremote("rm", ":d/f.bin", "+", "rmdir", ":d")
    mpremote("rm", ":d/f.bin", fails=True)


def test_files_survive_soft_and_hard_reset(mpremote):
    mpremote("exec", "open('keep', 'w').write('kept')")
    mpremote("soft-reset")
    assert mpremote("exec", "print(open('keep').read())") == "kept\n"
    mpremote("reset")
    time.sleep(0.5)
    assert mpremote("exec", "print(open('keep').read()); import os; os.remove('keep')") == "kept\n"


def test_resume_keeps_state_and_soft_reset_clears_it(mpremote):
    mpremote("exec", "here = 5")
    assert mpremote("resume", "exec", "print(here)") == "5\n"
    assert "here" not in mpremote("exec", "print(dir())")


def test_interrupt_while_computing(mpremote, bare):
    mpremote("exec", "--no-follow", "while True: pass")
    time.sleep(0.3)
    assert mpremote("exec", "print('alive')") == "alive\n"


def test_interrupt_while_printing(mpremote):
    mpremote("exec", "--no-follow", "while True: print('x' * 60)")
    time.sleep(0.3)
    assert mpremote("exec", "print('alive')").endswith("alive\n")


def test_mount(mpremote, tmp_path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "mounted.py").write_text("print('from the PC')\n")
    assert "from the PC" in mpremote("mount", "lib", "exec", "import mounted")


def test_rtc_and_sleep(mpremote):
    mpremote("rtc", "--set", "+", "sleep", "0.1")
    assert mpremote("rtc").startswith(f"({time.localtime().tm_year}, ")


def test_mip_from_an_index(mpremote, tmp_path):
    (tmp_path / "tiny.py").write_text("VALUE = 11\n")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=str(tmp_path))

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        mpremote("mip", "install", f"http://127.0.0.1:{server.server_port}/tiny.py")
        server.shutdown()
    assert mpremote("exec", "import tiny; print(tiny.VALUE)") == "11\n"


def test_romfs(mpremote, tmp_path):
    (tmp_path / "rom").mkdir()
    (tmp_path / "rom" / "inrom.py").write_text("print('rom')\n")
    assert "deployed" in mpremote("romfs", "deploy", "rom")
    assert mpremote("exec", "import inrom") == "rom\n"


def test_time(mpremote):
    out = mpremote(
        "exec",
        "import time\nt = time.ticks_us(); time.sleep_ms(50); print(time.ticks_diff(time.ticks_us(), t))",
    )
    assert 50_000 <= int(out) < 1_000_000  # a busy PC may be late, never early


def test_select_on_stdin_and_asyncio(mpremote):
    code = (
        "import asyncio, select, sys\n"
        "p = select.poll(); p.register(sys.stdin, select.POLLIN)\n"
        "print(p.poll(10))\n"
        "async def one(i):\n await asyncio.sleep_ms(5)\n return i\n"
        "async def main():\n return sum(await asyncio.gather(one(1), one(2)))\n"
        "print(asyncio.run(main()))"
    )
    assert mpremote("exec", code) == "[]\n3\n"


def test_hard_fault_is_reported_and_the_board_comes_back(mpremote):
    mpremote("exec", "--no-follow", "import machine; machine.mem32[0xf0000000]")
    time.sleep(0.8)
    assert mpremote("exec", "print('back')").endswith("back\n")
