"""The unix board at its serial port, byte by byte: friendly REPL, Ctrl keys, raw-paste, resets."""

from __future__ import annotations

import os
import select
import time
import tty
from collections.abc import Iterator
from pathlib import Path

import pytest
from upyperf import virtual

RAW = b"raw REPL; CTRL-B to exit\r\n>"


class Terminal:
    """A terminal program on the board's port."""

    def __init__(self, device: str) -> None:
        self.fd = os.open(device, os.O_RDWR | os.O_NOCTTY)
        tty.setraw(self.fd)
        self.seen = b""

    def send(self, data: bytes) -> None:
        os.write(self.fd, data)

    def expect(self, text: bytes, timeout: float = 10) -> bytes:
        """Everything up to and with `text`."""
        end = time.monotonic() + timeout
        while text not in self.seen:
            assert select.select([self.fd], [], [], max(0, end - time.monotonic()))[0], self.seen
            self.seen += os.read(self.fd, 4096)
        before, _, self.seen = self.seen.partition(text)
        return before + text

    def quiet(self, seconds: float = 0.2) -> bytes:
        """What comes until nothing comes for so long."""
        while select.select([self.fd], [], [], seconds)[0]:
            self.seen += os.read(self.fd, 4096)
        seen, self.seen = self.seen, b""
        return seen

    def raw(self) -> None:
        self.send(b"\r\x03\r\x01")
        self.expect(RAW)

    def run(self, code: bytes) -> bytes:
        """Run code in the raw REPL; what comes behind OK, up to the prompt."""
        self.send(code + b"\x04")
        self.expect(b"OK")
        return self.expect(b"\x04>")

    def close(self) -> None:
        os.close(self.fd)


@pytest.fixture
def board() -> Iterator[virtual.VirtualBoard]:
    with virtual.start("unix") as running:
        yield running


@pytest.fixture
def terminal(board: virtual.VirtualBoard) -> Iterator[Terminal]:
    made = Terminal(board.device)
    made.send(b"\x03")
    made.expect(b">>> ")
    made.quiet()
    yield made
    made.close()


def test_friendly_repl(terminal: Terminal) -> None:
    terminal.send(b"\x02")
    banner = terminal.expect(b">>> ")
    assert b"\r\nMicroPython " in banner
    assert banner.endswith(b'\r\nType "help()" for more information.\r\n>>> ')
    terminal.send(b"1+1\r")
    assert terminal.expect(b">>> ") == b"1+1\r\n2\r\n>>> "
    terminal.send(b"for i in range(2):\r  print(i)\r\r")
    assert terminal.expect(b">>> ").endswith(b"\r\n0\r\n1\r\n>>> ")
    terminal.send(b"x = [1,\r2]\rx\r")
    assert b"[1, 2]\r\n" in terminal.expect(b"[1, 2]\r\n>>> ")
    terminal.send(b"nope\r")
    assert b"NameError: name 'nope' isn't defined\r\n" in terminal.expect(b"defined\r\n>>> ")


@pytest.mark.parametrize(
    ("keys", "result"),
    [
        (b"12\x7f3+1", b"14"),
        (b"23\x1b[D\x1b[D1", b"123"),
        (b"23\x1b[H1\x1b[F4", b"1234"),
        (b"123\x01\x1b[3~", b"23"),
        (b"5\r\x1b[A+1", b"6"),
        (b"print('\xc3\xa4')", b"\xc3\xa4"),
    ],
)
def test_line_editing(terminal: Terminal, keys: bytes, result: bytes) -> None:
    terminal.send(keys + b"\r")
    terminal.expect(b"\r\n" + result + b"\r\n>>> ")


def test_paste_mode(terminal: Terminal) -> None:
    terminal.send(b"\x05")
    terminal.expect(b"paste mode; Ctrl-C to cancel, Ctrl-D to finish\r\n=== ")
    terminal.send(b"if 1:\r print('p', 3)\r\x04")
    terminal.expect(b"p 3\r\n>>> ")


