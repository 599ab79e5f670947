"""S6, S8: long lines, a paused reader, every byte, torn characters; on a unix board."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

import pytest
from upyperf import link, virtual
from upyperf.link.output import Lines, Splitter


@pytest.fixture(scope="module")
def board() -> Iterator[virtual.VirtualBoard]:
    with virtual.start("unix") as running:
        yield running


@pytest.fixture
def connection(board: virtual.VirtualBoard) -> Iterator[link.Link]:
    with link.connect(board.device) as made:
        yield made


@pytest.mark.parametrize("length", [16383, 16384, 16385, 20001, 200_000])
def test_long_line_is_whole(connection: link.Link, length: int) -> None:
    lines: list[str] = []
    connection.exec(f"print('a' * {length})\nprint('end')", on_line=lines.append)
    assert [len(line) for line in lines] == [length, 3]


def test_nothing_is_lost_while_the_reader_pauses(connection: link.Link) -> None:
    lines: list[str] = []

    def slow(line: str) -> None:
        lines.append(line)
        if len(lines) == 10:
            time.sleep(5)

    connection.exec("for i in range(20000):\n print('line', i)", timeout=60, on_line=slow)
    assert lines == [f"line {i}" for i in range(20000)]


def test_every_byte_survives(connection: link.Link) -> None:
    text = connection.exec("import sys\nsys.stdout.buffer.write(bytes(range(256)))\nprint('|end')")
    expected = bytes(range(256)).replace(b"\n", b"\r\n") + b"|end\n"
    assert text == expected.replace(b"\r\n", b"\n").decode(errors="backslashreplace")
    assert connection.eval("1") == 1


@pytest.mark.parametrize(
    "half", [b"\xc3", b"\xe6\xbc", b"\xf0\x9f\x98", b"\xff", b"\x04", b"\x04\x04", b"\x01", b">"]
)
def test_half_characters_and_control_bytes_in_lines(connection: link.Link, half: bytes) -> None:
    lines: list[str] = []
    code = f"import sys\nfor i in range(3):\n sys.stdout.buffer.write({half!r})\n print('', i)"
    connection.exec(code, on_line=lines.append)
    shown = half.decode(errors="backslashreplace")
    assert lines == [f"{shown} {i}" for i in range(3)]
    assert connection.eval("2") == 2


def test_an_exception_after_such_output(connection: link.Link) -> None:
    with pytest.raises(link.BoardExecError, match="ValueError: no") as caught:
        connection.exec("import sys\nsys.stdout.buffer.write(b'a\\x04b\\x04')\nraise ValueError('no')")
    assert caught.value.output == "a\x04b\x04"
    assert connection.eval("3") == 3


def test_random_bytes_survive_any_cut() -> None:
    """The splitter finds the end of the output wherever reads cut what comes."""
    rng = random.Random(8)
    errors = [b"", b"Traceback (most recent call last):\r\nOSError: 5\r\n", b"MemoryError: \r\n"]
    for _ in range(300):
        # '>' is left out, so that no end is faked, and 04 is frequent.
        alphabet = [b for b in range(256) if b != ord(">")] + [4] * 40
        data = bytes(rng.choices(alphabet, k=rng.randrange(60)))
        error = rng.choice(errors)
        stream = data + b"\x04" + error + b"\x04>"
        splitter = Splitter()
        got = b""
        while stream:
            size = rng.randrange(1, 12)
            got += splitter.feed(stream[:size])
            stream = stream[size:]
        assert splitter.done
        assert got == data
        assert splitter.error == error
        assert splitter.rest == b">"


def test_output_that_looks_like_an_end() -> None:
    splitter = Splitter()
    assert splitter.feed(b"a\x04b\x04\x04>") == b"a\x04b"
    assert splitter.done
    assert splitter.doubtful
    got = splitter.not_yet() + splitter.feed(b"c\x04\x04>")
    assert (got, splitter.done) == (b"\x04\x04>c", True)


def test_characters_are_not_torn_by_reads() -> None:
    lines = Lines()
    got = []
    for byte in "漢字 ä\r\nx\n".encode():
        got += lines.feed(bytes((byte,)))
    assert got == ["漢字 ä", "x"]
    assert lines.flush() == []
