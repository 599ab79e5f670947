"""Counting instructions: it repeats, the gate holds, the goals of the layers are met."""

import pytest
from harness.qemu_board import loopback_namespace
from upyperf import boards, firmware
from upyperf.insn import baseline
from upyperf.insn.measure import Cell, measure
from upyperf.insn.profile import profile

CELLS = [(layer, "tcp", "send", 16384) for layer in ("socket", "netconn", "raw")]
CELLS += [("socket", "tcp", "receive", 16384), ("netbuf", "tcp", "receive", 16384)]
CELLS += [("socket", "udp", "send", 1472), ("netconn", "udp", "send", 1472)]


@pytest.fixture(scope="module")
def rows(elf):
    with loopback_namespace():
        found, lwip = measure(boards.load("qemu-an386"), CELLS, repeats=5, options={"firmware": str(elf)})
    return {row.key: row for row in found}, lwip


def test_sending_repeats(rows):
    for key, row in rows[0].items():
        if key[2] == "send":
            assert row.spread <= 0.01, key


def test_goals(rows):
    cost = {key: row.insn_per_byte for key, row in rows[0].items()}
    assert cost["socket", "tcp", "send", 16384] <= 3.5
    assert cost["netconn", "tcp", "send", 16384] <= 3.0
    assert cost["raw", "tcp", "send", 16384] <= cost["netconn", "tcp", "send", 16384]
    # what is not copied is saved
    assert cost["netbuf", "tcp", "receive", 16384] < cost["socket", "tcp", "receive", 16384] - 0.3
    assert cost["netconn", "udp", "send", 1472] < cost["socket", "udp", "send", 1472] - 0.2


def test_gate_against_the_committed_baseline(rows):
    found, lwip = rows
    path = baseline.path_for("qemu-an386", firmware.compiler(), lwip["lwip"], lwip["name"])
    if not path.exists():
        from harness.notrun import not_run

        not_run(f"no baseline for this compiler: {path.name}")
    assert baseline.compare(list(found.values()), baseline.load(path)) == []


def test_gate_finds_what_is_worse():
    def cell(direction, cost):
        return Cell(
            layer="raw", transport="tcp", direction=direction, size=1, insn_per_byte=cost, repeats=5, spread=0
        )

    base = [cell("send", 2.0), cell("receive", 2.0)]
    assert baseline.compare([cell("send", 2.03), cell("receive", 2.11)], base) == []
    assert len(baseline.compare([cell("send", 2.05), cell("receive", 2.13)], base)) == 2


def test_profile_by_function(elf):
    with loopback_namespace():
        found = dict(
            profile(boards.load("qemu-an386"), ("raw", "tcp", "send", 4096), 16384, {"firmware": str(elf)})
        )
    assert found["port_chksum"] > 0.3
    assert found["mac_output"] > 0.05
    assert "memcpy" not in found or found["memcpy"] < 0.2  # nothing is copied
