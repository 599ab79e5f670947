"""Comparing results folders, and the regression gate."""

import json

import pytest
from bench_builder import HOSTILE, bench, failed, run, virtual_bench
from upyperf.analysis.compare import Change, Comparison, compare
from upyperf.analysis.gate import evaluate, parse_threshold
from upyperf.analysis.repeats import Summary
from upyperf.errors import UpyperfError
from upyperf.report import comparison as rendered


def side(mbits, **more):
    return bench([run(n, bps=v * 1e6, repeat=n) for n, v in enumerate(mbits, 1)], **more)


def only(base, new, **kw) -> Change:
    (change,) = compare([base], [new], **kw).changes
    return change


def summary(mean, half):
    return Summary((mean,) * 5, mean, mean, 0.0, mean, mean, mean, (mean - half, mean + half))


def gate(base, new, threshold="-5%", **kw):
    (result,) = evaluate(compare([base], [new]), [parse_threshold(threshold)], **kw)
    return result


BASE = [13.4, 13.1, 13.6, 13.3, 13.5]


def test_the_wording():
    change = Change(
        name="t", key="iperf3.tcp.send", label="iPerf 3 TCP send", base=summary(13.4e6, 0.3e6),
        new=summary(12.3e6, 0.4e6), change=-0.081, ci=(-0.1, -0.06), p=0.004, verdict="slower",
    )  # fmt: skip
    assert change.wording == "12.3 ± 0.4 Mbit/s (−8.1 %, p = 0.004)"


def test_slower_faster_and_no_significant_change():
    slower = only(side(BASE), side([12.3, 12.1, 12.6, 11.9, 12.4]))
    assert slower.verdict == "slower"
    assert slower.p == pytest.approx(2 / 252)  # all five below all five
    assert slower.change == pytest.approx(61.3 / 66.9 - 1, abs=1e-4)
    assert slower.ci[0] < slower.change < slower.ci[1] < 0
    assert slower.wording == "12.3 ± 0.2 Mbit/s (−8.4 %, p = 0.008)"
    faster = only(side([12.3, 12.1, 12.6, 11.9, 12.4]), side(BASE))
    assert faster.verdict == "faster"
    assert "+9.1 %" in faster.wording
    same = only(side(BASE), side([13.35, 13.15, 13.55, 13.45, 13.25]))
    assert same.verdict == "no significant change"
    assert "no significant change" in same.wording


def test_single_runs_are_too_few_to_say():
    change = only(side([13.4]), side([6.0]))
    assert change.verdict == "too few repeats to say"
    assert change.wording == "6.00 Mbit/s (−55.2 %, too few repeats to say: 1 and 1)"
    assert only(side([13.4, 13.5, 13.3]), side([6.0, 6.1, 6.2])).verdict == "too few repeats to say"
    assert only(side([13.4, 13.5, 13.3, 13.2]), side([6.0, 6.1, 6.2, 6.3])).verdict == "slower"


def test_several_folders_a_side_are_repeats():
    result = compare([side([v]) for v in BASE[:4]], [side([v]) for v in (12.3, 12.1, 12.6, 11.9)])
    assert result.changes[0].base.n == 4
    assert result.changes[0].verdict == "slower"


def test_identical_values_have_no_p_of_their_own():
    change = only(side([10] * 5), side([10] * 5))
    assert (change.change, change.p, change.verdict) == (0, 1, "no significant change")


def test_a_test_missing_on_one_side_is_said():
    base, new = side([13.4]), side([13.4])
    base.runs.append(run(7, 2, "udp", "receive"))
    new.runs.append(run(8, 2, "udp", "send"))
    by_key = {c.key: c for c in compare([base], [new]).changes}
    assert by_key["iperf2.udp.receive"].wording == "not in NEW"
    assert by_key["iperf2.udp.send"].verdict == "only in NEW"


def test_failed_and_interrupted_runs_do_not_count_as_figures():
    base, new = side([13.4] * 4), side([13.4] * 4)
    broken = run(9, bps=1e6, repeat=5)
    broken.status = "interrupted"
    new.runs.append(broken)
    change = only(base, new)
    assert change.new.n == 4
    assert change.new_errors == ("the run is interrupted or has no figure",)


@pytest.mark.parametrize(
    ("alter", "kind", "word"),
    [
        (lambda b: setattr(b.board, "name", "esp32"), "board", "esp32"),
        (lambda b: setattr(b.board, "kind", "virtual"), "kind", "virtual and real"),
        (lambda b: setattr(b.board, "time", "virtual"), "kind", "virtual time"),
        (lambda b: setattr(b.info, "micropython", "1.25.0"), "firmware", "1.25.0"),
        (lambda b: b.info.lwip.update(TCP_WND=11680), "firmware", "lwIP TCP_WND 11680 / 5840"),
        (lambda b: setattr(b.info, "iperf", "0.2.0"), "firmware", "iperf package"),
        (lambda b: b.config.update(firmware="other.bin"), "firmware", "other.bin"),
        (lambda b: b.runs[0].test.options.update(time=30), "settings", "time 10 / 30"),
        (lambda b: b.runs[0].test.options.update(window=4096), "settings", "window 4096 / not set"),
        (lambda b: setattr(b.runs[0].test, "layer", "netconn"), "settings", "netconn / socket"),
    ],
)
def test_refuses_to_mix_unless_told(alter, kind, word):
    base, new = side([13.4]), side([12.0])
    alter(new)
    with pytest.raises(UpyperfError, match="not compared") as caught:
        compare([base], [new])
    assert caught.value.kind == "usage"
    assert word in caught.value.text
    assert f"--allow {kind}" in caught.value.text
    assert "\n" not in caught.value.text
    result = compare([base], [new], allow=[kind])
    assert any(d.kind == kind and word in d.text for d in result.differences)
    assert word in rendered.to_text(result)


