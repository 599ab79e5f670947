"""The receiving end of an iPerf 2 datagram stream, and the two ends of the final handshake."""

import gc
from struct import pack, pack_into

from iperf import clock, hot
from iperf.engine import Engine
from iperf.flow import Flow
from iperf.v2 import report, request, wire
from iperf.v2.answer import Report
from iperf.v2.fin import Fin
from iperf.v2.inflow import InFlow


class Sock:
    """Gives the datagrams of `come` in turn; keeps what is sent."""

    def __init__(self, come=()):
        self.come = list(come)
        self.sent = []
        self.ready = 0
        self.fail = None

    def _next(self):
        if self.fail:
            raise OSError(self.fail)
        return self.come.pop(0) if self.come else None

    def readinto(self, buf):
        d = self._next()
        if d is None:
            return None
        n = min(len(d), len(buf))
        buf[:n] = d[:n]
        return n

    def recv_datagram(self, most):
        d = self._next()
        return None if d is None else bytes(d[:most])

    def write(self, buf):
        if self.fail:
            raise OSError(self.fail)
        self.sent.append(bytes(buf))
        return len(buf)


def new(number, us=0, size=100):
    d = bytearray(size)
    pack_into(">IIIII", d, 0, number & 0xFFFFFFFF, 1000 + us // 1000000, us % 1000000,
              (number >> 32) & 0xFFFFFFFF, 0x08000000)  # fmt: skip
    return d


def receive(datagrams, layout=wire.NEW, wide=True, number=1):
    f = InFlow(1, Sock(datagrams), bytearray(2000), layout, wide, number)
    for _ in range(2 * len(datagrams) + 4):
        if f.step(clock.ticks_add(clock.ticks_us(), 1000000), 0, 1000) == hot.FIN:
            f.fin = True
            break
    return f


def test_both_ends_have_the_same_totals():
    # numbers from 0 (iperf 2.0 and ours): 0 to 9, final -10
    f = receive([new(k) for k in range(10)] + [new(-10)], number=0)
    assert f.fin and f.datagrams == 10
    assert f.iperf_counts() == (0, 0, 10)
    assert f.total(hot.C_BYTES) == 1000
    # numbers from 1 (iperf 2.1): 1 to 9, final -10
    f = receive([new(k) for k in range(1, 10)] + [new(-10)])
    assert f.iperf_counts() == (0, 0, 10)
    assert f.total(hot.C_BYTES) == 1000


def test_what_is_missing_before_the_final_datagram_is_lost():
    f = receive([new(k) for k in range(5)] + [new(-9)], number=0)
    assert f.iperf_counts() == (4, 0, 9)
    f = receive([new(k) for k in range(1, 5)] + [new(-9)])
    assert f.iperf_counts() == (4, 0, 9)


def test_an_impossible_final_number_is_not_taken():
    f = receive([new(k) for k in range(5)] + [new(-(1 << 40))], number=0)
    assert f.fin and f.datagrams is None
    assert f.iperf_counts() == (0, 0, 5)


def test_sign_and_magnitude():
    def old(number):
        d = bytearray(60)
        pack_into(">III", d, 0, number & 0xFFFFFFFF, 1000, 0)
        d[12:16] = b"2345"
        return d

    f = receive([old(k) for k in range(30)] + [old(30 | 0x80000000)], wide=False, number=0)
    assert f.fin and f.iperf_counts() == (0, 0, 30)


def test_numbers_beyond_32_bits_are_no_final_datagrams():
    base = (5 << 32) | 0xFFFFFFF0
    f = receive([new(base + k) for k in range(40)] + [new(-(base + 40))], number=0xFFFFFFF0)
    assert f.fin and f.datagrams == base + 40
    assert f.total(hot.C_LOST) == 0 and f.total(hot.C_OOO) == 0
    assert f.total(hot.C_PKTS) == 41


def test_a_longer_first_datagram():
    """iperf 2.1 with a small -l sends its header whole in the first datagram."""
    f = receive([new(1, size=76)] + [new(k, size=20) for k in range(2, 10)] + [new(-10, size=20)])
    assert f.fin and f.iperf_counts() == (0, 0, 10)
    assert f.total(hot.C_BYTES) == 76 + 9 * 20


def test_sender_without_time_stamps_has_no_jitter():
    f = receive([pack(">I", k) + bytes(60) for k in range(9)], wire.NEW, False, 0)
    assert f.to_dict(1000)["jitter_us"] is None
    f = receive([new(k, us=k * 10) for k in range(9)], number=0)
    assert f.to_dict(1000)["jitter_us"] is not None


