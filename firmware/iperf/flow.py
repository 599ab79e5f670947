"""One stream in one direction: its socket, buffer, counters and totals."""

from array import array

from iperf import clock, hot

MANY = 0x1FFFFFFF
_LO = 1 << 29  # counters are kept as hi * 2**29 + lo: both stay small integers on a 32-bit port


class Header:
    """Where sequence number and time stamp stand in a datagram: byte offsets of the words; fin_at is the
    byte whose top bit marks iPerf 2's final datagram, hi_at and fin_at are -1 where there is none;
    `size` is the shortest datagram that holds it, `first` the number of the first datagram."""

    def __init__(self, id_at, hi_at, sec_at, usec_at, fin_at, size, first):
        self.o = array("h", (id_at + 3, hi_at + 3 if hi_at >= 0 else -1, sec_at, usec_at, fin_at, size))
        self.first = first


def _loop(sender, datagrams, paced):
    """The hot loop of such a stream; no other one is loaded."""
    if paced:
        from iperf.hot_paced import send as loop
    elif not datagrams:
        from iperf import hot_tcp

        loop = hot_tcp.send if sender else hot_tcp.recv
    elif sender:
        from iperf.hot_blast import send as loop
    else:
        from iperf.hot_recv import recv as loop
    return loop


class Flow:
    """A stream. `buf` is what is sent, or where received data go.

    sender  True when this end sends
    header  Header of its datagrams, None for TCP
    rate    bits per second, 0 = as fast as it goes
    """

    def __init__(self, id, sock, sender, buf, header=None, rate=0, source=None):
        self.id = id
        self.sock = sock
        # bound once: a bound method is a heap object wherever it is looked up
        self._write = sock.write if sender else None
        self._readinto = None if sender else sock.readinto
        self.sender = sender
        self.buf = buf
        self.header = header
        self.source = source  # readinto() of a file that the payload comes from
        self.c = array("i", [0] * hot.C_LEN)
        self.lo = array("i", [0] * hot.C_LEN)
        self.hi = array("i", [0] * hot.C_LEN)
        self.mark_lo = array("i", [0] * hot.C_LEN)
        self.mark_hi = array("i", [0] * hot.C_LEN)
        self.limit = MANY  # bytes of the next slice
        self.ops = MANY  # datagrams of the next slice
        self.want = False  # waits for the socket to take more
        self.left = None  # rest of a file's block
        self.done = False  # has nothing more to do
        self.refused = 0  # datagrams that found no listener
        self.fin = False  # iperf 2: the final datagram was seen
        self.code = hot.BLOCK
        self.start_us = 0  # when it joined, on the engine's clock
        self.end_us = 0  # when it ended; 0 while it runs
        self.quota = 0  # bytes of this stream alone (iperf 2's -n), to the byte; 0 = no limit
        self._quota = (0, 0)  # the same as (hi, lo): no big integer in the loop
        self.rate = rate
        # a receiver's datagrams are those that the sender is known to have sent, as iperf counts them
        self.counted = hot.C_PKTS if sender else hot.C_SPAN
        self.p = None
        self.u = None
        self.paced = False
        if sender:
            # a long: ticks of the 64-bit unix port need 64 bits, and reading a "q" allocates on 32-bit ports
            self.p = array("l", [0] * hot.P_LEN)
            self._set_rate(rate)
        elif header is not None:
            self.u = array("l", [0] * hot.U_LEN)
            self.u[hot.U_EXP] = header.first
            for k in range(hot.HOLES):
                self.u[hot.U_HOLES + 2 * k] = 1
        self._go = _loop(sender, header is not None, self.paced)

    def _set_rate(self, rate):
        bits = len(self.buf) * 8
        p = self.p
        if rate and bits * 1000000 // rate >= 2:
            self.paced = True
            p[hot.P_GAP] = bits * 1000000 // rate
            # remainder scaled to stay a small integer, for any rate
            p[hot.P_DEN] = 1 << 20
            p[hot.P_REM] = (bits * 1000000 % rate) * (1 << 20) // rate

    def begin(self, delay_us=0):
        """Set the clock of a sender: time stamp, first block due `delay_us` from now."""
        if not self.sender:
            return
        self._quota = (self.quota >> 29, self.quota & MANY)
        t = clock.ticks_us()
        p = self.p
        p[hot.P_NEXT] = clock.ticks_add(t, delay_us)
        p[hot.P_TICK] = t
        if self.header is not None:
            s, us = clock.wall_us()
            p[hot.P_USEC] = us
            at = self.header.o[hot.O_SEC]
            for k in range(4):
                self.buf[at + k] = (s >> (24 - 8 * k)) & 255

    def step(self, t_end, spin, ops):
        """One slice; returns (and keeps in `code`) why it ended. `ops` bounds the datagrams of a
        slice where several streams take turns."""
        c = self.c
        h = self.header
        if self.ops < ops:
            ops = self.ops
        if self.source is not None:
            k = self._from_file(c)
        elif h is None:
            if self.paced:
                k = self._go(self._write, self._block(), c, t_end, self.limit, None, self.p, spin)
            elif self.sender:
                k = self._go(self._write, self._block(), c, t_end, self.limit)
            else:
                k = self._go(self._readinto, self.buf, c, t_end, self.limit)
        elif self.paced:
            k = self._go(self._write, self.buf, c, t_end, ops, h.o, self.p, spin)
        elif self.sender:
            k = self._go(self._write, self.buf, c, t_end, ops, h.o, self.p)
        else:
            k = self._go(self._readinto, self.buf, c, t_end, ops, h.o, self.u)
        self.code = k
        self.fold()
        return k

    def to_go(self):
        """Bytes that are left of `quota`; MANY for more than that."""
        hi, lo = self._quota
        hi -= self.hi[hot.C_BYTES]
        lo -= self.lo[hot.C_BYTES]
        if lo < 0:
            lo += _LO
            hi -= 1
        return lo if hi == 0 else MANY if hi > 0 else 0

    def cap(self, left):
        """Bound the next slice to `left` bytes; True when nothing is left."""
        if left <= 0:
            return True
        size = len(self.buf)
        if left > MANY:
            left = MANY
        if self.header is not None:
            self.ops = (left + size - 1) // size
        elif self.quota and left > size:
            left -= left % size  # whole blocks first
        self.limit = left
        return False

    def _block(self):
        """What a TCP sender writes: its buffer, the last time only what its own quota has left."""
        if self.quota and self.limit < len(self.buf):
            return memoryview(self.buf)[: self.limit]
        return self.buf

    def _from_file(self, c):
        """One block of the file (-F): EOF at its end. A block taken in part is finished first."""
        if not self.left:
            n = self.source(self.buf)
            if not n:
                return hot.EOF
            self.left = memoryview(self.buf)[:n]
        try:
            n = self._write(self.left)
        except OSError as e:
            return hot.failed(e, c)
        if n is None:
            c[hot.C_RETRY] += 1
            return hot.BLOCK
        c[hot.C_BYTES] += n
        self.left = self.left[n:]
        return hot.SLICE

    def fold(self):
        """Add the slice's counters to the totals; all small integers."""
        c = self.c
        lo = self.lo
        for i in range(hot.C_LEN):
            n = c[i]
            if n:
                c[i] = 0
                n += lo[i]
                if n >= _LO:
                    self.hi[i] += 1
                    n -= _LO
                elif n < 0:
                    if self.hi[i]:
                        self.hi[i] -= 1
                        n += _LO
                    else:
                        n = 0  # never negative (late datagrams of an omitted time)
                lo[i] = n

    def total(self, i):
        """Total of counter i as one integer (may be a big one)."""
        return self.hi[i] * _LO + self.lo[i]

    def since_mark(self, i):
        """Counter i since the last `mark()`; not below zero."""
        n = self.lo[i] - self.mark_lo[i]
        hi = self.hi[i] - self.mark_hi[i]
        if hi:
            n += hi * _LO
        return n if n > 0 else 0

    def moved(self):
        """True when bytes moved since the last `mark()`."""
        i = hot.C_BYTES
        return self.lo[i] != self.mark_lo[i] or self.hi[i] != self.mark_hi[i]

    def mark(self):
        for i in range(hot.C_LEN):
            self.mark_lo[i] = self.lo[i]
            self.mark_hi[i] = self.hi[i]

    def reset(self):
        """Start the totals again (the end of an omitted time); order and time stamps go on."""
        for i in range(hot.C_LEN):
            self.lo[i] = self.hi[i] = self.mark_lo[i] = self.mark_hi[i] = 0

    def jitter_us(self):
        """Jitter of the received datagrams in whole microseconds (RFC 3550, A.8)."""
        return self.u[hot.U_JIT] >> 4 if self.u is not None else 0

    def to_dict(self, us):
        """The STREAM of docs/contracts.md, section 3; `us` is the time measured."""
        t = self.total
        return {
            "id": self.id, "sender": self.sender, "bytes": t(hot.C_BYTES), "us": us,
            "packets": t(self.counted), "lost": t(hot.C_LOST), "ooo": t(hot.C_OOO), "dup": t(hot.C_DUP),
            "jitter_us": self.jitter_us(), "retries": t(hot.C_RETRY), "enomem": t(hot.C_NOMEM),
            "stall_us": t(hot.C_STALL), "peer": None,
        }  # fmt: skip
