"""Theoretical bounds against the arithmetic done by hand, and which of them a run is given."""

import pytest
from bench_builder import bench, run, virtual_bench
from upyperf.analysis import bounds, figures, limits
from upyperf.records import BoardRef, NetworkRef


def test_ethernet_goodput():
    # A full frame: 1500 + 38 = 1538 B on the wire.
    assert bounds.tcp_goodput(100e6).bps / 1e6 == pytest.approx(94.93, abs=0.005)  # 1460/1538
    assert bounds.tcp_goodput(100e6, timestamps=True).bps / 1e6 == pytest.approx(
        94.15, abs=0.005
    )  # 1448/1538
    assert bounds.tcp_goodput(1e9).bps / 1e6 == pytest.approx(949.3, abs=0.05)
    assert bounds.udp_goodput(100e6).bps / 1e6 == pytest.approx(95.71, abs=0.005)  # 1472/1538
    assert bounds.udp_goodput(1e9).bps / 1e6 == pytest.approx(957.1, abs=0.05)
    # MSS 536: 536 / (536 + 40 + 38)
    assert bounds.tcp_goodput(100e6, 536).bps / 1e6 == pytest.approx(87.30, abs=0.005)


def test_small_and_large_datagrams():
    # 20 + 28 = 48 B of IP, 86 B on the wire: 100e6 / 688 = 145 349 datagrams/s, 23.26 Mbit/s.
    assert bounds.udp_packets_per_second(100e6, 20) == pytest.approx(145_348.8, abs=0.1)
    assert bounds.udp_goodput(100e6, 20).bps / 1e6 == pytest.approx(23.26, abs=0.005)
    # 1 B is padded to 46 B: 84 B on the wire, 148 810/s, the well-known figure for the smallest frame.
    assert bounds.udp_packets_per_second(100e6, 1) == pytest.approx(148_809.5, abs=0.1)
    # 1500 B: fragments of 1480 and 28 B: 1538 + 86 = 1624 B on the wire.
    assert bounds.udp_goodput(1e9, 1500).bps / 1e6 == pytest.approx(923.6, abs=0.05)
    # 2952 B fill two fragments to the last byte: 2 x 1538 B.
    assert bounds.udp_goodput(1e9, 2952).bps / 1e6 == pytest.approx(959.7, abs=0.05)
    # At an MTU of 1006 a fragment takes 984 B, the multiple of 8 below 986: 985 B need a second one.
    assert bounds.udp_goodput(1e9, 976, 1006).bps / 1e6 == pytest.approx(976e3 / 1042, abs=0.05)
    assert bounds.udp_goodput(1e9, 979, 1006).bps / 1e6 == pytest.approx(979e3 / (1042 + 84), abs=0.05)
    # 8000 B: 8008 = 5 x 1480 + 608: 5 x 1538 + 666 = 8356 B.
    assert bounds.udp_goodput(1e9, 8000).bps / 1e6 == pytest.approx(957.4, abs=0.05)


def test_window_spi_and_target():
    assert bounds.window_rtt(5760, 5000).bps == pytest.approx(9.216e6)
    assert bounds.spi_bus(20e6, 1400, 100).bps == pytest.approx(18.667e6, abs=1e3)
    assert bounds.target_rate(1e6).of_sender


@pytest.mark.parametrize(
    "call",
    [
        lambda: bounds.udp_goodput(100e6, 0),
        lambda: bounds.tcp_goodput(100e6, 12, timestamps=True),
        lambda: bounds.window_rtt(5760, 0),
        lambda: bounds.spi_bus(1e6, 0, 10),
        lambda: bounds.spi_bus(1e6, 10, -1),
    ],
)
def test_senseless_input_is_refused(call):
    with pytest.raises(ValueError, match="B|µs|byte"):
        call()


def row_of(a_bench):
    return figures.rows(a_bench)[0]