def test_the_first_datagram_comes_through_the_listening_socket():
    s = Sock([new(2), new(3), new(-4)])
    f = InFlow(1, s, bytearray(2000), wire.NEW, True, 1)
    f.buf[:100] = new(1)
    f.feed(100)
    for _ in range(4):
        f.step(clock.ticks_add(clock.ticks_us(), 1000000), 0, 1000)
    assert f.iperf_counts() == (0, 0, 4)
    assert f.datagrams == 4


def test_report_is_repeated_until_it_is_quiet():
    f = receive([new(k) for k in range(1, 10)] + [new(-10)])
    s = f.sock
    r = Report(f, 123456)
    assert len(s.sent) == 1 and len(s.sent[0]) == 128
    assert not r.step()
    s.come = [new(-10), new(-11), new(-12)]
    assert not r.step()
    assert len(s.sent) == 4
    assert report.get_report(s.sent[3], 128) == (1000, 123456, 0, 0, 10, f.jitter_us())
    r.heard = clock.ticks_add(clock.ticks_us(), -600000)
    assert r.step()


def test_report_ends_when_the_client_is_gone_or_never_quiet():
    f = receive([new(1), new(-2)])
    r = Report(f, 1)
    f.sock.fail = 111
    assert r.step()
    f.sock.fail = None
    r = Report(f, 1)
    r.begun = clock.ticks_add(clock.ticks_us(), -3100000)
    f.sock.come = [new(-2)]
    assert r.step()


def sender(sock, wide=True):
    f = Flow(1, sock, True, bytearray(100), wire.header(wire.NEW, wide, 0))
    Engine.start  # noqa: B018 - the engine begins flows like this
    f.begin()
    f.step(clock.ticks_add(clock.ticks_us(), 1000000), 0, 7)
    return f


def test_final_datagram_is_sent_until_the_report_comes():
    s = Sock()
    f = sender(s)
    assert len(s.sent) == 7
    h = Fin(f, False, True)
    assert s.sent[7][:4] == pack(">i", -7) and s.sent[7][12:16] == b"\xff\xff\xff\xff"
    assert not h.step()
    assert len(s.sent) == 8  # not before 10 ms
    h.sent = clock.ticks_add(clock.ticks_us(), -10000)
    assert not h.step()
    assert s.sent[8][:4] == s.sent[7][:4] and len(s.sent) == 9
    ack = bytearray(64)
    request.put_ack(ack)
    answer = bytearray(128)
    report.put_report(answer, wire.NEW, 700, 5000, 1, 0, 7, 9)
    s.come = [ack[:28], b"junk", bytes(1470), answer]
    assert h.step()
    stream = f.to_dict(1)
    h.close_books(stream)
    assert stream["peer"] == {"bytes": 700, "us": 5000, "packets": 7, "lost": 1, "ooo": 0, "jitter_us": 9}


def test_final_datagram_gives_up():
    f = sender(Sock())
    h = Fin(f, False, True)
    h.begun = clock.ticks_add(clock.ticks_us(), -2100000)
    assert h.step() and h.report is None
    h = Fin(sender(Sock()), False, True)
    h.sock.fail = 111  # the server has closed
    assert h.step() and h.report is None
    # nobody answers: five copies
    h = Fin(sender(Sock()), False, False)
    for k in range(1, 5):
        assert not h.step()
        h.sent = clock.ticks_add(clock.ticks_us(), -10000)
        assert not h.step() or k == 4
    assert h.step() and len(h.sock.sent) == 7 + 5


def test_time_stamp_of_the_final_datagram_is_new():
    """An old one would count as jitter at the server."""
    s = Sock()
    f = sender(s)
    f.p[hot.P_TICK] = clock.ticks_add(clock.ticks_us(), -3000000)
    f.p[hot.P_USEC] = 999999
    before = s.sent[-1]
    Fin(f, False, True)
    seconds = [d[7] - before[7] for d in s.sent[-1:]]
    assert seconds in ([3], [4], [-253], [-252])


class Endless:
    """The next number each time, without a heap object."""

    def __init__(self):
        self.n = 0
        self.first = new(0)

    def recv_datagram(self, most):
        self.n += 1
        self.first[3] = self.n
        return self.first

    def readinto(self, buf):
        self.n += 1
        buf[3] = self.n & 255
        buf[2] = (self.n >> 8) & 255
        return 100


def test_receiving_allocates_nothing():
    f = InFlow(1, Endless(), bytearray(2000), wire.NEW, True, 1)
    t_end = clock.ticks_add(clock.ticks_us(), 100000000)
    for _ in range(4):
        f.step(t_end, 0, 1)
    if hasattr(gc, "mem_alloc"):
        gc.collect()
        gc.disable()
        try:
            before = gc.mem_alloc()
            for _ in range(1000):
                f.step(t_end, 0, 1)
            assert gc.mem_alloc() == before
        finally:
            gc.enable()
        assert f.total(hot.C_PKTS) == 1004
    assert f.iperf_counts()[:2] == (0, 0)