@pytest.mark.parametrize(
    "code",
    [
        b"while True: pass",
        b"import time; time.sleep(100)",
        b"import socket; s = socket.socket(); s.bind(socket.getaddrinfo('127.0.0.1', 0)[0][-1])\n"
        b"s.listen(1); s.accept()",
        b"import select; select.poll().poll(100000)",
        b"import sys; sys.stdin.read(100)",
        b"while True: print('x')",
    ],
)
def test_ctrl_c_interrupts(terminal: Terminal, code: bytes) -> None:
    terminal.raw()
    for _ in range(3):
        terminal.send(code + b"\x04")
        terminal.expect(b"OK")
        time.sleep(0.2)
        terminal.send(b"\x03")
        end = terminal.expect(b"KeyboardInterrupt: \r\n\x04>")
        assert b"\x04Traceback (most recent call last):\r\n" in end
    assert terminal.run(b"print('alive')") == b"alive\r\n\x04\x04>"


def test_a_burst_of_ctrl_c_neither_ends_nor_confuses_the_board(terminal: Terminal) -> None:
    terminal.raw()
    terminal.run(b"x = 1")
    for gap in (0, 0.001, 0.03):
        terminal.send(b"while True: pass\x04")
        terminal.expect(b"OK")
        for _ in range(5):
            terminal.send(b"\x03")
            time.sleep(gap)
        terminal.expect(b"KeyboardInterrupt: \r\n\x04>")
    terminal.quiet()
    assert terminal.run(b"print(x)") == b"1\r\n\x04\x04>"


def test_a_program_that_catches_ctrl_c_gets_the_next_one(terminal: Terminal) -> None:
    terminal.raw()
    terminal.send(
        b"for i in range(2):\n try:\n  while 1: pass\n except KeyboardInterrupt: print('caught', i)\x04"
    )
    terminal.expect(b"OK")
    for i in range(2):
        time.sleep(0.2)
        terminal.send(b"\x03")
        terminal.expect(b"caught %d\r\n" % i)
    terminal.expect(b"\x04\x04>")


def test_kbd_intr_lets_ctrl_c_through_as_data(terminal: Terminal) -> None:
    terminal.raw()
    terminal.send(
        b"import micropython, sys\nmicropython.kbd_intr(-1)\nprint('go')\n"
        b"d = sys.stdin.buffer.read(3)\nmicropython.kbd_intr(3)\nprint(d)\x04"
    )
    terminal.expect(b"go\n")
    terminal.send(b"\x03\x04\x03")
    assert terminal.expect(b"\x04\x04>") == b"b'\\x03\\x04\\x03'\r\n\x04\x04>"


def test_kbd_intr_takes_another_character(terminal: Terminal) -> None:
    terminal.raw()
    terminal.send(b"import micropython\nmicropython.kbd_intr(7)\nprint('go')\nwhile True: pass\x04")
    terminal.expect(b"go\r\n")
    terminal.send(b"\x07")
    terminal.expect(b"KeyboardInterrupt: \r\n\x04>")


