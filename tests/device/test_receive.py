"""Loss, order, duplicates and jitter, against the examples of the fact sheet and a float reference."""

from fakeclock import FakeClock
from iperf import hot
from iperf.flow import Flow, Header


class Source:
    """Datagrams that come one by one: (number, sent_us, arrival_us)."""

    def __init__(self, clk, items, length=64):
        self.clk = clk
        self.items = list(items)
        self.length = length
        self.ready = 0

    def readinto(self, buf):
        if not self.items:
            return None
        i, sent, at = self.items.pop(0)
        self.clk.now = at
        s, us = sent // 1000000, sent % 1000000
        for k, w in enumerate((s & 0xFFFFFFFF, us, (i >> 32) & 0xFFFFFFFF, i & 0xFFFFFFFF)):
            for j in range(4):
                buf[4 * k + j] = (w >> (24 - 8 * j)) & 255
        return self.length


def receive(items, first=1):
    clk = FakeClock(cost=0)
    f = Flow(1, Source(clk, items), False, bytearray(64), Header(12, 8, 0, 4, -1, 16, first))
    with clk:
        t_end = clk.ticks_add(clk.ticks_us(), 400000000)
        while f.step(t_end, 0, 100) != hot.BLOCK:
            pass
    return f.to_dict(1)


def by_id(ids, first=1):
    return receive([(i, k * 1000, k * 1000 + 500) for k, i in enumerate(ids)], first)


def figures(d):
    return d["packets"], d["lost"], d["ooo"], d["dup"]


def test_in_order():
    assert figures(by_id([1, 2, 3, 4, 5])) == (5, 0, 0, 0)


def test_late_datagram_is_out_of_order_and_not_lost():
    assert figures(by_id([1, 2, 4, 3, 5])) == (5, 0, 1, 0)


def test_loss():
    assert figures(by_id([1, 2, 3, 6, 7])) == (7, 2, 0, 0)


def test_duplicate_is_neither_late_nor_hides_a_loss():
    assert figures(by_id([1, 2, 2, 3, 4])) == (4, 0, 0, 1)
    assert figures(by_id([1, 2, 2, 5])) == (5, 2, 0, 1)


def test_late_duplicate_of_a_filled_hole():
    assert figures(by_id([1, 4, 3, 3, 2, 5])) == (5, 0, 2, 1)


def test_reversed_block():
    assert figures(by_id([1, 10, 9, 8, 7, 6, 5, 4, 3, 2, 11])) == (11, 0, 8, 0)


def test_more_holes_than_the_list_holds_are_never_negative():
    ids = list(range(1, 80, 2)) + list(range(2, 79, 2)) + [80]
    d = by_id(ids)
    assert d["packets"] == 80
    assert 0 <= d["lost"] <= 39
    assert d["ooo"] + d["dup"] == 39


def test_first_number():
    # zephyr PR#52843: a stream that starts at 0 has no loss, nor one that starts at 1
    assert figures(by_id([0, 1, 2, 3], first=0)) == (4, 0, 0, 0)
    assert figures(by_id([2, 3, 4], first=1)) == (4, 1, 0, 0)


def test_numbers_beyond_32_and_30_bits():
    for base in ((1 << 29) - 3, (1 << 30) - 3, (1 << 31) - 3, (1 << 32) - 3, (1 << 40) - 3):
        d = by_id([base + k for k in (0, 1, 2, 3, 5, 4, 6, 9)], first=base & 0x1FFFFFFF)
        assert figures(d) == (10, 2, 1, 0), (base, figures(d))


def test_garbage_number_is_no_loss():
    assert figures(by_id([1, 2, 0x0FABCDEF, 3, 4])) == (4, 0, 0, 0)


def test_short_datagrams_are_ignored():
    clk = FakeClock(cost=0)
    src = Source(clk, [(1, 0, 0)], length=4)
    f = Flow(1, src, False, bytearray(64), Header(12, 8, 0, 4, -1, 16, 1))
    with clk:
        assert f.step(clk.ticks_add(clk.ticks_us(), 1000), 0, 100) == hot.BLOCK
    assert f.total(hot.C_PKTS) == 0
    assert f.total(hot.C_RUNT) == 1


def reference_jitter(items):
    j = 0.0
    for k in range(1, len(items)):
        d = abs((items[k][2] - items[k - 1][2]) - (items[k][1] - items[k - 1][1]))
        j += (d - j) / 16
    return j


def test_jitter_is_rfc_3550s():
    rnd = 12345
    items = []
    for k in range(400):
        rnd = (rnd * 1103515245 + 12345) & 0x7FFFFFFF
        items.append((k + 1, 1700000000000000 + k * 2000, 77 + k * 2000 + rnd % 900))
    d = receive(items)
    ref = reference_jitter(items)
    assert abs(d["jitter_us"] - ref) <= 2, (d["jitter_us"], ref)


def test_constant_offset_of_the_clocks_is_no_jitter():
    items = [(k + 1, 3600000000 + k * 1000, 5 + k * 1000) for k in range(50)]
    assert receive(items)["jitter_us"] == 0


def test_jitter_over_a_wrap_of_the_tick_counter_and_of_1024_seconds():
    start = (1 << 30) - 10000
    items = [(k + 1, 1023990000 + k * 1000, start + k * 1000) for k in range(50)]
    assert receive(items)["jitter_us"] == 0


def test_a_clock_step_of_the_sender_is_bounded_and_not_negative():
    items = [(1, 0, 0), (2, 900000000, 1000), (3, 1000, 2000)]
    assert receive(items)["jitter_us"] >= 0
