# ruff: noqa: PT018
"""The link emulator's arithmetic, without a board."""

import pytest
from upyperf.errors import UpyperfError
from upyperf.virtual._link_emulator import Direction, LinkSettings


def frames(direction, n, gap=0.0, size=100):
    """Send n numbered frames, `gap` apart; return (number, time) of what arrives."""
    out = []
    now = 0.0
    for i in range(n):
        now = i * gap
        direction.put(i.to_bytes(4, "big") + bytes(size - 4), now)
        out += [(f, now) for f in direction.due(now)]
    while direction.holding or direction.next_due() is not None:
        if direction.next_due() is None:
            direction.release(now)
        now = max(now, direction.next_due())
        out += [(f, now) for f in direction.due(now)]
    return [(int.from_bytes(f[:4], "big"), t) for f, t in out]


def test_parse():
    got = LinkSettings.parse("delay=5ms, loss=1%,rate=10M,seed=7,dup=0.5%,reorder=2%,jitter=1ms")
    assert got == LinkSettings(
        delay=0.005, jitter=0.001, loss=0.01, reorder=0.02, dup=0.005, rate=1e7, seed=7
    )
    assert LinkSettings.parse(str(got)) == got


@pytest.mark.parametrize("text", ["delay=5", "loss=101%", "speed=3", "delay", "loss=x", "rate=-1M"])
def test_parse_says_what_is_wrong(text):
    with pytest.raises(UpyperfError) as caught:
        LinkSettings.parse(text)
    assert caught.value.kind == "config"


def test_nothing_set_passes_everything_in_order():
    assert [n for n, _ in frames(Direction(LinkSettings(), "up"), 100)] == list(range(100))


def test_delay_and_rate():
    got = frames(Direction(LinkSettings(delay=0.01), "up"), 3, gap=0.001)
    assert [t for _, t in got] == pytest.approx([0.010, 0.011, 0.012])
    got = frames(Direction(LinkSettings(rate=1e6), "up"), 3, size=1226)  # 1250 B on the wire: 10 ms each
    assert [t for _, t in got] == pytest.approx([0.01, 0.02, 0.03])


def test_a_queue_that_is_full_drops():
    way = Direction(LinkSettings(rate=1e5), "up")
    assert 0 < len(frames(way, 1000, size=1000)) < 400
    assert way.counts["overflow"] > 600


def test_loss_is_seeded_and_near_its_share():
    first, again, other = (
        [n for n, _ in frames(Direction(LinkSettings(loss=0.1, seed=s), "up"), 5000)] for s in (1, 1, 2)
    )
    assert first == again != other
    assert 4350 < len(first) < 4650


def test_one_setting_does_not_shift_anothers_draws():
    plain = {n for n, _ in frames(Direction(LinkSettings(loss=0.1), "up"), 2000)}
    mixed = {n for n, _ in frames(Direction(LinkSettings(loss=0.1, dup=0.2, reorder=0.1), "up"), 2000)}
    assert plain == mixed


def test_duplication_and_reordering():
    way = Direction(LinkSettings(dup=0.1), "up")
    got = [n for n, _ in frames(way, 1000)]
    assert len(got) == 1000 + way.counts["duplicated"] and 60 < way.counts["duplicated"] < 140
    way = Direction(LinkSettings(reorder=0.1), "up")
    got = [n for n, _ in frames(way, 1000)]
    assert sorted(got) == list(range(1000)) and got != sorted(got)