def test_raw_paste(terminal: Terminal) -> None:
    terminal.raw()
    terminal.send(b"\x05A\x01")
    header = terminal.expect(b"\x01", 5) + terminal.expect(b"\x01", 5)
    assert header.startswith(b"R\x01")
    window = int.from_bytes(header[2:4], "little")
    terminal.send(b"\x04")
    terminal.expect(b"\x04\x04\x04>")
    # Flow control: one 01 for each window, and no more is taken than was allowed.
    code = b"# 45678\n" * (window // 8) * 3 + b"print('pasted')\n"
    terminal.send(b"\x05A\x01")
    terminal.expect(header)
    left, sent = 2 * window, 0
    while sent < len(code):
        while not left:
            terminal.expect(b"\x01", 5)
            left += window
        piece = code[sent : sent + min(left, 700)]
        terminal.send(piece)
        sent += len(piece)
        left -= len(piece)
    terminal.send(b"\x04")
    assert terminal.expect(b"\x04>").lstrip(b"\x01") == b"\x04pasted\r\n\x04\x04>"


def test_raw_paste_ends_at_ctrl_c_and_refuses_unknown_commands(terminal: Terminal) -> None:
    terminal.raw()
    terminal.send(b"\x05A\x01")
    terminal.expect(b"\x01\x00\x08\x01")
    terminal.send(b"print(1)\n\x03")
    terminal.expect(b"\x04\x04KeyboardInterrupt: \r\n\x04>")
    terminal.send(b"\x05Z\x01")
    terminal.expect(b"R\x00>")
    assert terminal.run(b"print(2)") == b"2\r\n\x04\x04>"


def test_soft_reset(terminal: Terminal) -> None:
    terminal.send(b"x = 1\r")
    terminal.expect(b">>> ")
    terminal.send(b"\x04")
    terminal.expect(b"\r\nMPY: soft reboot\r\n")
    terminal.expect(b">>> ")
    terminal.send(b"x\r")
    terminal.expect(b"NameError")
    terminal.raw()
    terminal.send(b"\x04")
    assert terminal.expect(RAW) == b"OK\r\nMPY: soft reboot\r\n" + RAW


def test_boot_py_and_main_py(terminal: Terminal) -> None:
    terminal.raw()
    terminal.run(b"open('boot.py', 'w').write('print(1001)\\nb = 5\\n')")
    terminal.run(b"open('main.py', 'w').write('print(b + 2000)\\nwhile True: pass\\n')")
    terminal.send(b"\x04")
    assert terminal.expect(RAW) == b"OK\r\nMPY: soft reboot\r\n1001\r\n" + RAW
    terminal.send(b"\x02")
    terminal.expect(b">>> ")
    terminal.send(b"\x04")
    terminal.expect(b"1001\r\n2005\r\n")
    terminal.send(b"\x03")
    assert b'File "/main.py", line ' in terminal.expect(b"KeyboardInterrupt: \r\n")
    terminal.expect(b">>> ")


def test_the_pc_is_out_of_sight(terminal: Terminal, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("pc")
    terminal.raw()
    terminal.run(b"import os; os.mkdir('/d'); os.chdir('/d')")
    up = "/../.." * 12
    for name in (str(secret), up + str(secret), ".." + up + str(secret)):
        for call in (
            f"open({name!r})",
            f"os.stat({name!r})",
            f"os.remove({name!r})",
            f"os.listdir({name!r})",
        ):
            assert b"ENOENT" in terminal.run(call.encode()), call
    assert terminal.run(b"print(os.listdir('/../..'), os.getcwd())") == b"['d'] /d\r\n\x04\x04>"
    assert terminal.run(b"f=open('x','w'); f.write('1'); f.close(); print(os.listdir('/d'))").startswith(
        b"['x']"
    )
    assert secret.read_text() == "pc"


def test_files_survive_resets(terminal: Terminal) -> None:
    terminal.raw()
    terminal.run(b"f = open('keep.txt', 'w'); f.write('kept'); f.close()")
    terminal.send(b"\x04")
    terminal.expect(RAW)
    assert terminal.run(b"print(open('/keep.txt').read())") == b"kept\r\n\x04\x04>"
    terminal.send(b"import machine; machine.reset()\x04")
    terminal.expect(b">>> ")
    terminal.raw()
    assert terminal.run(b"print(open('/keep.txt').read())") == b"kept\r\n\x04\x04>"


def test_running_out_of_memory_is_survived(terminal: Terminal) -> None:
    terminal.raw()
    assert b"MemoryError" in terminal.run(b"x = bytearray(1 << 40)")
    assert b"MemoryError" in terminal.run(b"def f():\n x = []\n while 1: x.append(bytearray(1000))\nf()")
    assert terminal.run(b"print(3)") == b"3\r\n\x04\x04>"
    # With the heap kept full not even a small statement may run, but a soft reset does.
    assert b"MemoryError" in terminal.run(b"x = []\nwhile 1: x.append(bytearray(1000))")
    terminal.send(b"\x04")
    terminal.expect(RAW)
    assert terminal.run(b"print(4)") == b"4\r\n\x04\x04>"


def test_output_of_an_unattended_board_is_dropped(tmp_path: Path) -> None:
    """60000 lines are more than all buffers on the way hold: held up, the board would not get done."""
    with virtual.start("unix", None, {"flash": tmp_path}) as board:
        first = Terminal(board.device)
        first.raw()
        first.send(b"for n in range(60000): print('noise', n)\nopen('/done', 'w').close()\x04")
        first.expect(b"noise 1\r\n")
        first.close()
        end = time.monotonic() + 60
        while not (tmp_path / "done").exists():
            assert time.monotonic() < end
            time.sleep(0.05)
        second = Terminal(board.device)
        second.raw()
        assert second.run(b"print(n)") == b"59999\r\n\x04\x04>"
        second.close()
