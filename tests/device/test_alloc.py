"""The hot loop allocates nothing (field cases M9, M10). Under CPython only the behaviour is run."""

import gc

from iperf import clock, hot, hot_paced, layers
from iperf.engine import Engine
from iperf.flow import Flow, Header

MP = hasattr(gc, "mem_alloc")


class Sock:
    """Takes or gives everything; every `block`-th call would block."""

    def __init__(self, block=0):
        self.block = block
        self.calls = 0
        self.ready = 0

    def write(self, buf):
        self.calls += 1
        if self.block and self.calls % self.block == 0:
            return None
        return len(buf)

    readinto = write


class Poller:
    def register(self, sock, flags):
        pass

    def modify(self, sock, flags):
        pass

    def unregister(self, sock):
        pass

    def wait(self, ms):
        pass


def allocated(work, calls_of, at_least):
    """Heap bytes taken while `work()` is repeated until `at_least` calls were made."""
    work()
    gc.collect()
    gc.disable()
    try:
        n0 = calls_of()
        before = gc.mem_alloc() if MP else 0
        while calls_of() - n0 < at_least:
            work()
        after = gc.mem_alloc() if MP else 0
    finally:
        gc.enable()
    return after - before


def check(sender, header, rate, block, preset=0, sock=None, quota=0):
    sock = sock or Sock(block)
    f = Flow(1, sock, sender, bytearray(64), header, rate)
    f.quota = quota
    for i in range(hot.C_LEN):
        f.lo[i] = preset
    e = Engine(Poller(), [f], time_us=0, interval_us=50000, rows=16)
    e.start()
    used = allocated(e.slice, lambda: sock.calls, 1000)
    assert used == 0, (used, sender, rate, block)
    if preset:
        assert f.total(hot.C_BYTES) > preset


V3 = (12, 8, 0, 4, -1, 16, 1)


def test_tcp_send():
    check(True, None, 0, 0)
    check(True, None, 0, 5)


def test_tcp_receive():
    check(False, None, 0, 0)
    check(False, None, 0, 5)


def test_udp_send():
    check(True, Header(*V3), 0, 0)
    check(True, Header(*V3), 0, 5)


def test_udp_receive():
    check(False, Header(*V3), 0, 0)
    check(False, Header(*V3), 0, 5)


def test_paced():
    check(True, Header(*V3), 20000000, 0)
    check(True, Header(*V3), 20000000, 5)
    check(True, None, 20000000, 7)


def test_counters_just_under_two_to_the_30():
    # hi * 2**29 + lo: neither part may leave 31 bits when the total does
    for preset in ((1 << 29) - 200, (1 << 29) - 1):
        check(True, None, 0, 0, preset)
        check(False, Header(*V3), 0, 3, preset)


def test_paced_through_stalls_with_counters_just_under_two_to_the_30():
    class Stalls(Sock):
        def write(self, buf):
            if self.calls % 50 == 0:
                clock.sleep_us(2000)  # 25 us a datagram: far more than two gaps
            return Sock.write(self, buf)

    for block in (0, 5):
        check(True, Header(*V3), 20000000, block, (1 << 29) - 200, Stalls(block))
        check(True, None, 20000000, block, (1 << 29) - 200, Stalls(block))


def test_quota_beyond_two_to_the_30():
    check(True, None, 0, 5, (1 << 29) - 200, None, 5 << 30)
    f = Flow(1, Sock(), True, bytearray(8), None, 0)
    f.quota = (3 << 30) + 17
    f.begin()
    for hi, lo, left in ((0, 0, (1 << 29) - 1), (5, 100, (1 << 29) - 83), (6, 0, 17), (6, 17, 0), (6, 18, 0)):
        f.hi[hot.C_BYTES], f.lo[hot.C_BYTES] = hi, lo
        assert f.to_go() == left, (hi, lo, f.to_go())


def test_share_of_a_long_gap():
    # a block of 128 KiB at 1 Mbit/s is due every second: taken in part, and no float for it
    for gap, n, size in ((1048576, 1, 131072), (1048576, 131071, 131072), (70000, 3000, 4096), (100, 1, 3)):
        used = allocated(lambda: hot_paced._share(gap, n, size), Calls(), 20)  # noqa: B023
        assert used == 0, used
        exact = gap * n // size
        assert abs(hot_paced._share(gap, n, size) - exact) <= gap // 16384 + 1


class Calls:
    """Counts how often it was asked."""

    n = 0

    def __call__(self):
        self.n += 1
        return self.n


def test_counters_cross_many_times():
    f = Flow(1, Sock(), True, bytearray(8), None, 0)
    for _ in range(10):
        f.c[hot.C_BYTES] = 0x1FFFFFFF
        f.fold()
    assert f.total(hot.C_BYTES) == 10 * 0x1FFFFFFF
    assert f.lo[hot.C_BYTES] < 1 << 29


def test_1000_sends_on_a_real_socket():
    layer = layers.get("socket")
    server = layer.udp_bind("127.0.0.1", PORT, {})
    sock = layer.udp_connect("127.0.0.1", PORT, {})
    try:
        f = Flow(1, sock, True, bytearray(64), Header(*V3), 0)
        p = layer.Poller()
        e = Engine(p, [f], time_us=0, interval_us=20000, rows=16)
        e.start()
        used = allocated(e.slice, lambda: f.total(hot.C_PKTS), 1000)
        assert used == 0 or not MP, used
        if not MP:
            assert f.total(hot.C_PKTS) >= 1000
    finally:
        sock.close()
        server.close()


def test_time_stamp_and_number_are_right_at_the_carries():
    for bits64, first in ((False, 0xFFFFFF - 1), (True, 0xFFFFFFFF - 1)):
        h = Header(12, 8, 0, 4, -1, 16, 1) if bits64 else Header(8, -1, 0, 4, -1, 12, 1)
        seen = []

        class Keep(Sock):
            def write(self, buf, seen=seen):
                seen.append(bytes(buf[:16]))
                return len(buf)

        f = Flow(1, Keep(), True, bytearray(32), h, 0)
        f.begin()
        for k in range(4):
            f.buf[h.o[hot.O_ID] - k] = (first >> (8 * k)) & 255
        f.buf[3] = 255  # seconds …00ff: the next second carries
        f.p[hot.P_USEC] = 999999
        clock.sleep_us(10)
        f.ops = 4
        f.step(clock.ticks_add(clock.ticks_us(), 1000000), 0, 4)
        at = 8
        n = 8 if bits64 else 4
        got = [int.from_bytes(s[at : at + n], "big") for s in seen]
        assert got == [first, first + 1, first + 2, first + 3], got
        assert seen[0][3] == 0
        assert int.from_bytes(seen[0][4:8], "big") < 1000000


PORT = 35201
