"""The data path of the chip's sockets: sends, receives, readiness (fact sheet 5.6, 5.10). Nothing waits here.

Receiving is a pull: a receive request stays with the chip at all times (one per socket), else nobody
would learn of the peer's close. Its data go straight into the buffer of a caller that is in `read`;
else the message is held in the chip while a poller looks (`service(True)`), or copied to a buffer of
the socket, because nothing else arrives before it is taken (4.4).
"""

from .compat import const, sleep_ms, sleep_us, ticks_diff, ticks_ms, ticks_us
from .errors import BusError, WincError
from .hif import DATA
from .table import BOUND, CLOSED, LISTEN, MAX_RECV, MAX_SEND, NEW, OPEN, Table

# errno: MicroPython's numbers, which are Linux's
_EIO = const(5)
_EMSGSIZE = const(90)
_ENOTCONN = const(107)
_ETIMEDOUT = const(110)

_IP = const(2)
_SEND = const(0x45)
_RECV = const(0x46)
_SENDTO = const(0x47)
_RECVFROM = const(0x48)
_TCP_OFFSET = const(80)  # of the data in a send message (5.6)
_UDP_OFFSET = const(68)
_HEADER = const(8)
_SEND_CONTROL = const(16)
_REPLY_MS = const(30000)  # longest silence while sends are outstanding
_TINY = const(32)
_GAP_US = const(200)  # between two looks at a silent module
_AHEAD = const(3)  # sends that may be outstanding before replies are looked for