def test_the_wire_bound_needs_the_line_rate():
    wired = bench([run()])
    assert row_of(wired).bound.bps / 1e6 == pytest.approx(94.93, abs=0.005)
    wifi = bench([run()], board=BoardRef(name="esp32", kind="hardware"))
    assert row_of(wifi).bound is None


def test_a_small_mss_of_lwip_lowers_the_wire_bound():
    a_bench = bench([run()])
    a_bench.info.lwip["TCP_MSS"] = 536
    assert row_of(a_bench).bound.bps / 1e6 == pytest.approx(87.30, abs=0.005)


def test_window_over_rtt_where_both_are_known():
    a_bench = bench([run(mode="receive", bps=8e6)], network=NetworkRef(rtt_us=5000))
    a_bench.info.lwip["TCP_WND"] = 5760
    bound = row_of(a_bench).bound
    assert (bound.short, bound.bps) == ("window/RTT", pytest.approx(9.216e6))
    # -w counts before lwIP's default, and each stream has a window of its own.
    parallel = bench([run(options={"window": 11520, "parallel": 2})], network=NetworkRef(rtt_us=5000))
    assert row_of(parallel).bound.bps == pytest.approx(36.864e6)


def test_udp_is_bound_by_its_target_and_by_the_datagram_size():
    found = limits.all_bounds(bench(), run(proto="udp", bps=20e6), "send")
    assert [b.short for b in found] == ["-b", "wire"]
    assert found[0].bps == 20e6
    # 1458 + 28 + 38 = 1524
    assert found[1].bps == pytest.approx(100e6 * 1458 / 1524)


def test_udp_without_b_has_iperfs_own_target_and_b_0_none():
    plain = run(proto="udp", bps=1e6)
    for options in (plain.test.options, plain.board.options):
        del options["bandwidth"]
    assert limits.all_bounds(bench(), plain, "send")[0].bps == 1_048_576
    unlimited = run(proto="udp", bps=90e6, options={"bandwidth": 0})
    assert [b.short for b in limits.all_bounds(bench(), unlimited, "send")] == ["wire"]


def test_b_is_the_rate_of_each_stream():
    parallel = run(options={"bandwidth": 5_000_000, "parallel": 3})
    assert limits.all_bounds(bench(), parallel, "send")[0].bps == 15e6


def test_a_figure_above_the_wire_is_flagged():
    # J6 of the field reports: 112 Mbit/s over 100 Mbit/s Ethernet cannot be.
    row = row_of(bench([run(bps=112e6)]))
    assert [b.short for b in row.impossible] == ["wire"]
    assert "cannot be true of this link" in " ".join(figures.warnings(row))
    assert not row_of(bench([run(bps=94.9e6)])).impossible


def test_a_sender_may_count_what_lies_in_its_buffers():
    row = row_of(bench([run(bps=112e6, peer_bps=94e6)]))
    assert not row.impossible
    assert row.direction.flagged


def test_a_sender_above_its_target_is_flagged_but_not_for_one_datagram():
    # 1 s at 1 Mbit/s in datagrams of 1458 B: one more datagram is 1.2 % more.
    assert not row_of(
        bench([run(proto="udp", bps=1.0117e6, seconds=1, options={"bandwidth": 1_000_000})])
    ).impossible
    above = row_of(bench([run(proto="udp", bps=1.2e6, options={"bandwidth": 1_000_000})]))
    assert [b.short for b in above.impossible] == ["-b"]
    assert "pacing" in " ".join(figures.warnings(above))


def test_time_that_pacing_gave_up_on_is_said():
    late = run(proto="udp", bps=9e6, seconds=10, options={"bandwidth": 10_000_000})
    late.directions[0].board.stall_us = 1_000_000
    assert "10 % of the test" in " ".join(figures.warnings(row_of(bench([late]))))
    late.directions[0].board.stall_us = 90_000
    assert not figures.warnings(row_of(bench([late])))


def test_virtual_time_has_no_bounds():
    assert row_of(virtual_bench(time="virtual")).limits == []
