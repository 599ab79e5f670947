"""SPI protocol of the ATWINC15x0: registers, blocks, CRC7, resynchronising (fact sheet, section 2).

One SPI call carries a whole register operation: the frame, and as many zeros as the answer is
expected to need. The chip puts a variable number of zero bytes before an echo and before data
(sheet 2.3), so the driver remembers the longest filler of the last operations and clocks that many
bytes more; a short guess costs a further call, a long one some zero bytes that the chip skips (sheet
9.2 rule 2). After a block write's command that does not hold, since the chip then waits for data (rule
6): there the guess is the shortest filler. `overread=False` never clocks a byte too many.

Nothing here allocates once the first packets have gone through.
"""

from .compat import const, sleep_ms, ticks_diff, ticks_us
from .errors import BusError

CONFIG = const(0xE824)  # SPI protocol register (sheet 2.4)
CONFIG_FAST = const(0x52)  # 8 KiB packets, both CRCs off

_DMA_WRITE = const(0xC7)
_DMA_READ = const(0xC8)
_REG_WRITE = const(0xC9)
_REG_READ = const(0xCA)
_CLK_WRITE = const(0xC3)
_CLK_READ = const(0xC4)
_RESET = const(0xCF)
_CLOCKLESS = const(0x30)  # registers up to here work with the chip's clocks stopped (sheet 2.1)

_TRIES = const(5)  # of one operation, with a CF between (the vendor makes 10; sheet 2.7)
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


