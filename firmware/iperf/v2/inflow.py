"""A received stream of iPerf 2 datagrams."""

import sys
from struct import unpack_from

from iperf import clock, hot
from iperf.flow import Flow
from iperf.v2 import layouts

_ID_MASK = 0x1FFFFFFF  # sequence numbers as hot.py counts them
_ID_JUMP = 0x01000000

# MicroPython's readinto goes on until the buffer is full: it must have exactly the datagrams' length
_EXACT = sys.implementation.name == "micropython"


class InFlow(Flow):
    """A received stream of datagrams.

    buf     takes the largest datagram; the streams of a server share it
    number  of the first datagram (its low word); the sender counts from 0 (iperf 2.0) or from 1
    answer  True when the sender waits for a server report after its final datagram
    """

    def __init__(self, id, sock, buf, layout, wide, number=1, answer=True):
        Flow.__init__(self, id, sock, False, buf, layouts.header(layout, wide, 1 if number else 0))
        self.layout = layout
        self.answer = answer
        self.datagrams = None  # what the final datagram said
        if number > _ID_JUMP:
            self.u[hot.U_EXP] = number & _ID_MASK  # the server was started in the middle of the test
        self.big = buf
        self.learn = 2  # datagrams to take one by one, until their length is known
        self._first_len = 0
        self._stamp = None

    def feed(self, n):
        """Take in the datagram of n bytes that is in the buffer already."""
        readinto = self._readinto
        self._readinto = _Once(n).readinto
        self.learn -= 1
        try:
            return self._step(clock.ticks_us(), 0, 1)
        finally:
            self._readinto = readinto
            if self.learn == 0 and _EXACT:
                # iperf 2.1's first one may be longer than the rest (a small -l)
                self.buf = memoryview(self.big)[: max(n, self.header.o[hot.O_LEN])]

    def step(self, t_end, spin, ops):
        if self.learn <= 0:
            return self._step(t_end, spin, ops)
        try:
            data = self.sock.recv_datagram(len(self.big))
        except OSError as e:
            self.code = hot.failed(e, self.c)
            self.fold()
            return self.code
        if data is None:
            self.code = hot.BLOCK
            return hot.BLOCK
        n = len(data)
        self.big[:n] = data
        return self.feed(n)

    def _step(self, t_end, spin, ops):
        k = Flow.step(self, t_end, spin, ops)
        if self._stamp is None and self.u[hot.U_SEEN]:
            self._stamp = (self.u[hot.U_SEC], self.u[hot.U_USEC])
            self._first_len = self.total(hot.C_BYTES)
        if k == hot.FIN:
            self._fin()
        return k

    def _fin(self):
        """The final datagram is in the buffer: what is missing before it is lost. Of a stream that began
        at 0 iperf counts all bytes but the first datagram's, so that both ends' totals are the same."""
        first = self.header.first
        n = fin_number(self.buf, self.header.o, self.total(hot.C_SPAN) + first)
        gap = (n - self.u[hot.U_EXP]) & _ID_MASK
        c = self.c
        if gap <= _ID_JUMP:
            c[hot.C_LOST] += gap
            c[hot.C_SPAN] += gap
            self.datagrams = n
        if first:
            c[hot.C_PKTS] += 1
            c[hot.C_SPAN] += 1
        else:
            c[hot.C_BYTES] -= self._first_len
        self.fold()

    def seen(self):
        """True after the first datagram."""
        return bool(self.u[hot.U_SEEN])

    def stamped(self):
        """False for a sender without time stamps (ESP-IDF): its jitter is not known."""
        u = self.u
        return not (self.total(hot.C_PKTS) > 2 and self._stamp == (u[hot.U_SEC], u[hot.U_USEC]))

    def iperf_counts(self):
        """(lost, out of order, datagrams) as iperf counts and prints them: a duplicate is out of order and
        hides one loss."""
        t = self.total
        lost = t(hot.C_LOST) - t(hot.C_DUP)
        return max(0, lost), t(hot.C_OOO) + t(hot.C_DUP), t(hot.C_SPAN)

    def silent_us(self):
        """Microseconds since its last datagram (right up to half a tick period)."""
        return clock.ticks_diff(clock.ticks_us(), self.u[hot.U_TICK])

    def to_dict(self, us):
        d = Flow.to_dict(self, us)
        if not self.stamped():
            d["jitter_us"] = None
        return d


def fin_number(buf, o, expected):
    """The number of datagrams that the final datagram in buf says. Without a wide number the two ways
    to write it are told apart by which one is nearer to `expected`."""
    low = unpack_from(">I", buf, 0)[0]
    if o[1] >= 0:
        n = unpack_from(">I", buf, 12)[0] << 32 | low
        return (1 << 64) - n
    twos = (1 << 32) - low
    magnitude = low & 0x7FFFFFFF
    return twos if abs(twos - expected) <= abs(magnitude - expected) else magnitude


class _Once:
    """Stands for a socket with one datagram, which is in the buffer already."""

    def __init__(self, n):
        self.n = n

    def readinto(self, buf):
        n, self.n = self.n, None
        return n
