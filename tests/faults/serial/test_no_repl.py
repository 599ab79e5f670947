"""S1, S2: boards that are late, deaf, talkative or no boards at all; nothing waits for ever."""

from __future__ import annotations

import time

import pytest
from faults.serial.fakeboard import FakeBoard
from upyperf import link
from upyperf.errors import UpyperfError

# What a loaded machine may add to a deadline, s.
GRACE = 5.0


def refused(board: FakeBoard, timeout: float = 1.5) -> str:
    """Text of the error that connecting ends with, in time."""
    start = time.monotonic()
    with board, pytest.raises(UpyperfError) as caught:
        link.connect(board.device, timeout=timeout)
    assert time.monotonic() - start < timeout + GRACE
    assert caught.value.kind == "board"
    assert "\n" not in caught.value.text
    assert board.device in caught.value.text
    return caught.value.text


@pytest.mark.parametrize(
    "faults",
    [
        {"boot_s": 3.0},
        {"deaf": 2},
        {"prefix": b"\x1b[0m\x1b[2J"},
        {"raw_paste": False},
        {"chatter_s": 0.3},
        {"chatter_s": 0.3, "deaf": 1},
    ],
    ids=lambda f: "+".join(f),
)
def test_enters_the_raw_repl_in_spite_of(faults: dict[str, object]) -> None:
    with FakeBoard(**faults) as board, link.connect(board.device, timeout=20) as connection:
        assert connection.eval("6*7") == 42
        assert connection.eval("'x'*3000") == "x" * 3000


def test_several_late_answers_do_not_confuse_what_follows() -> None:
    """Every Ctrl-A that was sent meanwhile is answered, late."""
    with FakeBoard(latency_s=1.4) as board, link.connect(board.device, timeout=20) as connection:
        board.latency_s = 0.1
        assert [connection.eval(f"{n}+1", timeout=20) for n in range(2)] == [1, 2]


def test_endless_main_py_is_named() -> None:
    text = refused(FakeBoard(deaf=None, chatter=b"main.py works\r\n", chatter_s=0.2))
    assert "main.py works" in text
    assert "Ctrl-C" in text


def test_silence_is_named() -> None:
    assert "nothing came back" in refused(FakeBoard(mute=True))


def test_echo_is_named() -> None:
    assert "only echoes" in refused(FakeBoard(echo=True))


def test_wrong_baud_rate_is_named() -> None:
    assert "baud" in refused(FakeBoard(noise=bytes(range(0x80, 0x100))))


def test_another_program_on_the_port_is_shown() -> None:
    assert "login:" in refused(FakeBoard(noise=b"\r\nrouter login: "))


def test_talkative_device_without_repl_ends_in_time() -> None:
    """mpremote 1.29 waits for ever here: each line restarts its timeout."""
    assert "LED ON" in refused(FakeBoard(mute=True, chatter_s=0.1), timeout=2)


def test_talkative_program_ends_at_the_overall_timeout() -> None:
    with FakeBoard(chatter_s=0.1) as board, link.connect(board.device, timeout=10) as connection:
        lines: list[str] = []
        start = time.monotonic()
        with pytest.raises(UpyperfError) as caught:
            connection.exec("sleep_for_ever", timeout=1, on_line=lines.append)
        assert time.monotonic() - start < 1 + GRACE
        assert caught.value.kind == "board"
        assert "did not finish within 1 s" in caught.value.text
        assert "Turning the LED ON!" in lines
        # The link is as good as before.
        assert connection.eval("1+1") == 2


def test_soft_reset_that_never_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    with FakeBoard() as board, link.connect(board.device, timeout=10) as connection:
        board.mute = True
        with pytest.raises(UpyperfError, match=r"boot\.py") as caught:
            connection.soft_reset(timeout=1)
        assert caught.value.kind == "board"


def test_a_board_that_dies_while_code_is_sent() -> None:
    with FakeBoard() as board, link.connect(board.device, timeout=2) as connection:
        board.mute = True
        start = time.monotonic()
        with pytest.raises(UpyperfError) as caught:
            connection.exec("x = 1\n" * 2000, timeout=1)
        assert caught.value.kind == "board"
        assert time.monotonic() - start < 3 + GRACE