class Bus:
    """The one owner of SPI and chip select.

    spi  an initialised machine.SPI: mode 0, MSB first (sheet 1)
    cs   a machine.Pin, active low, or None when the SPI drives it

    Counters (all since `clear()`): calls (SPI calls), bytes (clocked), us (time inside the SPI
    calls), ops (protocol operations), resyncs (CF frames after a failure), retries (operations repeated).
    """

    def __init__(self, spi, cs=None, overread=True):
        self.spi = spi
        self.cs = cs
        self.overread = overread
        self.crc = True  # the chip's state after a hardware reset (sheet 2.4)
        self.out = bytearray(1 + OUT_MAX + 3 + 7 + 2 + _ZEROS)  # F3, header, control, answer, next frame
        self.msg = bytearray(7 + 2 + 1 + SMALL + 2 * _ZEROS)
        self._rx = bytearray(len(self.out))
        self._w = bytearray(9 + 2 + _ZEROS)
        self._r = bytearray(5 + 3 + 6 + 2 * _ZEROS)
        self._b = bytearray(len(self.msg))
        self._x = bytearray(16)  # _more takes up to 9 at once
        self._f3 = b"\xf3"
        self._cf = b"\xcf\xff\xff\xff"
        self._pair = bytearray(2)
        # Views by length, made once: a slice in the hot path would be an allocation.
        self._outv = {}
        self._msgv = {}
        self._rxv = {}
        self._wv = {}
        self._rv = {}
        self._bv = {}
        self._xv = {}
        self._tails = [None] * 10  # views of a caller's buffer: buffer, end, from 0, from 1, ...
        self._tails2 = [None] * 10  # of the one before
        self._buf = self._rx  # where the running answer is; self._p its cursor, self._n its end
        self._p = 0
        self._n = 0
        self._fe = 0  # expected filler before the echo
        self._fx = 0  # and before data
        self._fl = 0  # the least filler before an echo
        self._fe_max = 0
        self._fx_max = 0
        self._fe_min = 0
        self._fe_min2 = 0  # in the window before
        self.seen = 0
        self.late = False  # an echo of the last operation had more filler than any before it
        self.clear()

    def clear(self):
        self.calls = 0
        self.bytes = 0
        self.us = 0
        self.ops = 0
        self.resyncs = 0
        self.retries = 0

    # --- SPI calls, counted ---

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

    # --- with retries ---

    def read(self, addr):
        """Value of the register at `addr` (unsigned, 32 bit). Raises BusError."""
        k = 0
        while True:
            try:
                v = self._read(addr)
                if not self._once_more(k):
                    return v
            except BusError:
                self._again(k)
            k += 1

    def write(self, addr, value):
        """Write a register whose write may be repeated without harm. Raises BusError."""
        k = 0
        while True:
            try:
                self._write(addr, value)
                if not self._once_more(k):
                    return
            except BusError:
                self._again(k)
            k += 1

    def write_once(self, addr, value):
        """Write a register with a side effect: False when it is not known whether it was written.

        The link is synchronised again then; the caller looks at the chip before it repeats (sheet 2.7).
        """
        try:
            self._write(addr, value)
            return not self.late
        except BusError:
            self._again(0)
            return False

    def write_mute(self, addr, value):
        """Write a register to which the chip gives no answer: the global reset (sheet 2.7)."""
        self._write(addr, value, False)

    def write_message(self, addr, n, data=None, size=0, where=0):
        """Write out[1:1+n] to `addr` and, when given, data (size bytes, as it is) to `where`.

        Both n and size are at least 2: the chip cannot do 1 (sheet 2.6). Raises BusError.
        """
        k = 0
        while True:
            try:
                self._write_message(addr, n, data, size, where)
                if not self._once_more(k):
                    return
            except BusError:
                self._again(k)
            k += 1

    def read_small(self, addr, n):
        """Read 2 <= n <= SMALL bytes into `msg`; returns the index of the first. Raises BusError."""
        k = 0
        while True:
            try:
                p = self._read_block(addr, None, n)
                if not self._once_more(k):
                    return p
            except BusError:
                self._again(k)
            k += 1

    def read_into(self, addr, view, n):
        """Read n >= 2 bytes into view[:n], in place. Raises BusError."""
        k = 0
        while True:
            try:
                self._read_block(addr, view, n)
                if not self._once_more(k):
                    return
            except BusError:
                self._again(k)
            k += 1

    def _once_more(self, k):
        """Whether an operation that has succeeded is in doubt: a frame that lost a byte on the way is
        complete, and wrong, one zero later, which looks like filler that is longer than ever before."""
        if not self.late or k >= _TRIES - 1:
            return False
        self.late = False
        return True

    def _again(self, k):
        """After an operation has failed k times before: synchronise, or give up with a readable error."""
        if k >= _TRIES - 1:
            raise BusError(self._why(), self.seen)
        self.retries += 1
        self.resync(k == _TRIES - 2)

    def _why(self):
        if self.seen == 0 or self.seen == 0xFF:
            return (
                "no answer from the module: MISO stays at %02X; check power, CHIP_EN, RESET_N, that SPI_CFG"
                " is high, the CS and MISO wires; then reset it: active(False), active(True)" % self.seen
            )
        return (
            "garbled answers from the module (%02X); check SPI mode 0, a lower clock, short wires"
            % self.seen
        )

    def resync(self, flush=False):
        """Reset the chip's SPI parser with CF frames (sheet 2.7). True when the chip answered.

        With `flush`, first give a chip that still waits for the rest of a packet what it waits for: a
        frame with a damaged length can leave up to 8 KiB to be swallowed. Zeros: they begin no packet.
        """
        x = self._x
        for k in range(12 if flush else 3):
            if k > 2:
                for i in range(16):
                    x[i] = 0
                for _ in range(64):
                    self._write_out(self._view(self._xv, x, 16), 16)
            self.resyncs += 1
            sleep_ms(1)
            if self.cs is not None:
                self.cs(0)
            try:
                self._write_out(self._cf, 4)
                if self.crc:
                    x[0] = 0xAA
                    self._write_out(self._view(self._xv, x, 1), 1)
                self._readinto(self._view(self._xv, x, 8), 8)
            finally:
                self._end()
            sleep_ms(1)
            for i in range(7):
                if x[i] == _RESET and not x[i + 1] & 0x0F:
                    return True
        return False
