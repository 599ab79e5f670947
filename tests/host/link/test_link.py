"""The link on a unix board: code, files, resets, interrupts, secrets, the serial log."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from faults.serial.fakeboard import FakeBoard
from upyperf import link, virtual
from upyperf.errors import UpyperfError
from upyperf.link.transcript import Transcript


@pytest.fixture(scope="module")
def board() -> Iterator[virtual.VirtualBoard]:
    with virtual.start("unix") as running:
        yield running


@pytest.fixture
def connection(board: virtual.VirtualBoard) -> Iterator[link.Link]:
    with link.connect(board.device) as made:
        made.soft_reset()
        yield made


def test_exec_gives_output_and_lines_live(connection: link.Link) -> None:
    arrived: list[tuple[str, float]] = []
    code = "import time\nfor i in range(3):\n print('n', i)\n time.sleep(0.4)\nprint('ä', end='')"
    output = connection.exec(code, on_line=lambda line: arrived.append((line, time.monotonic())))
    end = time.monotonic()
    assert output == "n 0\nn 1\nn 2\nä"
    assert [line for line, _ in arrived] == ["n 0", "n 1", "n 2", "ä"]
    assert end - arrived[0][1] > 0.7


def test_globals_persist_until_a_soft_reset(connection: link.Link) -> None:
    connection.exec("x = 7")
    assert connection.eval("x") == 7
    connection.soft_reset()
    with pytest.raises(link.BoardExecError, match="NameError"):
        connection.exec("x")


@pytest.mark.parametrize(
    "value", [0, -(2**70), 1.5, "漢\n'\"\\", b"\x00\xff", None, True, [1, (2, {"a": ()})]]
)
def test_eval(connection: link.Link, value: object) -> None:
    assert connection.eval(repr(value)) == value


def test_eval_of_what_is_no_literal(connection: link.Link) -> None:
    for expr in ("object()", "float('nan')", "print"):
        with pytest.raises(UpyperfError, match="not a literal") as caught:
            connection.eval(expr)
        assert caught.value.kind == "board"


def test_exceptions(connection: link.Link) -> None:
    with pytest.raises(link.BoardExecError) as caught:
        connection.exec("print('before')\nimport json\njson.loads('{')")
    assert caught.value.kind == "board"
    assert caught.value.output == "before\n"
    assert "ValueError" in caught.value.text
    assert caught.value.traceback.startswith("Traceback (most recent call last):\n")
    with pytest.raises(link.BoardExecError, match="SyntaxError"):
        connection.exec("a b")
    with pytest.raises(UpyperfError) as memory:
        connection.exec("bytearray(1 << 40)")
    assert memory.value.kind == "memory"
    assert memory.value.exit_code == 3


def test_a_program_that_exits_does_not_break_the_link(connection: link.Link) -> None:
    for _ in range(3):
        assert connection.exec("print('bye')\nraise SystemExit") == "bye\n"
        assert connection.eval("1+1") == 2


def test_timeout_then_usable(connection: link.Link) -> None:
    for code in ("while True: pass", "import time\ntime.sleep(100)", "input()"):
        with pytest.raises(UpyperfError, match="did not finish within 0.3 s") as caught:
            connection.exec(code, timeout=0.3)
        assert caught.value.kind == "board"
        assert connection.eval("1+1") == 2


def test_interrupt_from_another_thread(connection: link.Link) -> None:
    timer = threading.Timer(0.5, connection.interrupt)
    timer.start()
    with pytest.raises(link.BoardExecError, match="KeyboardInterrupt"):
        connection.exec("print('on')\nwhile True: pass", timeout=20)
    timer.join()
    assert connection.eval("1+1") == 2


def test_what_was_still_to_come_is_kept_after_ctrl_c(connection: link.Link) -> None:
    """Ctrl-C on the PC breaks exec() off; the board's last lines come from interrupt()."""
    code = "try:\n print('begin')\n while 1: pass\nexcept KeyboardInterrupt:\n print('the last record')"

    def stop(line: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        connection.exec(code, timeout=20, on_line=stop)
    assert "the last record\n" in connection.interrupt()
    assert connection.eval("1+1") == 2


def test_big_code(connection: link.Link) -> None:
    code = "\n".join(f"v{i} = {i}" for i in range(5000)) + "\nprint(v4999)"
    assert connection.exec(code, timeout=30) == "4999\n"


def test_put_makes_folders_and_takes_any_content(connection: link.Link) -> None:
    for size in (0, 1, 1023, 1024, 1025, 50_000):
        data = os.urandom(size)
        connection.put('/deep/er/it\'s "x".bin', data)
        assert connection.eval("open('/deep/er/it\\'s \"x\".bin','rb').read()") == data
    assert connection.eval("'_file' in globals()") is False


def test_put_tree_writes_only_what_is_missing(connection: link.Link) -> None:
    files = {f"lib/pkg{i % 3}/m{i}.py": b"x = %d\n" % i for i in range(70)}
    assert connection.put_tree(files) == list(files)
    assert connection.put_tree(files) == []
    connection.exec("import os\nos.remove('lib/pkg1/m1.py')\nopen('lib/pkg2/m2.py','a').write('#')")
    files["new.txt"] = b""
    assert sorted(connection.put_tree(files)) == ["lib/pkg1/m1.py", "lib/pkg2/m2.py", "new.txt"]
    assert connection.put_tree({}) == []


def test_put_that_cannot_be(connection: link.Link) -> None:
    connection.put("/plain", b"x")
    connection.exec("import os\nos.mkdir('/folder')")
    for path in ("/folder", "/plain/x"):
        with pytest.raises(UpyperfError) as caught:
            connection.put(path, b"x")
        assert caught.value.kind == "board"


def test_full_file_system(connection: link.Link) -> None:
    """A board whose file system takes less than it is given, then nothing."""
    connection.exec(
        "import builtins\nreal = open\n"
        "class Full:\n"
        " def __init__(self, path, mode): pass\n"
        " def write(self, data): raise OSError(28)\n"
        "builtins.open = lambda p, m='r': Full(p, m) if 'w' in m else real(p, m)"
    )
    with pytest.raises(UpyperfError, match="full") as caught:
        connection.put("/big", b"x" * 3000)
    assert caught.value.kind == "board"
    connection.exec("Full.write = lambda self, data: 5")
    with pytest.raises(UpyperfError, match="full"):
        connection.put("/big", b"x" * 3000)


def test_board_without_hashes(connection: link.Link) -> None:
    connection.exec("import sys\nclass M: pass\nsys.modules['hashlib'] = M()")
    assert connection.put_tree({"/h.txt": b"abc"}) == ["/h.txt"]
    assert connection.eval("open('/h.txt').read()") == "abc"


def test_resets(connection: link.Link) -> None:
    connection.put("/boot.py", b"print('booted')\n")
    assert "booted\n" in connection.soft_reset()
    connection.exec("x = 1")
    connection.hard_reset()
    assert connection.eval("'x' in globals()") is False
    connection.exec("import os\nos.remove('/boot.py')")


def test_identify(connection: link.Link) -> None:
    identity = connection.identify()
    assert identity.implementation == "micropython"
    assert identity.platform == "linux"
    assert identity.version >= (1, 22)
    assert identity.unique_id
    assert identity.mpy
    assert "MicroPython" in identity.sys_version


def test_mpremote_works_after_the_link(board: virtual.VirtualBoard) -> None:
    with link.connect(board.device) as connection, pytest.raises(UpyperfError):
        connection.exec("while True: pass", timeout=0.2)
    done = subprocess.run(
        [sys.executable, "-m", "mpremote", "connect", board.device, "resume", "eval", "5"],
        capture_output=True,
        timeout=30,
        stdin=subprocess.DEVNULL,
    )
    assert done.stdout == b"5\r\n"


SECRETS = ["p&ä\"'\n漢 ", "x" * 63, "0123456789abcdef" * 4, "tab\there\\n", "it's", 'say "hi"', "a$b`c"]


@pytest.mark.parametrize("secret", SECRETS)
def test_secrets_reach_neither_the_log_nor_a_message(
    board: virtual.VirtualBoard, tmp_path: Path, secret: str
) -> None:
    log = tmp_path / "serial.log"
    with link.connect(board.device, log=log) as connection:
        connection.secret(secret)
        connection.exec(
            f"key = {secret!r}\nprint(key)\nprint(repr(key))\nimport json\nprint(json.dumps(key))"
        )
        assert connection.eval("key") == secret
        with pytest.raises(UpyperfError) as caught:
            connection.exec("raise ValueError(key)")
        with pytest.raises(UpyperfError) as named:
            connection.exec("raise ValueError(repr(key))")
    recorded = log.read_text()
    assert "***" in recorded
    for part in secret.splitlines():
        for form in (part, repr(part)[1:-1], ascii(part)[1:-1], json.dumps(part)[1:-1]):
            assert form not in recorded
            assert form not in caught.value.text
            assert form not in named.value.text


def test_a_secret_is_masked_wherever_reads_cut_it(tmp_path: Path) -> None:
    transcript = Transcript(tmp_path / "log")
    transcript.secret("secret")
    transcript.secret("secrets are long")
    transcript.secret("")
    for byte in b"a secret, secrets are long\r\n":
        transcript.received(bytes((byte,)))
    transcript.received(b"no end secr")
    transcript.received(b"et")
    transcript.close()
    transcript.close()
    lines = [line.split(" < ")[1] for line in (tmp_path / "log").read_text().splitlines()]
    assert lines == ["a ***, ***", "no end ***"]


def test_the_log_tells_the_whole_story(board: virtual.VirtualBoard, tmp_path: Path) -> None:
    log = tmp_path / "deep" / "serial.log"
    with link.connect(board.device, log=log) as connection:
        connection.exec("print('out')")
        connection.put_tree({"/story.bin": b"data-that-is-not-logged"})
        with pytest.raises(UpyperfError):
            connection.exec("1/0")
    with link.connect(board.device, log=log):
        pass
    text = log.read_text()
    assert text.count("# opened ") == 2
    for line in ("> print('out')", "< out", "# put 1 of 1 files: /story.bin", "! ZeroDivisionError"):
        assert line in text
    assert "a2b_base64" not in text


def test_no_log_file_is_left_open_when_connecting_fails(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with pytest.raises(UpyperfError):
            link.connect(str(tmp_path / "nothing"), log=tmp_path / "log")
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_secret_that_a_deaf_board_prints_is_masked(tmp_path: Path) -> None:
    board = FakeBoard(chatter=b"key=hunter22\r\n", chatter_s=0.1)
    with board, link.connect(board.device, timeout=10) as connection:
        connection.secret("hunter22")
        board.mute = True
        with pytest.raises(UpyperfError) as caught:
            connection.interrupt(timeout=1)
        assert "hunter22" not in caught.value.text
        assert "***" in caught.value.text
