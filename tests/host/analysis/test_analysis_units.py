"""Figures as text and back; expected values worked out by hand."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from upyperf.analysis import units


@pytest.mark.parametrize(
    ("bps", "text"),
    [
        (0, "0.00 bit/s"),
        (999.4, "999 bit/s"),
        (999.6, "1.00 kbit/s"),
        (640e3, "640 kbit/s"),
        (999_499, "999 kbit/s"),
        (999_500, "1.00 Mbit/s"),
        (1_048_576, "1.05 Mbit/s"),
        (9_994_000, "9.99 Mbit/s"),
        (9_996_000, "10.0 Mbit/s"),
        (94_928_478, "94.9 Mbit/s"),
        (99_960_000, "100 Mbit/s"),
        (949e6, "949 Mbit/s"),
        (9.42e9, "9.42 Gbit/s"),
        (-8.1e6, "-8.10 Mbit/s"),
        (-0.001, "0.00 bit/s"),
        (None, "–"),
        (math.nan, "–"),
        (math.inf, "–"),
    ],
)
def test_format_rate(bps, text):
    assert units.format_rate(bps) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"), (512, "512 B"), (1023, "1023 B"), (1024, "1.00 KiB"), (1023.6 * 1024, "1.00 MiB"),
        (6.25 * 2**20, "6.25 MiB"), (117_624_832, "112 MiB"), (None, "–"),
    ],
)  # fmt: skip
def test_format_size(size, text):
    assert units.format_size(size) == text


@pytest.mark.parametrize(
    ("us", "text"),
    [
        (45, "45 µs"), (130.5, "130 µs"), (1250, "1.25 ms"), (10_000_000, "10.0 s"), (119_900_000, "120 s"),
        (120_000_000, "2 min 00 s"), (7_500_000_000, "2 h 05 min"), (72 * 3600e6, "72 h 00 min"), (None, "–"),
    ],
)  # fmt: skip
def test_format_time(us, text):
    assert units.format_time_us(us) == text


def test_percent_loss_and_p():
    assert units.format_percent(-8.14, signed=True) == "−8.1 %"
    assert units.format_percent(1.25, signed=True) == "+1.2 %"
    assert units.format_percent(-0.04, signed=True) == "0.0 %"
    assert units.format_percent(None) == "–"
    assert units.format_loss(3, 800) == "3/800 (0.38 %)"  # 0.375
    assert units.format_loss(0, 0) == "0/0 (–)"
    assert units.format_loss(0, 90) == "0/90 (0.0 %)"
    assert units.format_loss(None, 90) == "–"
    assert units.format_p(0.00399) == "p = 0.004"
    assert units.format_p(0.0004) == "p < 0.001"


def test_spread_takes_the_decimals_of_the_centre():
    assert units.format_rate_spread(12.3e6, 0.42e6) == "12.3 ± 0.4 Mbit/s"
    assert units.format_rate_spread(9.5e6, 0.042e6) == "9.50 ± 0.04 Mbit/s"
    assert units.format_rate_spread(950e6, 1.6e6) == "950 ± 2 Mbit/s"
    assert units.format_rate_spread(12.3e6, None) == "12.3 Mbit/s"


def test_small_rates_do_not_vanish_in_a_column_of_mbit():
    assert units.format_mbit(80_000) == "0.0800"
    assert units.format_mbit(94.1e6) == "94.1"
    assert units.format_mbit(0) == "0.00"
    assert units.format_mbit(None) == "–"


@pytest.mark.parametrize(
    ("text", "bps"),
    [
        ("80 Mbit/s", 80e6), ("80M", 80e6), ("80m", 80e6), ("640 kbit/s", 640e3), ("1000000", 1e6),
        ("1.5 MByte/s", 12e6), ("94.1 Mbits/sec", 94.1e6), ("1G", 1e9), (" 5 Mbps ", 5e6),
        ("−2 Mbit/s", -2e6), (".5M", 5e5), ("1e6", 1e6),
    ],
)  # fmt: skip
def test_parse_rate(text, bps):
    assert units.parse_rate(text) == pytest.approx(bps)


@pytest.mark.parametrize(
    "text", ["", "fast", "80 MB/s", "5 %", "1 Mbit", "1..2M", "nan", "1M 2M", "1e999", "٣M x"]
)
def test_parse_rate_refuses_in_one_line(text):
    with pytest.raises(ValueError, match=r"not a rate|too large") as caught:
        units.parse_rate(text)
    assert "\n" not in str(caught.value)


def test_parse_percent():
    assert units.parse_percent("-5%") == -5
    assert units.parse_percent("−8.1 %") == -8.1
    with pytest.raises(ValueError, match="not a percentage"):
        units.parse_percent("-5")


@given(st.floats(min_value=0.01, max_value=9e14))
def test_a_rate_survives_text_to_three_digits(bps):
    assert units.parse_rate(units.format_rate(bps)) == pytest.approx(bps, rel=0.0051, abs=0.0051)


@given(st.floats(min_value=-99, max_value=1e6))
def test_a_signed_percentage_survives_text(percent):
    assert units.parse_percent(units.format_percent(percent, signed=True)) == pytest.approx(
        percent, abs=0.0501
    )


@given(st.floats(min_value=1e-3, max_value=1e14), st.floats(min_value=1e-3, max_value=1e14))
def test_a_larger_rate_never_reads_smaller(a, b):
    low, high = sorted((a, b))
    assert units.parse_rate(units.format_rate(low)) <= units.parse_rate(units.format_rate(high))


@given(st.lists(st.floats(min_value=0, max_value=1e10)), st.integers(min_value=1, max_value=50))
def test_sparkline_is_never_longer_than_asked(values, width):
    line = units.sparkline(values, width)
    assert len(line) == min(len(values), width)
    assert set(line) <= set("▁▂▃▄▅▆▇█")


def test_sparkline_keeps_the_shape():
    assert units.sparkline([0, 50, 100]) == "▁▅█"
    assert units.sparkline([0, 0]) == "▁▁"
    assert units.sparkline([1] * 10 + [0] * 10, 2) == "█▁"
