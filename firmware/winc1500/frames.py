"""Frames and answers of the SPI protocol, one attempt each (fact sheet 2.1-2.6).

One SPI call carries a whole register operation: the frame, and as many zeros as the answer is
expected to need. The chip puts a variable number of zero bytes before an echo and before data
(sheet 2.3), so the driver remembers the longest filler of the last operations and clocks that many
bytes more; a short guess costs a further call, a long one some zero bytes that the chip skips (sheet
9.2 rule 2). After a block write's command that does not hold, since the chip then waits for data (rule
6): there the guess is the shortest filler. `overread=False` never clocks a byte too many.

Nothing here allocates once the first packets have gone through.
"""

from .compat import const
from .errors import BusError
from .link import Link

_DMA_WRITE = const(0xC7)
_DMA_READ = const(0xC8)
_REG_WRITE = const(0xC9)
_REG_READ = const(0xCA)
_CLK_WRITE = const(0xC3)
_CLK_READ = const(0xC4)
_CLOCKLESS = const(0x30)  # registers up to here work with the chip's clocks stopped (sheet 2.1)
_ZEROS = const(16)  # filler allowed before echo or data; the vendor's reader gives up at 10 (2.3)
_WINDOW = const(63)  # operations after which the guess of the filler may shrink
SMALL = const(24)  # bytes of a message that read_small() can hold: HIF header and a receive reply
OUT_MAX = const(24)  # header and longest control block that goes with it: a send's (sheet 5.6)


def crc7(buf, n):
    """CRC7 of buf[:n] as it goes on the wire: polynomial 0x09, start 0x7F, shifted left (sheet 2.2)."""
    crc = 0x7F
    for i in range(n):
        b = buf[i]
        for k in range(7, -1, -1):
            if (b >> k ^ crc >> 6) & 1:
                crc = (crc << 1 ^ 0x09) & 0x7F
            else:
                crc = crc << 1 & 0x7F
    return crc << 1


