"""Both ends' figures, curves and repeats."""

import pytest
from bench_builder import bench, failed, intervals, run, virtual_bench
from upyperf.analysis import ends, figures, repeats
from upyperf.records import Direction, Interval, PeerResult, Sum


def tcp(mbit, seconds=10.0):
    return Sum(bytes=round(mbit * 1e6 * seconds / 8), us=round(seconds * 1e6))


def test_tcp_differs_by_the_rates():
    assert ends.difference(tcp(94), tcp(92), "tcp") == pytest.approx(2 / 94)
    assert ends.difference(tcp(92), tcp(94), "tcp") == pytest.approx(2 / 94)
    assert ends.difference(tcp(94), Sum(bytes=1, us=0), "tcp") is None
    assert ends.difference(Sum(bytes=0, us=10), Sum(bytes=0, us=10), "tcp") is None


def test_udp_loss_is_no_disagreement():
    sender = Sum(bytes=1_000_000, us=10**7, packets=1000)
    assert ends.difference(sender, Sum(bytes=990_000, us=10**7, packets=1000, lost=10), "udp") == 0
    # 20 datagrams gone without being counted as lost: 2 %
    assert ends.difference(sender, Sum(bytes=980_000, us=10**7, packets=980, lost=0), "udp") == pytest.approx(
        0.02
    )
    # a sender that does not count its datagrams
    assert ends.difference(Sum(bytes=1000, us=1), Sum(bytes=500, us=1, lost=1), "udp") == 0.5


def test_flag_above_two_percent_and_not_at_it():
    def flagged(ours, theirs, exempt=None):
        a_run = run(bps=1)
        a_run.board.sent, a_run.peer.received = tcp(ours), tcp(theirs)
        return ends.pair("send", "tcp", a_run.board, a_run.peer, exempt).flagged

    assert flagged(100, 97.9)
    assert not flagged(100, 98)
    assert not flagged(100, 50, exempt=ends.VIRTUAL_TIME)


def test_a_difference_near_the_limit_shows_its_side():
    def shown(relative):
        return ends.difference_text(Direction(way="send", difference=relative))

    assert [shown(v) for v in (0.0204, 0.0196, 0.0213, 0.15, None)] == [
        "2.04 %",
        "1.96 %",
        "2.1 %",
        "15.0 %",
        "–",
    ]


def test_what_the_peer_reported_stands_in_for_its_output():
    a_run = run()
    a_run.board.peer_received = tcp(80)
    direction = ends.pair("send", "tcp", a_run.board, PeerResult(program="iperf3 3.12"))
    assert direction.peer is None
    assert direction.difference == pytest.approx(1 - 80 / 94.1, abs=1e-4)
    assert ends.pair("send", "tcp", None, None).difference is None


@pytest.mark.parametrize(
    ("sent", "received", "proto", "word"),
    [
        (tcp(94), tcp(90), "tcp", "still queued"),
        (tcp(90), tcp(94), "tcp", "miscounts"),
        (tcp(94, 10), tcp(85, 11), "tcp", "timed the run differently"),
        (tcp(94), Sum(bytes=0, us=10**7), "tcp", "counted nothing"),
        (
            Sum(bytes=10**6, us=1, packets=1000),
            Sum(bytes=9 * 10**5, us=1, packets=900, lost=0),
            "udp",
            "end of the run",
        ),
        (Sum(bytes=10**6, us=1, packets=1000), Sum(bytes=2 * 10**6, us=1, packets=2000), "udp", "duplicates"),
    ],
)
def test_a_disagreement_is_explained(sent, received, proto, word):
    direction = Direction(way="send", board=sent, peer=received, difference=0.1, flagged=True)
    assert word in ends.explain(direction, proto)
    direction.flagged = False
    assert ends.explain(direction, proto) is None


def test_rows_take_jitter_and_loss_from_the_receiver_and_retries_from_the_board():
    send, receive = figures.rows(
        bench([run(proto="udp", bps=10e6, lost=5), run(2, proto="udp", mode="receive", bps=10e6, lost=7)])
    )
    assert (send.jitter_us, send.lost, send.retries, send.enomem) == (130.5, 5, 31, 2)
    assert (receive.jitter_us, receive.lost, receive.retries) == (88.0, 7, None)
    assert send.delivered_bps < send.board_bps
    assert receive.delivered_bps == receive.board_bps
    assert send.loss_percent == pytest.approx(100 * 5 / send.packets)


def test_a_failed_run_keeps_its_rows():
    rows = figures.rows(bench([failed(mode="bidir")]))
    assert [r.way for r in rows] == ["send", "receive"]
    assert all(r.board_bps is None and r.delivered_bps is None for r in rows)
    assert rows[0].label == "iPerf 3 TCP bidir send"
    assert rows[0].key == "iperf3.tcp.bidir.send"


def test_parallel_streams_add_up_in_the_curve():
    rows = [
        i
        for stream in (1, 3, 4)
        for i in intervals(8e6, 5, True, udp=False, block=1000, wobble=0, stream=stream)
    ]
    # The streams start some ms apart, as they do.
    for i in rows:
        i.start_us += i.id * 900
        i.end_us += i.id * 900
    points = figures.curve(rows, sender=True)
    assert [p.bps for p in points] == pytest.approx([24e6] * 5)
    assert figures.curve(rows, sender=False) == []