def test_another_peer_or_pc_is_a_note():
    base, new = side([13.4]), side([12.0])
    new.runs[0].peer.program = "iperf3 3.21"
    new.host.hostname = "other-pc"
    notes = [d.text for d in compare([base], [new]).differences if d.kind is None]
    assert notes == [
        "different peer programs: iperf3 3.12, iperf3 3.21",
        "measured from different PCs: bench-pc, other-pc",
    ]


def test_nothing_to_compare():
    with pytest.raises(UpyperfError, match="NEW holds no runs"):
        compare([side([1])], [bench([])])


def test_gate_fails_on_a_significant_fall_beyond_the_limit():
    slow = [12.3, 12.1, 12.6, 11.9, 12.4]  # -8.4 %
    failed_gate = gate(side(BASE), side(slow))
    assert (failed_gate.exit_code, failed_gate.checked) == (1, 1)
    assert failed_gate.failures[0].text == "13.4 Mbit/s → 12.3 Mbit/s, −8.4 %, limit -5%"
    assert gate(side(BASE), side(slow), "-10%").exit_code == 0
    assert gate(side(BASE), side(slow), "-1 Mbit/s").exit_code == 1
    assert gate(side(BASE), side(slow), "-2 Mbit/s").exit_code == 0
    assert gate(side(slow), side(BASE)).passed


def test_gate_ignores_noise():
    # The means differ by 7 %, but every value of NEW lies among those of BASE.
    assert gate(side([10, 14, 12, 16, 13]), side([10.5, 12.5, 11.5, 13.5, 12.2])).passed


def test_gate_on_single_runs_takes_the_figure_itself():
    assert gate(side([10]), side([9])).exit_code == 1
    assert "measure at least 4 times" in gate(side([10]), side([9])).failures[0].text
    assert gate(side([10]), side([9]), untested_passes=True).passed
    assert gate(side([10]), side([9.6])).passed


def test_a_fall_of_exactly_the_limit_passes():
    base, new = bench([run()]), bench([run()])
    for b, size in ((base, 100_000_000), (new, 95_000_000)):
        b.runs[0].directions[0].peer.bytes = size
    assert compare([base], [new]).changes[0].change == pytest.approx(-0.05)
    assert gate(base, new).passed


def test_gate_fails_when_the_figure_is_gone():
    base, new = side([10]), bench([failed(options={"time": 10})])
    result = gate(base, new)
    assert result.exit_code == 1
    assert "nothing listens" in result.failures[0].text
    # A test that only NEW has fell from nothing.
    new = side([10])
    new.runs.append(run(5, 2))
    assert gate(base, new).passed


def test_gate_without_a_figure_to_compare_fails():
    nothing = bench([failed(options={"time": 10})])
    result = gate(nothing, bench([failed(options={"time": 10})]))
    assert result.exit_code == 1
    assert "no figure" in result.text


@pytest.mark.parametrize("text", ["5%", "+5%", "-5", "", "abc", "-101%", "2 Mbit/s", "-5 MB/s", "0%", "-5%%"])
def test_a_senseless_threshold_is_a_usage_error(text):
    with pytest.raises(UpyperfError, match="--fail-if") as caught:
        parse_threshold(text)
    assert caught.value.exit_code == 2


def sample() -> Comparison:
    base, new = side(BASE), side([12.3, 12.1, 12.6, 11.9, 12.4])
    for a_bench, lost in ((base, 0), (new, 40)):
        a_bench.runs.append(run(9, proto="udp", bps=10e6, lost=lost))
    return compare([base], [new])


def test_text_markdown_and_json_say_the_same():
    comparison = sample()
    gates = evaluate(comparison, [parse_threshold("-5%")])
    text = rendered.to_text(comparison, gates)
    assert "\x1b" not in text
    assert all(line == line.rstrip() for line in text.splitlines())
    markdown = rendered.to_markdown(comparison, gates)
    for out in (text, markdown):
        assert "12.3 ± 0.2 Mbit/s (−8.4 %, p = 0.008)" in out
        assert "FAILED: 1 of 2 tests" in out
        assert "0 → 0.467 %" in out  # 40 of 8573 datagrams of 1458 B
    document = json.loads(rendered.to_json(comparison, gates))
    assert document["changes"][0]["change_percent"] == pytest.approx(-8.37, abs=0.01)
    assert document["changes"][0]["base"]["n"] == 5
    assert document["gates"][0]["passed"] is False


def test_tests_that_read_alike_are_told_apart_by_name():
    runs = [run(n, options={"length": size}, name=f"tcp-{size}") for n, size in enumerate((64, 1460), 1)]
    text = rendered.to_text(compare([bench(runs)], [bench(runs)]))
    assert "iPerf 3 TCP send (tcp-64)" in text
    assert "iPerf 3 TCP send (tcp-1460)" in text


def test_hostile_names_stay_text():
    runs = [run(1, name=HOSTILE), run(2, name=HOSTILE + "2")]
    a_bench = bench(runs, id=HOSTILE)
    a_bench.board.name = HOSTILE
    comparison = compare([a_bench], [a_bench])
    for out in (rendered.to_text(comparison), rendered.to_markdown(comparison)):
        assert "\x1b" not in out
        assert "\x04" not in out
    assert "<script" not in rendered.to_markdown(comparison)
    json.loads(rendered.to_json(comparison))


def test_virtual_boards_are_named_as_such():
    result = compare([virtual_bench()], [virtual_bench()])
    assert "not of any hardware" in rendered.to_text(result)
    assert "not of any hardware" in result.to_dict()["virtual"]