class Flow(Table):
    def service(self, hold=False):
        """Handle at most one message and send what is due. True when there was a message.

        With `hold`, data for a socket stay in the chip until they are read or the chip is needed.
        """
        h = self.hif
        h.may_hold = hold
        try:
            busy = h.poll()
        finally:
            h.may_hold = False
        w = self.wifi
        if w.state == 1 or w.state == 2 or w.static_due:
            w.service()
        if self.due and not h.held:
            self._post_due()
        return busy

    def _post_due(self):
        self.due = False
        for s in self.table:
            if s is None:
                continue
            if s.state == CLOSED or s.queue is False:
                if not self._say_close(s):
                    self.due = True
            elif not self._post(s):
                self.due = True

    def idle(self, busy):
        """Pause after a round that found nothing; the longer idle, the longer the pause (to 1 ms)."""
        if busy:
            self._idle = 0
            return
        self._idle += 1
        if self._idle > 200:
            sleep_ms(1)
        elif self._idle > 10:
            sleep_us(100)

    def _post(self, s):
        """Leave a receive request with the chip. False when the chip had no buffer for it."""
        if s.pending or s.err or s.eof or s.rx_n or s.hold_n or s.has_dgram:
            return True
        if s.state != OPEN and (s.tcp or s.state != BOUND):
            return True
        n = 12 if self.recv12 else 8
        op = _RECV if s.tcp else _RECVFROM
        if not self.hif.request(_IP, op, _HEADER + n):
            return False
        o = self.hif.bus.out
        o[9] = o[10] = o[11] = o[12] = 0xFF  # for ever
        o[13] = s.id
        o[14] = 0
        o[15] = s.sid & 0xFF
        o[16] = s.sid >> 8
        if n == 12:
            o[17] = MAX_RECV & 0xFF
            o[18] = MAX_RECV >> 8
            o[19] = o[20] = 0
        s.pending = True
        self.hif.put(_IP, op, n)
        return True

    def piece(self, s, buf, at=0):
        """The next at most MAX_SEND bytes of buf from `at`, as a view that is made once per buffer."""
        n = len(buf)
        if not at and n <= MAX_SEND:
            return buf
        if at % MAX_SEND:
            return memoryview(buf)[at : at + MAX_SEND]
        if s.view is not buf or len(s.views) != (n + MAX_SEND - 1) // MAX_SEND:
            s.view = buf
            m = memoryview(buf)
            s.views = v = []  # a comprehension would make m a cell, which each call allocates
            for i in range(0, n, MAX_SEND):
                v.append(m[i : i + MAX_SEND])
        return s.views[at // MAX_SEND]

    def write(self, s, buf):
        """Send buf (bytes-like) on a connected socket: bytes taken, or None when the chip has no buffer.

        A buffer longer than MAX_SEND goes out in several messages, as far as the chip gives buffers.
        UDP: one datagram of at most MAX_SEND bytes. Raises WincError.
        """
        self.check(s)
        if s.tcp:
            if s.state != OPEN:
                raise WincError(_ENOTCONN, "the socket is not connected")
            n = len(buf)
            if n <= MAX_SEND:
                return self._send(s, buf, n, None, 0)
            at = 0
            while at < n:
                k = n - at
                if k > MAX_SEND:
                    k = MAX_SEND
                if self._send(s, self.piece(s, buf, at), k, None, 0) is None:
                    return at or None
                at += k
            return n
        if s.peer is None:
            raise WincError(_ENOTCONN, "the socket has no peer: connect it or use sendto")
        return self.sendto(s, buf, s.peer[0], s.peer[1])

    def sendto(self, s, buf, ip, port):
        """Send one datagram: its length, or None when the chip has no buffer."""
        n = len(buf)
        if n > MAX_SEND:
            raise WincError(_EMSGSIZE, "a datagram of %d bytes: the module sends at most %d" % (n, MAX_SEND))
        self.check(s)
        if s.state == NEW:  # without a bind the chip would never deliver an answer (5.10)
            self.bind(s, 0)
        return self._send(s, buf, n, ip, port)

    def _send(self, s, buf, n, ip, port):
        if n == 0 and s.tcp:
            return 0
        h = self.hif
        if s.tcp:
            op = _SEND
            at = _TCP_OFFSET
        else:
            op = _SENDTO
            at = _UDP_OFFSET
        k = 0
        if s.out > _AHEAD:
            # Take a reply in for each further send, or they pile up in the chip while a caller only writes.
            if not h.poll():
                self._overdue(s)
            if s.err:
                self.check(s)
        while not h.request(_IP, op | DATA, _HEADER + at + n):
            # Buffers come back only as messages are served (5.10).
            k += 1
            if k < 4 and h.poll():
                continue
            s.full = True
            s.full_t = ticks_ms()
            self.full += 1
            if s.out:
                self._overdue(s)
                self.check(s)
            return None
        # Should the socket have died while we waited, the message goes out all the same: a granted buffer
        # that is never committed is lost to the chip. The next call raises.
        o = h.bus.out
        o[9] = s.id & 0xFF
        o[10] = 0
        o[11] = n & 0xFF
        o[12] = n >> 8
        if ip is None:
            for i in range(13, 21):
                o[i] = 0
        else:
            o[13] = 2
            o[14] = 0
            o[15] = port >> 8
            o[16] = port & 0xFF
            o[17] = ip[0]
            o[18] = ip[1]
            o[19] = ip[2]
            o[20] = ip[3]
        o[21] = s.sid & 0xFF
        o[22] = s.sid >> 8
        o[23] = o[24] = 0
        if s.tcp or s.replies:
            if not s.out:
                s.out_t = ticks_ms()
            s.out += 1
            s.unacked += n
        try:
            h.put(_IP, op | DATA, _SEND_CONTROL, buf if n else None, n, at)
        except BusError as e:
            self._fail(s, _EIO, e.text)
            raise
        self.sent += 1
        return n

    def _overdue(self, s):
        """Old firmware gives no reply to a send on a dead connection (5.10), and a lost one never comes."""
        if s.tcp and ticks_diff(ticks_ms(), s.out_t) > _REPLY_MS and not s.err:
            self._fail(s, _ETIMEDOUT, "the peer acknowledged nothing for %d s" % (_REPLY_MS // 1000))

    def read(self, s, buf):
        """Received bytes into buf: their number, 0 at the end of a stream, None when nothing is there.

        For a datagram, `s.src` is its source. Raises WincError.
        """
        if s.rx_n:
            return self._take_copy(s, buf)
        if s.has_dgram:
            s.has_dgram = False
            self._post_later(s)
            return 0
        if len(buf) == 0:
            return 0
        h = self.hif
        if s.hold_n and h.held:
            return self._read_held(s, buf)
        if s.eof:
            return 0
        self.check(s)
        if not s.pending and not self._post(s):
            self.due = True
        s.got = 0
        s.target = buf
        try:
            # A few messages for others may be in front; more than that is the caller's next turn.
            for _ in range(4):
                if not h.poll() or s.target is None or s.eof or s.err:
                    break
        finally:
            s.target = None
        n = s.got
        if n or s.has_dgram:
            if s.rx_n == 0:
                s.has_dgram = False
            self._post_later(s)
            return n
        if s.rx_n:
            return self._take_copy(s, buf)
        if s.eof:
            return 0
        self.check(s)
        return None

    def _read_held(self, s, buf):
        """Read from a message that waits in the chip; it is given back when it is used up."""
        if len(buf) < _TINY:
            s.tiny += 1
            if s.tiny > 4:  # byte by byte: not over the SPI
                s.tiny = 0
                self._spill()
                self.check(s)
                return self._take_copy(s, buf)
        else:
            s.tiny = 0
        s.got = 0
        s.target = buf
        left = self._deliver(s, s.hold_at, s.hold_n)
        s.hold_at += s.hold_n - left
        s.hold_n = left
        if not left:
            self._held = None
            self.hif.done()
            s.has_dgram = False
            self.check(s)
            self._post_later(s)
        return s.got

    def _post_later(self, s):
        if not self._post(s):
            self.due = True

    def _take_copy(self, s, buf):
        n = len(buf)
        if n > s.rx_n:
            n = s.rx_n
        a = s.rx_at
        if n == len(buf):
            buf[:] = s.rx[a : a + n]
        else:
            memoryview(buf)[:n] = s.rx[a : a + n]
        s.rx_at = a + n
        s.rx_n -= n
        if not s.tcp:
            s.rx_n = 0
            s.has_dgram = False
        if not s.rx_n:
            self._release(s)
            self._post_later(s)
        return n

    def readable(self, s):
        """Whether read or accept would not block."""
        if s.state == LISTEN:
            return s.queue or s.err
        return s.rx_n or s.has_dgram or s.hold_n or s.eof or s.err

    def writable(self, s):
        if s.err:
            return True
        if s.state == OPEN or not s.tcp:
            return not s.full or self._retry(s)
        return False

    def _retry(self, s):
        """Buffers also come back without an event for us (UDP without replies): try again now and then."""
        if ticks_diff(ticks_ms(), s.full_t) > 2:
            s.full = False
        return not s.full

    def ready(self, s, want):
        """Poll flags (RD 1, WR 4, ERR 8, HUP 16) of a socket; serves at most one message if none holds."""
        r = self.flags(s, want)
        if not r:
            if self.hif.held and self._held is not s:
                self.hif.poll()
            # select.poll and asyncio ask in a tight loop: without an IRQ pin each question is a transfer
            if self.hif.irq is None and ticks_diff(ticks_us(), self._empty) < _GAP_US:
                return 0
            if not self.service(want & 1):
                self._empty = ticks_us()
            r = self.flags(s, want)
        return r

    def flags(self, s, want):
        r = 0
        if want & 1 and self.readable(s):
            r = 1
        if want & 4 and self.writable(s):
            r |= 4
        if s.err:
            r |= 8 | 16
        return r
