"""A clock that tests turn by hand, put in the place of iperf.clock's functions."""

from iperf import clock

_NAMES = ("ticks_us", "ticks_diff", "ticks_add", "sleep_us", "sleep_ms")


class FakeClock:
    """`now` is true time in microseconds; the tick counter shows it modulo `period`.
    Each look at the clock costs `cost` microseconds, so that waiting loops come to an end."""

    def __init__(self, start=0, period=1 << 30, cost=1):
        self.now = start
        self.period = period
        self.cost = cost
        self.kept = None

    def ticks_us(self):
        self.now += self.cost
        return self.now % self.period

    def ticks_diff(self, a, b):
        half = self.period // 2
        return (a - b + half) % self.period - half

    def ticks_add(self, t, us):
        return (t + us) % self.period

    def sleep_us(self, us):
        self.now += us

    def sleep_ms(self, ms):
        self.now += ms * 1000

    def __enter__(self):
        self.kept = [getattr(clock, n) for n in _NAMES]
        for n in _NAMES:
            setattr(clock, n, getattr(self, n))
        return self

    def __exit__(self, *a):
        for n, f in zip(_NAMES, self.kept):
            setattr(clock, n, f)


class FakePoller:
    """A poller that only lets time pass."""

    def __init__(self, clk):
        self.clk = clk

    def register(self, sock, flags):
        sock.ready = 0

    def modify(self, sock, flags):
        pass

    def unregister(self, sock):
        pass

    def wait(self, ms):
        self.clk.now += ms * 1000


class FakeSock:
    """A socket that takes everything, in `cost` microseconds, and notes when.

    With `keep`, `times` holds when each write was taken. `plan(k, buf)` may say what happens to
    write k: None = it would block, a number of bytes, or an OSError to raise; it may also turn
    the clock.
    """

    def __init__(self, clk, cost=2, plan=None, keep=True):
        self.keep = keep
        self.clk = clk
        self.cost = cost
        self.plan = plan
        self.times = []
        self.calls = 0
        self.ready = 0

    def write(self, buf):
        k = self.calls
        self.calls += 1
        n = len(buf)
        if self.plan is not None:
            n = self.plan(k, buf)
            if isinstance(n, OSError):
                raise n
        if n is not None:
            if self.keep:
                self.times.append(self.clk.now)
            self.clk.now += self.cost
        return n
