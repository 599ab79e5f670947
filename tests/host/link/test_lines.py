"""S3: the order in which DTR and RTS move at opening, closing and resetting."""

from __future__ import annotations

import errno

import pytest
from upyperf.link import lines
from upyperf.link.lines import Lines


class FakeSerial:
    """Records what is done to it; `fails` names lines that a port does not have."""

    def __init__(self, fails: bool = False) -> None:
        object.__setattr__(self, "done", [])
        object.__setattr__(self, "fails", fails)

    def __setattr__(self, name: str, value: object) -> None:
        self.done.append((name, value))
        if self.fails:
            raise OSError(errno.ENOTTY, "no such lines")

    def open(self) -> None:
        self.done.append("open")

    def close(self) -> None:
        self.done.append("close")


def test_opening_leaves_the_lines_to_the_driver() -> None:
    port = FakeSerial()
    lines.open_port(port, Lines(), vid=0x0403)
    assert port.done == ["open"]


@pytest.mark.parametrize(
    ("levels", "before"),
    [
        (Lines(dtr=False), [("dtr", False)]),
        (Lines(rts=False), [("rts", False)]),
        (Lines(False, False), [("dtr", False), ("rts", False)]),
        (Lines(True, False), [("dtr", True), ("rts", False)]),
    ],
)
def test_levels_that_a_board_wants_are_set_before_the_port_opens(
    levels: Lines, before: list[tuple[str, bool]]
) -> None:
    port = FakeSerial()
    lines.open_port(port, levels)
    assert port.done == [*before, "open"]


def test_cp210x_on_windows_is_opened_with_both_off() -> None:
    port = FakeSerial()
    lines.open_port(port, Lines(), vid=lines.VID_SILICON_LABS, platform="nt")
    assert port.done == [("dtr", False), ("rts", False), "open", ("dtr", True), ("rts", True)]
    port = FakeSerial()
    lines.open_port(port, Lines(False, False), vid=lines.VID_SILICON_LABS, platform="nt")
    assert port.done == [("dtr", False), ("rts", False), "open", ("dtr", False), ("rts", False)]


def test_other_adapters_on_windows_are_not() -> None:
    port = FakeSerial()
    lines.open_port(port, Lines(), vid=0x0403, platform="nt")
    assert port.done == ["open"]


def test_closing_drops_rts_before_dtr() -> None:
    port = FakeSerial()
    lines.close_port(port)
    assert port.done == [("rts", False), ("dtr", False), "close"]


def test_a_port_without_lines_is_closed_all_the_same() -> None:
    port = FakeSerial(fails=True)
    lines.close_port(port)
    assert port.done[-1] == "close"


def test_reset_never_pulls_gpio0(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the ESP circuit DTR on with RTS off pulls GPIO0 low: the boot loader would start."""
    slept: list[float] = []
    monkeypatch.setattr(lines.time, "sleep", slept.append)
    for levels in (Lines(), Lines(False, False), Lines(None, False), Lines(False, None)):
        port = FakeSerial()
        lines.reset(port, levels)
        assert port.done[:3] == [("dtr", False), ("rts", True), ("rts", False)]
        state = {"dtr": True, "rts": True}
        for name, value in port.done:
            state[name] = value
            in_boot = state["dtr"] and not state["rts"]
            assert not in_boot or levels == Lines(None, False)
    assert slept == [lines.RESET_PULSE] * 4
