"""Time for MicroPython and CPython alike, safe across a wrap of the tick counter.

Tests replace `ticks_us` and `ticks_diff` in this module by a fake clock; every user
therefore looks them up here at the start of a call and never keeps them across calls.
"""

import time

try:
    from time import sleep_ms, sleep_us, ticks_diff, ticks_us
except ImportError:  # CPython: the same interface, with the 2**30 period of a 32-bit port
    _PERIOD = 1 << 30

    def ticks_us():
        return (time.perf_counter_ns() // 1000) & (_PERIOD - 1)

    def ticks_diff(a, b):
        return ((a - b + (_PERIOD >> 1)) & (_PERIOD - 1)) - (_PERIOD >> 1)

    def sleep_ms(ms):
        time.sleep(ms / 1000)

    def sleep_us(us):
        time.sleep(us / 1000000)


# Ports without an RTC set by the host count from 2000; the wire wants 1970.
_EPOCH_2000 = 946684800


def ticks_add(t, us):
    """t + us as ticks_diff understands it (us may be negative), on any tick period."""
    try:
        return time.ticks_add(t, us)
    except AttributeError:
        return (t + us) & ((1 << 30) - 1)


def wall_us():
    """Seconds and microseconds since 1970 by the board's clock, as (s, us)."""
    try:
        ns = time.time_ns()
        s = ns // 1000000000
        us = ns // 1000 % 1000000
    except AttributeError:
        s = int(time.time())
        us = 0
    if time.gmtime(0)[0] == 2000:
        s += _EPOCH_2000
    return s, us


class Elapsed:
    """Time since `start()`, right beyond half a tick period as long as `update` is called within it.

    Kept as whole seconds `s` and microseconds `us` (< 1,000,000), both small integers, so that
    an update allocates nothing on a 32-bit port.
    """

    def __init__(self):
        self.start()

    def start(self):
        self.last = ticks_us()
        self.s = 0
        self.us = 0

    def update(self):
        """Take the clock's progress in; returns the current tick."""
        t = ticks_us()
        d = ticks_diff(t, self.last)
        if d > 0:
            d += self.us
            if d >= 1000000:
                self.s += d // 1000000
                d %= 1000000
            self.us = d
            self.last = t
        return t

    def total_us(self):
        """Microseconds as one integer (may be a big one: not for the hot loop)."""
        return self.s * 1000000 + self.us

    def until(self, s, us, cap):
        """Microseconds from the last update to the moment (s, us) of this clock, within -1 … cap."""
        ds = s - self.s
        if ds > 500:
            return cap
        d = ds * 1000000 + us - self.us
        if d < 0:
            return -1
        return d if d < cap else cap
