"""iperf's and iperf3's output: every captured sample gives the right figures."""

from pathlib import Path

import pytest
from upyperf.peers.rows import Gatherer, best_bytes, summed
from upyperf.peers.text2 import Text2, csv_row
from upyperf.peers.text3 import Text3

SAMPLES = Path(__file__).parent / "samples"


def parse(name):
    """The gatherer after all lines of a sample; senders are named from the board's side."""
    path = next(SAMPLES.rglob(f"{name}.txt"))
    server = ".server" in path.name
    client_command = (
        path.with_name(path.name.replace(".server.", ".client.")).read_text().splitlines()[0] + " "
    )
    gatherer = Gatherer(default_sender=not server)
    if path.parent.name == "iperf3":
        sends = None if "--bidir" in client_command else (not server) != (" -R " in client_command)
        parser = Text3(gatherer, sends, " -u " in client_command)
    else:
        parser = Text2(gatherer, server)
    for line in path.read_text().splitlines()[1:]:
        parser.feed(line)
    return gatherer, parser


# name: [(board sends, Mbit/s, us, packets, lost, ooo)] as a reader finds them; the last ones may lack
TWO = {
    "2.0.13_tcp.server": [(True, 4194, 100_000)],
    "2.0.13_tcp_i1.client": [(False, 12713, 2_000_000)],
    "2.0.13_tcp_P3_i1.server": [(True, 2533, 2e6), (True, 2064, 2e6),
                                (True, 2617, 2e6)],
    "2.0.13_tcp_d.server": [(True, 4802, 2_200_000), (False, 1258, 2e6)],
    "2.0.13_tcp_csv.server": [(True, 6436.436336, 2_005_453)],
    "2.0.13_tcp_csv_P2.server": [(True, 469.306688, 1_237_807),
                                 (True, 1448.754959, 1_264_439)],
    "2.0.13_udp_P2_i1.server": [(True, 0.93, 2e6, 157, 0, 1), (True, 0.917, 2e6, 157, 1)],
    "2.0.13_udp_P2_i1.client": [(False, 0.922, 2e6, 157), (False, 0.922, 2e6, 157)],
    "2.0.13_udp_csv.server": [(True, 0.99796, 2_015_073, 171, 0, 0)],
    "2.1.8_tcp_i1.server": [(True, 50.3, 3_020_000)],
    "2.1.8_tcp_R.client": [(True, 50.0, 2_033_500)],
    "2.1.8_tcp_R.server": [(False, 49.9, 2_036_400)],
    "2.1.8_tcp_d.client": [(True, 19.98, 2_098_800), (False, 20.34, 2_061_900)],
    "2.1.8_tcp_d.server": [(False, 19.87, 2_110_800), (True, 20.48, 2_047_600)],
    "2.1.8_tcp_r.server": [(True, 20.51, 2_045_000), (False, 19.97, 2_100_800)],
    "2.1.8_tcp_fd.server": [(True, 20.5, 2_046_500), (False, 20.51, 2_045_000)],
    "2.1.8_tcp_fd.client": [(False, 20.51, 2_045_100), (True, 20.02, 2_095_400)],
    "2.1.8_tcp_e.server": [(True, 50.5, 2_015_200)],
    "2.1.8_tcp_f_upper_g.server": [(True, 51.05, 1_009_500)],
    "2.1.8_tcp_f_lower_k.server": [(True, 51.007, 1_007_300)],
    "2.1.8_tcp_w64k.server": [(True, 20.995, 1_050_800)],
    "2.1.8_tcp_n.client": [(False, 402.5, 104_200)],
    "2.1.8_udp_i1.server": [(True, 1.009, 3_019_800, 259, 0, None)],
    "2.1.8_udp_e_trip.server": [(True, 1.012, 2_023_100, 174, 0, None)],
    "2.1.8_udp_d.server": [(True, 1.0125, 2_022_700, 174, 0, None), (False, 1.004, 2_022_800)],
    "2.1.8_udp_d.client": [(True, 1.004, 2_022_800, 173, 0, None), (False, 1.012, 2_022_900, 175)],
    "2.1.8_udp_fd.client": [(False, 1.012, 2_022_900, 175), (True, 1.004, 2_023_400, 173, 0, None)],
    "2.1.8_udp_csv.server": [(True, 1.011744, 2_022_488, 174, 0, 0)],
    "2.1.8_udp_csv.client": [(False, 1.011499, 2_022_978)],
    "2.1.8_tcp_sumonly.client": [],
    "2.1.8_tcp_m.client": [],
    "2.1.8_udp_R.server": [],
}  # fmt: skip
THREE = {
    "3.12_tcp.server": [(True, 99.3, 2_020_000)],
    "3.12_tcp_R.server": [(False, 100.2, 2_000_000)],
    "3.12_tcp_R.client": [(True, 100.2, 2_000_000)],
    "3.12_tcp_O1.server": [(True, 99.7, 2_010_000)],
    "3.12_tcp_P2.server": [(True, 99.7, 2_010_000)] * 2,
    "3.12_tcp_V.server": [(True, 100.7, 1_000_000)],
    "3.12_tcp_bidir.server": [(True, 100.2, 2e6), (False, 100.2, 2e6)],
    "3.12_tcp_fK.server": [(True, 99.7, 1_010_000)],
    "3.12_tcp_gso.client": [(False, 100.66, 1_000_000)],
    "3.12_tcp_n1M.server": [],
    "3.12_udp.server": [(True, 1.0035, 2_000_000, 179, 0, None)],
    "3.12_udp.client": [(False, 1.0035, 2_000_000, 179)],
    "3.12_udp_R.server": [(False, 1.0035, 2_000_000, 179)],
    "3.12_udp_P2.server": [(True, 1.0035, 2_000_000, 179, 0, None)] * 2,
    "3.12_udp_bidir.server": [(True, 0.9985, 2_010_000, 179, 0, None), (False, 0.9985, 2_010_000, 179)],
}  # fmt: skip