def test_drifting_streams_stay_together_over_hours():
    rows = []
    for n in range(36_000):
        for stream in (1, 3):
            start = n * 1_000_150 + stream * 40_000
            rows.append(
                Interval(id=stream, sender=True, start_us=start, end_us=start + 1_000_150, bytes=125_000)
            )
    points = figures.curve(rows, sender=True)
    assert len(points) == 36_000
    assert {round(p.bps) for p in points} == {round(2 * 1e12 / 1_000_150)}


def test_a_stream_that_misses_an_interval_does_not_shift_the_others():
    rows = intervals(8e6, 4, True, udp=False, block=1000, wobble=0)
    rows += [
        i
        for i in intervals(8e6, 4, True, udp=False, block=1000, wobble=0, stream=3)
        if i.start_us != 1_000_000
    ]
    assert [round(p.bps / 1e6) for p in figures.curve(rows, True)] == [16, 8, 16, 16]


def test_splinters_at_the_end_and_empty_intervals_are_left_out():
    rows = intervals(8e6, 3, True, udp=False, block=1000, wobble=0)
    rows.append(Interval(id=1, sender=True, start_us=3_000_000, end_us=3_003_000, bytes=131072))
    rows.append(Interval(id=1, sender=True, start_us=3_003_000, end_us=3_003_000, bytes=10))
    assert len(figures.curve(rows, True)) == 3


def test_virtual_boards_are_marked():
    assert figures.virtual_mark(bench()) is None
    assert "not of any hardware" in figures.virtual_mark(virtual_bench())
    assert "virtual time" in figures.virtual_mark(virtual_bench(time="virtual"))
    simulated = virtual_bench()
    simulated.board.figures = "simulated: a model of the air"
    assert figures.virtual_mark(simulated) == "simulated: a model of the air"
    simulated.board.twin_of = "stm32f407"
    assert figures.virtual_mark(simulated).endswith("not the hardware; simulated: a model of the air")
    twin = virtual_bench()
    twin.board.twin_of = "stm32f407"
    assert figures.virtual_mark(twin) == "twin of stm32f407 (unix), not the hardware"


def test_summary_by_hand():
    s = repeats.summarise([1, 2, 3, 4, 100])
    assert (s.n, s.mean, s.median, s.mad, s.low, s.high, s.trimmed) == (5, 22, 3, 1, 1, 100, 3)
    assert s.ci[0] < 22 < s.ci[1]
    assert repeats.summarise([5.0, 5.0, 5.0]).ci == (5.0, 5.0)
    two = repeats.summarise([1, 3])
    assert (two.ci, two.trimmed, two.half_width) == (None, None, None)
    for bad in ([], [1.0, float("nan")]):
        with pytest.raises(ValueError, match="values|finite"):
            repeats.summarise(bad)


def test_p_values_by_hand():
    # All of one side below the other: one of C(8,4) = 70 orders, two-sided 2/70.
    assert repeats.p_value([1, 2, 3, 4], [5, 6, 7, 8]) == pytest.approx(2 / 70)
    # U = 1 of 2 x 2: P(U <= 1) = 2/6, two-sided 2/3.
    assert repeats.p_value([1, 3], [2, 4]) == pytest.approx(2 / 3)
    # Ties: 1 1 | 2 2, one of six orders at each end.
    assert repeats.p_value([1, 1], [2, 2]) == pytest.approx(2 / 6)
    assert repeats.p_value([5, 5, 5], [5, 5, 5]) == 1
    assert repeats.smallest_p(3, 3) == pytest.approx(0.1)
    assert repeats.smallest_p(4, 4) == pytest.approx(2 / 70)
    assert repeats.smallest_p(1, 1) == 1


def test_the_interval_is_the_same_every_time():
    values = [94.1, 93.8, 94.4, 94.0, 93.9]
    assert repeats.mean_interval(values) == repeats.mean_interval(values)
    change = repeats.change_interval([100, 101, 99, 100], [90, 91, 89, 90])
    assert change[0] < -0.10 < change[1] < 0
    assert repeats.change_interval([0, 1, 2], [1, 2, 3]) is None
    assert repeats.change_interval([10, 10, 10], [9, 9, 9]) == (pytest.approx(-0.1), pytest.approx(-0.1))


def test_what_one_account_of_the_receiver_lacks_the_other_tells():
    a_run = run(proto="udp", bps=10e6, lost=5)
    direction = a_run.directions[0]
    direction.reported = direction.peer.model_copy(update={"jitter_us": 77.0, "ooo": 3})
    direction.peer.jitter_us = None
    row = figures.rows(bench([a_run]))[0]
    assert (row.jitter_us, row.ooo, row.lost) == (77.0, 3, 5)
    # Zero is a figure.
    direction.peer.jitter_us = 0.0
    assert figures.rows(bench([a_run]))[0].jitter_us == 0.0


def test_a_short_interval_before_a_long_one_of_the_same_stream_is_no_second_stream():
    rows = [
        Interval(id=1, sender=True, start_us=0, end_us=300_000, bytes=37_500),
        Interval(id=1, sender=True, start_us=300_000, end_us=1_300_000, bytes=125_000),
    ]
    assert [p.bps for p in figures.curve(rows, True)] == [1e6, 1e6]
