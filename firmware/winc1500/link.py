"""SPI calls, counted, and the views that make them free of allocation. frames.py works over it."""

from .compat import ticks_diff, ticks_us
from .errors import BusError


class Link:
    """Buffers of one SPI, and views of them by length: a slice in the hot path would be an allocation.

    out  what is sent: F3, header, control block, zeros for the answer, the next frame (size bytes)
    msg  where the start of a message is read to (small bytes)
    """

    def __init__(self, spi, cs, size, small):
        self.spi = spi
        self.cs = cs
        self.out = bytearray(size)
        self.msg = bytearray(small)
        self._rx = bytearray(size)
        self._x = bytearray(16)  # _more takes up to 9 at once
        self._outv = {}
        self._msgv = {}
        self._rxv = {}
        self._xv = {}
        self._tails = [None] * 10  # views of a caller's buffer: buffer, end, from 0, from 1, ...
        self._tails2 = [None] * 10  # of the one before
        self._buf = self._rx  # where the running answer is; self._n its end
        self._n = 0
        self.seen = 0
        self.clear()

    def clear(self):
        self.calls = 0
        self.bytes = 0
        self.us = 0
        self.ops = 0
        self.resyncs = 0
        self.retries = 0

    def _view(self, views, buf, n):
        v = views.get(n)
        if v is None:
            v = views[n] = memoryview(buf)[:n]
        return v

    def _exchange(self, views, buf, n):
        """Clock buf[:n] out and the answer into the current buffer."""
        into = self._buf
        rv = self._msgv if into is self.msg else self._rxv
        t = self._view(views, buf, n)
        r = self._view(rv, into, n)
        t0 = ticks_us()
        self.spi.write_readinto(t, r)
        self.us += ticks_diff(ticks_us(), t0)
        self.calls += 1
        self.bytes += n
        self._n = n

    def _more(self, n):
        """Clock n further zeros; the answer is appended to the current buffer."""
        into = self._buf
        end = self._n
        if end + n > len(into):
            raise BusError("SPI: answer too long", self.seen)
        v = self._view(self._xv, self._x, n)
        self._readinto(v, n)
        x = self._x
        for i in range(n):
            into[end + i] = x[i]
        self._n = end + n

    def _readinto(self, view, n):
        t0 = ticks_us()
        self.spi.readinto(view, 0)
        self.us += ticks_diff(ticks_us(), t0)
        self.calls += 1
        self.bytes += n

    def _write_out(self, view, n):
        t0 = ticks_us()
        self.spi.write(view)
        self.us += ticks_diff(ticks_us(), t0)
        self.calls += 1
        self.bytes += n

    def _tail(self, buf, start, end):
        """buf[start:end] as a view, kept for the last two pairs of buffer and end and each short start."""
        if not start and end == len(buf):
            return buf
        t = self._tails
        if t[0] is not buf or t[1] != end:
            u = self._tails2
            self._tails2 = t
            self._tails = t = u
            if t[0] is not buf or t[1] != end:
                t[0] = buf
                t[1] = end
                for i in range(2, 10):
                    t[i] = None
        if start > 7:
            return memoryview(buf)[start:end]
        v = t[2 + start]
        if v is None:
            v = t[2 + start] = memoryview(buf)[start:end]
        return v

    def forget(self):
        """Drop the views of callers' buffers."""
        for i in range(10):
            self._tails[i] = self._tails2[i] = None
