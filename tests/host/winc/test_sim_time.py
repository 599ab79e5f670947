"""The model of time: the shape of the field report's experiments, in virtual time with the real driver."""

from pathlib import Path

import pytest
from upyperf.virtual.winc import ManualClock, field_config
from upyperf.virtual.winc.air import phy_rate
from upyperf.virtual.winc.config import SpiConfig
from upyperf.virtual.winc.cost import measure
from upyperf.virtual.winc.rehearsal import rehearse
from upyperf.virtual.winc.timing import Pacer

FIRMWARE = Path(__file__).resolve().parents[3] / "firmware"


def config(hz, host, rssi=-60):
    made = field_config(seed=1)
    made.spi.clock_hz = hz
    made.spi.host = host
    made.air.rssi = rssi
    return made


@pytest.fixture(scope="module")
def tcp():
    """Payload rate in Mbit/s of a TCP send, remembered by its settings."""
    seen = {}

    def rate(hz, host, rssi=-60):
        key = hz, host, rssi
        if key not in seen:
            with rehearse(FIRMWARE, config(hz, host, rssi)) as run:
                seen[key] = run.tcp_send(0.3).mbps
                assert run.chip.violations == []
        return seen[key]

    return rate


def test_w1_about_5_mbps_by_polling_at_10_mhz(tcp):
    assert 4.7 <= tcp(10_000_000, "polling") <= 5.8


def test_w5_near_30_percent_more_at_20_mhz(tcp):
    assert 1.2 <= tcp(20_000_000, "polling") / tcp(10_000_000, "polling") <= 1.4


def test_w7_about_30_percent_more_by_dma(tcp):
    assert 1.2 <= tcp(10_000_000, "dma") / tcp(10_000_000, "polling") <= 1.4


def test_w6_from_5_to_7_with_a_better_signal(tcp):
    assert 4.6 <= tcp(20_000_000, "dma", -70) <= 5.6
    assert 6.6 <= tcp(20_000_000, "dma", -50) <= 7.6


def test_w3_loss_explodes_beyond_a_knee_between_7_and_9():
    loss = {}
    for rate in (7.0, 9.0, 10.0):
        with rehearse(FIRMWARE, config(20_000_000, "dma")) as run:
            loss[rate] = run.udp_send(0.6, rate).loss
    assert loss[7.0] <= 0.01
    assert 0.01 < loss[9.0] < loss[10.0]
    assert loss[10.0] > 0.08


def test_the_driver_keeps_its_cost():
    costs = measure(FIRMWARE, packets=30)
    assert [(c.direction, c.filler) for c in costs if c.ok is False] == []
    assert {c.filler for c in costs if c.ok} == {"none", "worst"}


def test_phy_rate_falls_with_the_signal():
    rates = [phy_rate(rssi, 12, 65) for rssi in range(-40, -100, -5)]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] == 65
    assert rates[-1] == 1


def pacer(busy_ns=None, **settings):
    clock = ManualClock()
    return Pacer(SpiConfig(host="polling", call_us=20, poll_gap_us=0.2, **settings), clock, busy_ns), clock


def test_a_transfer_takes_calls_clocks_and_gaps():
    made, _ = pacer()
    made.clock_hz = 8_000_000
    assert made.cost_ns(1000) == (20 + 1000 + 200) * 1000
    made.config.host = "dma"
    assert made.cost_ns(1000) == (20 + 1000) * 1000


def test_a_host_in_time_is_held_to_the_model():
    made, clock = pacer(clock_hz=8_000_000)
    for _ in range(10):
        made.hold(made.transfer(100))
    assert clock.now() == 10 * 140_000
    assert made.stats()["behind"] is False


def test_a_host_that_works_too_long_has_fallen_behind():
    made, clock = pacer(clock_hz=8_000_000, catch_up_us=1000)
    for _ in range(100):
        made.hold(made.transfer(100))
        clock.advance_us(900)  # each transfer stands for 140 us
    stats = made.stats()
    assert stats["behind"] is True
    assert made.take_late()
    assert stats["idle_us"] == 0


@pytest.mark.parametrize(("works", "behind"), [(0.0, False), (1.0, True)])
def test_long_pauses_count_only_as_far_as_somebody_worked(works, behind):
    clock = ManualClock()
    made = Pacer(
        SpiConfig(host="dma", catch_up_us=1000, clock_hz=8_000_000), clock, lambda: int(clock.now() * works)
    )
    for _ in range(20):
        made.hold(made.transfer(100))
        clock.advance_us(5000)
    assert made.stats()["behind"] is behind


def test_waiting_for_the_interrupt_gives_no_credit():
    made, clock = pacer(clock_hz=8_000_000)
    made.hold(made.transfer(100))
    clock.advance_us(900)
    made.sync()
    before = clock.now()
    made.hold(made.transfer(100))
    assert clock.now() - before == 140_000
