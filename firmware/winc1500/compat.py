"""What MicroPython has and CPython lacks, so that one source runs on both."""

import time

try:
    from time import sleep_ms, sleep_us, ticks_diff, ticks_ms, ticks_us

    from micropython import const
except ImportError:

    def const(x):
        return x

    def ticks_ms():
        return time.monotonic_ns() // 1000000

    def ticks_us():
        return time.monotonic_ns() // 1000

    def ticks_diff(a, b):
        return a - b

    def sleep_ms(n):
        time.sleep(n / 1000)

    def sleep_us(n):
        time.sleep(n / 1000000)


__all__ = ("const", "sleep_ms", "sleep_us", "ticks_diff", "ticks_ms", "ticks_us")