@pytest.mark.parametrize("name", [*TWO, *THREE])
def test_totals_of_a_sample(name):
    expected = {**TWO, **THREE}[name]
    streams = parse(name)[0].streams()
    assert len(streams) == len(expected)
    for stream, figures in zip(streams, expected, strict=True):
        board_sends, mbit, us, packets, lost, ooo = (*figures, None, None, None)[:6]
        assert stream.sender == board_sends
        assert stream.bits_per_second / 1e6 == pytest.approx(mbit, rel=0.005)
        assert stream.us == pytest.approx(us, rel=1e-5)
        assert (stream.packets, stream.lost, stream.ooo) == (packets, lost, ooo)


@pytest.mark.parametrize("path", sorted(SAMPLES.rglob("*.txt")), ids=lambda path: path.name)
def test_every_sample_is_consistent(path):
    gatherer, parser = parse(path.stem)
    streams = gatherer.streams()
    if (
        parser.connections
        and "udp_R" not in path.name
        and "_n1M" not in path.name
        and "_csv" not in path.name
    ):
        assert len(streams) >= parser.connections - ("gso" in path.name)
    for stream in streams:
        counted = sum(i.bytes for i in gatherer.intervals if i.id == stream.id and not i.omitted)
        # Rows of whole intervals make up no more than the total, to within what is rounded.
        assert counted <= stream.bytes * 1.02
        assert stream.jitter_us is None or not stream.sender or stream.jitter_us < 1000


def test_intervals_of_streams_and_omitted_ones():
    gatherer, _ = parse("3.12_tcp_P2.server")
    assert [(i.id, i.start_us, i.end_us) for i in gatherer.intervals] == [
        (1, 0, 1_000_000), (2, 0, 1_000_000), (1, 1_000_000, 2_000_000), (2, 1_000_000, 2_000_000),
    ]  # fmt: skip
    gatherer, _ = parse("3.12_tcp_O1.server")
    assert [i.omitted for i in gatherer.intervals] == [True, False, False]


def test_sum_over_streams():
    gatherer, _ = parse("2.0.13_udp_P2_i1.server")
    total = summed(gatherer.streams(), board_sends=True)
    assert (total.packets, total.lost, total.ooo, total.jitter_us) == (314, 1, 1, 12.0)
    assert summed(gatherer.streams(), board_sends=False) is None


@pytest.mark.parametrize("percent", ["1e+02%", "-nan%", "inf%", "nan%"])
def test_odd_percentages(percent):
    parser = Text2(Gatherer(False), True)
    row = parser.feed(f"[  1] 0.0000-1.0000 sec   125 KBytes  1.02 Mbits/sec   0.008 ms 87/87 ({percent})")
    assert (row.lost, row.packets) == (87, 87)


def test_starred_id_without_a_connect_line_and_spaces_around_the_dash():
    parser = Text2(Gatherer(True), True)
    assert parser.feed("[ *1]  0.0- 1.0 sec  36.0 Bytes  0.000 bits/sec").bytes == 36


def test_enhanced_csv_of_2_2():
    cells = "+0000:20261130103853.123456,127.0.0.1,1,127.0.0.1,2,1,0.0,2.0,250000,1000000"
    row = csv_row(cells + ",0.005,0,171,0.0,0,171,0,0,85")
    assert (row.bytes, row.end_us, row.packets, row.lost) == (250000, 2_000_000, 171, 0)
    assert csv_row("not,a,row") is None
    assert csv_row("a,b,c,d,e,f,g,h,i") is None


def test_precision_comes_from_the_better_figure():
    # 12.1 MBytes is known to 0.4 %, 50508 Kbits/sec to 0.001 %.
    assert best_bytes("12.1", "M", "50508", "K", "bits", 2_013_800, 50) == pytest.approx(12_714_126, abs=2)
    # 36.0 Bytes is exact.
    assert best_bytes("36.0", "", "0.288", "K", "bits", 1_000_000, 50) == 36


def test_absurd_end_after_an_abort_is_not_believed():
    gatherer = Gatherer(False)
    parser = Text3(gatherer, False, False)
    parser.feed("[  5]   0.00-1.00   sec  12.0 MBytes  100663 Kbits/sec                  ")
    parser.feed("[  5]   1.00-2664.10 sec  1.20 MBytes  4.70 Kbits/sec                  receiver")
    assert [(s.us, s.bytes) for s in gatherer.streams()] == [(1_000_000, 12_582_912)]


def test_error_line_of_iperf3():
    parser = Text3(Gatherer(True), True, False)
    parser.feed("iperf3: error - unable to connect to server: Connection refused")
    assert parser.error == "unable to connect to server: Connection refused"
