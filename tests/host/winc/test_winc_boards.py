"""The boards with a WINC1510: the virtual one runs a real iperf3 test, the real one is wired as it says."""

import json
import re
import shutil

import pytest
from upyperf import boards, virtual
from upyperf.errors import UpyperfError

needs_iperf3 = pytest.mark.skipif(shutil.which("iperf3") is None, reason="iperf3 is not installed")


def run(arguments):
    """The command in this process; its exit status."""
    from upyperf.cli import main

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["upyperf", *arguments])
        try:
            return main() or 0
        except SystemExit as end:
            return end.code or 0


@needs_iperf3
def test_one_run_on_the_virtual_board(tmp_path):
    folder = tmp_path / "result"
    code = run(
        ["run", "winc1510-sim", "-t", "1", "--virtual", "spi_hz=20000000", "--virtual", "spi.host=dma",
         "--result-dir", str(folder)]
    )  # fmt: skip
    assert code == 0
    records = [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]
    result = next(r for r in records if r["kind"] == "result" and r["source"] == "board")
    assert result["layer"] == "winc1500"
    counters = result["counters"]
    assert counters["simulated"] == 1
    assert counters["sim_clock_hz"] == 20_000_000
    assert counters["sim_violations"] == 0
    assert counters["sim_behind_us"] >= 0
    assert counters["spi_calls"] > 100
    assert result["sent"]["bytes"] > 14_000
    stats = json.loads((folder / "winc-sim.json").read_text())
    assert stats["simulated"] is True
    assert stats["spi"]["host"] == "dma"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"spi_hz": 5}, "spi_hz"),
        ({"air.rsi": -70}, "there is no setting 'air.rsi'"),
        ({"air": {"rssi": "x"}}, "air.rssi: 'x' is not a whole number"),
        ({"profile": "lunar"}, "there is no profile 'lunar'"),
        ({"firmware": "18.0.0"}, "not simulated"),
        ({"config": "missing.toml"}, "missing.toml"),
        ({"heap": "big"}, "heap of board unix is 'big'"),
    ],
)
def test_bad_options_are_one_line(options, text):
    with pytest.raises(UpyperfError) as caught:
        virtual.start("winc1510_sim", None, options)
    assert caught.value.kind == "config"
    assert text in caught.value.text
    assert "\n" not in caught.value.text


def test_nothing_is_left_behind():
    with virtual.start("winc1510_sim", None, {"profile": "instant"}) as board:
        assert board.alive()
        simulator, scratch = board._simulator, board._scratch
    assert simulator.poll() is not None
    assert not scratch.exists()
    assert not board.alive()
    board.close()


def test_the_real_boards_wiring():
    board = boards.load("stm32f407-winc1510")
    assert board.tested == "none"
    assert any("Not run on hardware" in note for note in board.notes)
    assert board.twin == "winc1510-sim"
    setup = "\n".join(board.nic.setup)
    compile(setup, "setup", "exec")
    compile(board.nic.create, "create", "eval")
    for name, pin in (("cs", "CS"), ("rst", "RESET_N"), ("en", "CHIP_EN"), ("irq", "IRQN")):
        assert re.search(rf"\b{name}=Pin\('{board.pins[pin]}'", setup), name
    assert len(set(board.pins.values())) == len(board.pins) == 7
    assert int(re.search(r"baudrate=(\d+)", setup)[1]) <= 48_000_000
