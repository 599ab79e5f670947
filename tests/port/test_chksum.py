"""The assembly checksum against a plain reference, on the board."""

REFERENCE = """
import os, lwipstats
from random import seed, getrandbits

def plain(data):
    s = 0
    for i in range(0, len(data) - 1, 2):
        s += data[i] | data[i + 1] << 8
    if len(data) & 1:
        s += data[-1]
    while s >> 16:
        s = (s & 0xffff) + (s >> 16)
    return s

def check(buf, offsets, lengths):
    wrong = []
    view = memoryview(buf)
    for o in offsets:
        for n in lengths:
            got = lwipstats.chksum(buf, o, n)
            want = plain(view[o:o + n])
            # 0 and 0xffff are the same number in one's complement
            if got != want and {got, want} != {0, 0xffff}:
                wrong.append((o, n, got, want))
    return wrong
seed(3)
buf = bytearray(getrandbits(8) for _ in range(1600))
"""


def test_every_alignment_and_length(board):
    board.exec(REFERENCE)
    lengths = "list(range(140)) + [191, 192, 193, 255, 256, 257, 1459, 1460, 1461]"
    assert board.eval(f"check(buf, range(0, 9), {lengths})", 120) == []


def test_carries(board):
    board.exec(REFERENCE)
    assert (
        board.eval("check(bytearray(b'\\xff' * 300), range(4), [0, 1, 2, 63, 64, 65, 128, 200, 256])", 60)
        == []
    )
    assert board.eval("check(bytearray(300), range(4), [0, 1, 64, 200])", 60) == []


def test_bounds_are_checked(board):
    assert "ValueError" in board.exec(
        "import lwipstats\ntry:\n lwipstats.chksum(b'abc', 2, 2)\nexcept ValueError as e:\n print(repr(e))"
    )
