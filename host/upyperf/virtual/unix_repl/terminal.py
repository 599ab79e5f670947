# mypy: ignore-errors
"""The terminal between the board process and MicroPython; its settings also tell the pump our state.

While ISIG is set, the pump (../_unix_pump.py) turns the interrupt character into SIGINT; while it is
clear, every byte arrives as data. Output is cooked ("\\n" leaves as "\\r\\n", as print does on a board)
only together with ISIG, so that what a program writes after micropython.kbd_intr(-1) stays binary.
"""

import select
import sys
import termios

_VINTR = 0
_OFLAG = 1
_LFLAG = 3
_CC = 6
_VMIN = 6
_OPOST_ONLCR = 5
_ISIG = 1

stdin = sys.stdin.buffer
_stdout = sys.stdout.buffer

_poll = select.poll()
_poll.register(stdin, select.POLLIN)

# The board process starts us on a raw terminal: no echo, no line discipline, no signals.
_raw = termios.tcgetattr(0)
_running = termios.tcgetattr(0)
_running[_OFLAG] |= _OPOST_ONLCR
_running[_LFLAG] |= _ISIG

# readinto() reads until its buffer is full, or here until nothing more is there.
_ready_only = termios.tcgetattr(0)
_ready_only[_CC][_VMIN] = 0

_one = bytearray(1)
_ahead = b""  # read already, but meant for the REPL


def interruptible(char=3):
    """From here on `char` interrupts the program."""
    _running[_CC][_VINTR] = bytes((char,))
    termios.tcsetattr(0, termios.TCSANOW, _running)


def binary():
    """From here on every byte is data."""
    termios.tcsetattr(0, termios.TCSANOW, _raw)


def ready_only():
    """Until binary() or interruptible(): read_some() may be used, read_byte() not."""
    termios.tcsetattr(0, termios.TCSANOW, _ready_only)


def read_some(buf):
    """Wait for input and read what is there into `buf`; returns the number of bytes."""
    while True:
        flags = _poll.poll(-1)[0][1]
        n = stdin.readinto(buf)
        if n:
            return n
        if flags & ~select.POLLIN:
            raise EOFError


def write(data):
    """Write all of `data` as it is (the terminal is binary whenever the server runs)."""
    n = _stdout.write(data)
    while n < len(data):
        data = data[n:]
        n = _stdout.write(data)


def read_byte():
    """Wait for one byte and return it as an int. Raises EOFError when the board process is gone."""
    global _ahead
    if _ahead:
        c = _ahead[0]
        _ahead = _ahead[1:]
        return c
    if not stdin.readinto(_one):
        raise EOFError
    return _one[0]


def unread(data):
    """Give back what the REPL has read too far."""
    global _ahead
    _ahead = data