class Frames(Link):
    """One attempt of each operation; raises BusError when the answer is not what it should be."""

    def __init__(self, spi, cs=None, overread=True):
        super().__init__(spi, cs, 1 + OUT_MAX + 3 + 7 + 2 + _ZEROS, 7 + 2 + 1 + SMALL + 2 * _ZEROS)
        self.overread = overread
        self.crc = True  # the chip's state after a hardware reset (sheet 2.4)
        self._w = bytearray(9 + 2 + _ZEROS)
        self._r = bytearray(5 + 3 + 6 + 2 * _ZEROS)
        self._b = bytearray(len(self.msg))
        self._f3 = b"\xf3"
        self._cf = b"\xcf\xff\xff\xff"
        self._pair = bytearray(2)
        self._wv = {}
        self._rv = {}
        self._bv = {}
        self._p = 0  # cursor in the running answer
        self._fe = 0  # expected filler before the echo
        self._fx = 0  # and before data
        self._fl = 0  # the least filler before an echo
        self._fe_max = 0
        self._fx_max = 0
        self._fe_min = 0
        self._fe_min2 = 0  # in the window before
        self.late = False  # an echo of the last operation had more filler than any before it

    # --- parsing of the answer ---

    def _begin(self):
        self.late = False
        self.ops += 1
        if not self.ops & _WINDOW:
            if self.overread:
                self._fe = self._fe_max
                self._fx = self._fx_max
                self._fl = self._fe_min if self._fe_min < self._fe_min2 else self._fe_min2
            self._fe_max = self._fx_max = 0
            self._fe_min2 = self._fe_min
            self._fe_min = _ZEROS
        if self.cs is not None:
            self.cs(0)

    def _end(self):
        if self.cs is not None:
            self.cs(1)

    def _echo(self, cmd, rest=0):
        """Step over filler, the echo of `cmd` and its state byte (sheet 2.3).

        `rest`: bytes that follow for certain, so that a short guess costs one call.
        """
        buf = self._buf
        p = self._p
        zeros = 0
        while True:
            if p >= self._n:
                self._more(2 + rest)
            b = buf[p]
            p += 1
            if b == cmd:
                break
            self.seen = b
            zeros += 1
            if b or zeros > _ZEROS:
                raise BusError("SPI: no echo of command %02X (got %02X)" % (cmd, b), b)
        if p >= self._n:
            self._more(1 + rest)
        b = buf[p]
        self._p = p + 1
        if b & 0x0F:
            raise BusError("SPI: chip answered command %02X with state %02X" % (cmd, b), self.seen, b)
        if zeros < self._fe_min:
            self._fe_min = zeros
            if zeros < self._fl:
                self._fl = zeros
        if zeros > self._fe_max and zeros > self._fe:
            self.late = True
        if zeros > self._fe_max:
            self._fe_max = zeros
            if zeros > self._fe and self.overread:
                self._fe = zeros

    def _mark(self, rest=0):
        """Step over filler and the 0xFx byte in front of data; `rest` as in `_echo`."""
        buf = self._buf
        p = self._p
        zeros = 0
        while True:
            if p >= self._n:
                self._more(1 + rest)
            b = buf[p]
            p += 1
            if b & 0xF0 == 0xF0:
                break
            self.seen = b
            zeros += 1
            if b or zeros > _ZEROS:
                raise BusError("SPI: no data after a read (got %02X)" % b, b)
        self._p = p
        if zeros > self._fx_max:
            self._fx_max = zeros
            if zeros > self._fx and self.overread:
                self._fx = zeros

    def _need(self, n):
        """See to it that n bytes stand after the cursor."""
        n -= self._n - self._p
        while n > 0:
            k = n if n < 16 else 16
            self._more(k)
            n -= k

    # --- one attempt of each operation ---

    def _read(self, addr):
        t = self._r
        n = 4
        tail = 4
        if addr > _CLOCKLESS:
            t[0] = _REG_READ
            t[1] = addr >> 16
            t[2] = addr >> 8 & 0xFF
            t[3] = addr & 0xFF
        else:
            t[0] = _CLK_READ
            t[1] = 0x80
            t[2] = addr
            t[3] = 0
        t[4] = 0
        if self.crc:
            t[4] = crc7(t, 4)
            n = 5
            if addr > _CLOCKLESS:
                tail = 6  # CRC16 follows the data; it is swallowed, not checked (sheet 2.2)
        self._begin()
        try:
            self._buf = buf = self._rx
            self._p = n
            self._exchange(self._rv, t, n + 3 + tail + self._fe + self._fx)
            self._echo(t[0], 1 + tail)
            self._mark(tail)
            self._need(tail)
        finally:
            self._end()
        p = self._p
        return buf[p] | buf[p + 1] << 8 | buf[p + 2] << 16 | buf[p + 3] << 24

    def _write(self, addr, value, answer=True):
        t = self._w
        if addr > _CLOCKLESS:
            t[0] = _REG_WRITE
            t[1] = addr >> 16
            t[2] = addr >> 8 & 0xFF
            t[3] = addr & 0xFF
            n = 4
        else:
            t[0] = _CLK_WRITE
            t[1] = 0x80
            t[2] = addr
            n = 3
        t[n] = value >> 24 & 0xFF
        t[n + 1] = value >> 16 & 0xFF
        t[n + 2] = value >> 8 & 0xFF
        t[n + 3] = value & 0xFF
        n += 4
        t[n] = t[8] = 0
        if self.crc:
            t[n] = crc7(t, n)
            n += 1
        self._begin()
        try:
            self._buf = self._rx
            self._p = n
            self._exchange(self._wv, t, n + 2 + self._fe if answer else n)
            # The answer to a clockless write can be garbage (sheet 2.3): not looked at.
            if answer and addr > _CLOCKLESS:
                self._echo(_REG_WRITE)
        finally:
            self._end()

    def _frame(self, t, i, cmd, addr, n):
        """Put the 7 bytes of a block command at t[i:]."""
        t[i] = cmd
        t[i + 1] = addr >> 16 & 0xFF
        t[i + 2] = addr >> 8 & 0xFF
        t[i + 3] = addr & 0xFF
        t[i + 4] = 0
        t[i + 5] = n >> 8
        t[i + 6] = n & 0xFF

    def _stored(self, buf, p):
        """The answer to a block that was written: one filler byte, then C3 00 (sheet 2.3, CRC off)."""
        if buf[p + 1] != 0xC3 or buf[p + 2]:
            self.seen = buf[p + 1]
            raise BusError("SPI: block not taken (got %02X %02X)" % (buf[p + 1], buf[p + 2]), buf[p + 1])

    def _write_message(self, addr, n, data, size, where):
        b = self._b
        o = self.out
        rx = self._rx
        self._begin()
        try:
            self._buf = rx
            self._frame(b, 0, _DMA_WRITE, addr, n)
            self._p = 7
            self._exchange(self._bv, b, 9 + self._fl)
            self._echo(_DMA_WRITE)
            o[0] = 0xF3
            m = n + 4
            for i in range(n + 1, n + 11):  # zeros while the answer comes; a longer message was here
                o[i] = 0
            if data is None:
                self._exchange(self._outv, o, m)
                self._stored(rx, m - 3)
                return
            # The answer to the first block and the command of the second share a call: the second is
            # given data only after the first was seen to be stored.
            self.ops += 1
            self._frame(o, m, _DMA_WRITE, where, size)
            self._exchange(self._outv, o, m + 9 + self._fl)
            self._stored(rx, m - 3)
            self._p = m + 7
            self._echo(_DMA_WRITE)
            self._write_out(self._f3, 1)
            self._write_out(data, size)
            x = self._x
            self._readinto(self._view(self._xv, x, 3), 3)
            self._stored(x, 0)
        finally:
            self._end()

    def _read_block(self, addr, view, n):
        b = self._b
        small = view is None
        self._begin()
        try:
            self._frame(b, 0, _DMA_READ, addr, n)
            self._buf = buf = self.msg if small else self._rx
            self._p = 7
            m = 10 + self._fe + self._fx
            self._exchange(self._bv, b, m + n if small else m)
            rest = n if small and n < 6 else 6 if small else 0
            self._echo(_DMA_READ, 1 + rest)
            self._mark(rest)
            p = self._p
            if small:
                self._need(n)
                return p
            k = self._n - p  # a long guess of the filler has read the first bytes of the data
            if k > n:
                k = n
            for i in range(k):
                view[i] = buf[p + i]
            if k < n:
                self._readinto(self._tail(view, k, n), n - k)
            return n
        finally:
            self._end()
