"""H1: the serial link goes away, at any moment; the other boards go on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from faults.serial.fakeboard import FakeBoard
from upyperf import link, virtual
from upyperf.errors import UpyperfError


def lost(action: Callable[[], object]) -> None:
    start = time.monotonic()
    with pytest.raises(UpyperfError) as caught:
        action()
    assert caught.value.kind == "serial-lost"
    assert caught.value.exit_code == 3
    assert "\n" not in caught.value.text
    assert "went away" in caught.value.text
    assert time.monotonic() - start < 10


def test_board_vanishes_while_code_runs(tmp_path: Path) -> None:
    log = tmp_path / "serial.log"
    with (
        virtual.start("unix") as board,
        virtual.start("unix") as other,
        link.connect(board.device, log=log) as connection,
        link.connect(other.device) as second,
    ):
        lines: list[str] = []
        killer = threading.Timer(0.7, board.close)
        killer.start()
        code = "import time\nfor i in range(100):\n print(i)\n time.sleep(0.1)"
        lost(lambda: connection.exec(code, timeout=30, on_line=lines.append))
        killer.join()
        assert lines[:3] == ["0", "1", "2"]
        lost(lambda: connection.eval("1"))
        lost(connection.interrupt)
        lost(connection.soft_reset)
        assert second.eval("1+1") == 2
    recorded = log.read_text()
    assert "< 2" in recorded


@pytest.mark.parametrize("action", ["exec", "eval", "put", "put_tree", "soft_reset", "identify", "interrupt"])
def test_board_vanishes_before(action: str) -> None:
    calls: dict[str, Callable[[link.Link], object]] = {
        "exec": lambda c: c.exec("pass"),
        "eval": lambda c: c.eval("1"),
        "put": lambda c: c.put("x", b"x"),
        "put_tree": lambda c: c.put_tree({"x": b"x"}),
        "soft_reset": lambda c: c.soft_reset(),
        "identify": lambda c: c.identify(),
        "interrupt": lambda c: c.interrupt(),
    }
    with FakeBoard() as board:
        connection = link.connect(board.device)
        board.unplug()
        lost(lambda: calls[action](connection))
        connection.close()
        connection.close()


def test_hard_reset_takes_the_port_away_and_brings_it_back(tmp_path: Path) -> None:
    """As USB boards do: the device vanishes and comes again under the same name."""
    name = tmp_path / "ttyFAKE"
    first = FakeBoard()
    name.symlink_to(first.device)
    with first, FakeBoard(boot_s=0.5) as second:
        with link.connect(str(name)) as connection:

            def replug() -> None:
                first.unplug()
                name.unlink()
                time.sleep(0.5)
                name.symlink_to(second.device)

            first.globals["machine"] = None
            swap = threading.Timer(0.1, replug)
            swap.start()
            connection.hard_reset(timeout=15)
            swap.join()
            assert connection.eval("7") == 7
        assert second.ran
