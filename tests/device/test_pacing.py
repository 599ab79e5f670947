"""Pacing: the mean rate, no drift, no bursts, stalls counted apart, on any tick period."""

from fakeclock import FakeClock, FakePoller, FakeSock
from iperf import hot
from iperf.engine import Engine
from iperf.flow import Flow, Header


def header():
    return Header(8, -1, 0, 4, -1, 12, 1)


def run(clk, rate, length, seconds, n=1, plan=None, udp=True, cost=2, keep=True):
    with clk:
        flows = []
        for k in range(n):
            sock = FakeSock(clk, cost, plan, keep)
            flows.append(Flow(k + 1, sock, True, bytearray(length), header() if udp else None, rate))
        e = Engine(FakePoller(clk), flows, time_us=int(seconds * 1000000))
        e.run()
        return e, flows


def check_mean(flow, rate, length, us):
    bits = flow.total(hot.C_BYTES) * 8
    want = rate * (us - flow.total(hot.C_STALL)) / 1e6
    allowed = max(want * 0.005, length * 8)
    assert abs(bits - want) <= allowed + 1, (rate, bits, want)


def test_mean_rate_from_100_kbit_to_80_percent():
    # with 3 us a datagram (2 us to send, 1 to look at the clock) 1470 bytes go at 3.9 Gbit/s at most
    for rate, seconds in ((100000, 5), (1048576, 2.5), (1500000, 2.5), (9999999, 1), (100000000, 0.5),
                          (730000000, 0.1), (3000000000, 0.05)):  # fmt: skip
        e, (f,) = run(FakeClock(), rate, 1470, seconds, keep=False)
        check_mean(f, rate, 1470, e.clock.total_us())
        assert f.total(hot.C_STALL) == 0


def test_mean_rate_of_tcp_blocks():
    for rate in (200000, 10000000, 333333333):
        e, (f,) = run(FakeClock(cost=5), rate, 4096, 3, udp=False, keep=False)
        check_mean(f, rate, 4096, e.clock.total_us())


def test_parallel_streams_each_have_the_rate_and_take_turns():
    e, flows = run(FakeClock(), 5000000, 1000, 2, n=3)
    for f in flows:
        check_mean(f, 5000000, 1000, e.clock.total_us())
    first = [f.sock.times[0] for f in flows]
    assert len(set(first)) == 3


def test_no_drift_in_a_long_run():
    _e, (f,) = run(FakeClock(cost=7), 640000, 1000, 60)  # 80 datagrams a second, 12.5 ms apart
    assert abs(f.total(hot.C_PKTS) - 4800) <= 1, f.total(hot.C_PKTS)
    t = f.sock.times
    worst = max(abs(t[k] - t[0] - k * 12500) for k in range(len(t)))
    assert worst < 1000, worst


def test_a_stall_is_not_caught_up():
    clk = FakeClock()

    def plan(k, buf):
        if k == 500:
            clk.now += 50000  # the garbage collector, a Wi-Fi retry …
        return len(buf)

    _, (f,) = run(clk, 11760000, 1470, 2, plan=plan)  # 1 ms apart
    t = f.sock.times
    close = [k for k in range(2, len(t)) if t[k] - t[k - 2] < 1000]
    # after the stall two datagrams may go at once, never three within a gap
    assert len(close) <= 1, [t[k] for k in close]
    stall = f.total(hot.C_STALL)
    assert 48000 <= stall <= 50500, stall
    check_mean(f, 11760000, 1470, 2000000)


def test_many_short_stalls():
    clk = FakeClock()

    def plan(k, buf):
        if k % 10 == 0:
            clk.now += 5000
        return len(buf)

    e, (f,) = run(clk, 11760000, 1470, 2, plan=plan)
    check_mean(f, 11760000, 1470, e.clock.total_us())


def test_wrap_and_periods():
    # micropython#2412, pycom#231: counters of 2**30 (32-bit ports), 2**32 (old ESP) and 2**62 (unix, 64 bit)
    for period in (1 << 30, 1 << 32, 1 << 62):
        for start in (period - 1500, period // 2 - 1500, period - 1000000):
            e, (f,) = run(FakeClock(start, period, 5), 1176000, 1470, 3, keep=False)
            assert abs(e.clock.total_us() - 3000000) < 2000, (period, e.clock.total_us())
            check_mean(f, 1176000, 1470, e.clock.total_us())


def test_longer_than_half_a_period():
    # ticks_diff is right below 537 s only: 20 minutes must be 20 minutes
    e, (f,) = run(FakeClock((1 << 30) - 5000, cost=50), 64000, 1000, 1200, keep=False)
    assert abs(e.clock.total_us() - 1200000000) < 20000, e.clock.total_us()
    assert abs(f.total(hot.C_PKTS) - 9600) <= 1


def test_unlimited_ends_in_time_and_counts():
    e, (f,) = run(FakeClock(), 0, 1470, 0.1, keep=False)
    assert abs(e.clock.total_us() - 100000) < 50
    assert f.total(hot.C_PKTS) == f.sock.calls
    assert f.total(hot.C_BYTES) == 1470 * f.sock.calls


def test_blocked_and_out_of_memory_sends_are_counted():
    clk = FakeClock()

    def plan(k, buf):
        if k % 7 == 3:
            return None
        if k % 7 == 4:
            return OSError(12)
        if k % 7 == 5:
            return OSError(105)
        return len(buf)

    _, (f,) = run(clk, 1000000, 1000, 2, plan=plan)
    assert f.total(hot.C_RETRY) > 5
    assert f.total(hot.C_NOMEM) > 10
    assert f.total(hot.C_BYTES) == 1000 * len(f.sock.times)


def test_other_errors_end_the_run():
    clk = FakeClock()
    try:
        run(clk, 1000000, 1000, 2, plan=lambda k, buf: OSError(104) if k == 5 else len(buf))
    except OSError as e:
        assert e.args[0] == 104
    else:
        assert False, "a reset must not be swallowed"


def test_partial_tcp_sends_are_what_was_taken():
    # MiniMQTT PR#231: the count is the sum of what send took, never of what it was given
    clk = FakeClock()
    took = []

    def plan(k, buf):
        n = 1 + (k * 7919) % len(buf)
        took.append(n)
        return n

    for rate in (0, 5000000):
        took.clear()
        _, (f,) = run(clk, rate, 4096, 0.5, plan=plan, udp=False)
        assert f.total(hot.C_BYTES) == sum(took)
        assert f.total(hot.C_RETRY) > 0
