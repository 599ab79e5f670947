"""S4: a slow line with a late board. S10: the wrong board."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from faults.serial.fakeboard import FakeBoard
from upyperf import link
from upyperf.errors import UpyperfError


def test_slow_line_and_late_answers(tmp_path: Path) -> None:
    """115200 baud as 11.5 kB/s and answers 2 s late: slow, but everything works."""
    with FakeBoard(rate=11520, latency_s=2.0) as board, link.connect(board.device) as connection:
        assert connection.eval("'y' * 2000", timeout=10) == "y" * 2000
        assert connection.soft_reset().endswith("MPY: soft reboot\n")
        board.latency_s = 0.5
        data = os.urandom(900)
        files = {str(tmp_path / "a" / "b.bin"): data}
        assert connection.put_tree(files) == list(files)
    assert (tmp_path / "a" / "b.bin").read_bytes() == data


def test_the_right_one_of_two_boards_is_told_by_what_it_says() -> None:
    machines = ["Fake board with FAKE1", "NodeMCU with ESP8266"]
    with FakeBoard(machine=machines[0]) as one, FakeBoard(machine=machines[1], platform="esp8266") as two:
        for board, machine in zip((one, two), machines, strict=True):
            with link.connect(board.device) as connection:
                identity = connection.identify()
                assert identity.machine == machine
                identity.require("mine", board.device, platform=board.platform, machine=re.escape(machine))
                identity.require("mine", board.device, platform=None, machine=None)
                with pytest.raises(UpyperfError) as caught:
                    identity.require("other", board.device, platform=None, machine="STM32")
                assert caught.value.kind == "board"
                assert machine in caught.value.text
                assert "other" in caught.value.text
                with pytest.raises(UpyperfError, match="wrong board"):
                    identity.require("other", board.device, platform="rp2", machine=None)


def test_a_repl_that_is_no_micropython() -> None:
    with FakeBoard() as board, link.connect(board.device) as connection:
        board.machine = "\x00"
        board.globals["repr"] = lambda _: "hello"
        with pytest.raises(UpyperfError, match="does not say what it is"):
            connection.identify()
