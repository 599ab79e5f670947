"""The socket table: ids and sessions, and what the chip's messages do to it (fact sheet 5.5-5.10).

Event handlers take notes and fetch data; they send nothing, because they run inside hif.poll. What has
become due is sent by sockets.Stack.
"""

from .compat import const, ticks_ms
from .errors import BusError, WincError, from_chip
from .wifi import GOT_IP

# errno: MicroPython's numbers, which are Linux's
_EIO = const(5)
_ENOMEM = const(12)
_EMFILE = const(24)
_ENETDOWN = const(100)
_ECONNABORTED = const(103)
_ENOTCONN = const(107)
_ETIMEDOUT = const(110)
_ECONNREFUSED = const(111)

_IP = const(2)
_BIND = const(0x41)
_LISTEN = const(0x42)
_ACCEPT = const(0x43)
_CONNECT = const(0x44)
_SEND = const(0x45)
_RECV = const(0x46)
_SENDTO = const(0x47)
_RECVFROM = const(0x48)
_CLOSE = const(0x49)
_DNS = const(0x4A)
_OPTION = const(0x4F)
_PING = const(0x52)

MAX_SEND = const(1400)  # bytes of one send or sendto (5.8)
MAX_RECV = const(1472)  # longest payload of a received message (5.8)
_TCP_OFFSET = const(80)  # of the data in a send message (5.6)
_UDP_OFFSET = const(68)
_TCP = const(7)  # ids 0-6 are TCP, 7-10 UDP (5.7)
_ALL = const(11)
_HEADER = const(8)
_SMALL = const(640)
_LARGE = const(1536)

# States of a Sock
NEW = const(0)
BINDING = const(1)
BOUND = const(2)
LISTENING = const(3)  # asked
LISTEN = const(4)
CONNECTING = const(5)
OPEN = const(6)
CLOSED = const(7)


class Sock:
    """One endpoint. Fields are for reading; the verbs are Stack's."""

    def __init__(self, tcp):
        self.tcp = tcp
        self.id = -1  # given with the first command: an idle object takes no id from the chip
        self.sid = 0
        self.state = NEW
        self.err = 0  # errno of the failure that ended it
        self.why = ""
        self.eof = False
        self.port = 0
        self.peer = None  # (4 bytes, port)
        self.peer_key = None  # UDP: the same as `src` has it
        self.src = bytearray(6)  # of the last datagram: port (2, BE), IP (4)
        self.out = 0  # sends without their reply
        self.unacked = 0  # bytes in them
        self.out_t = 0  # when the last reply came, or the first of them was sent, in ms
        self.full = False  # the chip had no buffer at the last send,
        self.full_t = 0  # at this time in ms
        self.send_errors = 0  # UDP: datagrams that the chip reported unsent
        self.replies = False  # UDP: ask for a reply to each sendto
        self.queue = None  # listening: accepted sockets
        self.pending = False  # a receive request is with the chip
        self.rx = None  # what nobody waited for
        self.rx_at = 0
        self.rx_n = 0
        self.target = None
        self.got = 0
        self.has_dgram = False
        self.hold_at = 0
        self.hold_n = 0
        self.tiny = 0  # short reads of a held message, one after another
        self.view = None  # views of a long buffer in pieces of MAX_SEND, made once per buffer
        self.views = None


class Table:
    """All sockets of one module.

    Counters: sent, received (messages with data), stale (replies to sockets that are gone),
    copied (payload bytes that took the way over a socket's buffer), full (sends that found no buffer).
    """

    def __init__(self, hif, wifi):
        self.hif = hif
        self.wifi = wifi
        self.recv12 = wifi.fw >= (19, 6, 4)  # the request carries the buffer size (5.6)
        self.table = [None] * _ALL
        self.due = False  # some socket waits for its receive request
        self._held = None
        self._pool = []
        self._sid = 0
        self._tcp = 0
        self._udp = _TCP
        self._port = ticks_ms() % 8192
        self._one = memoryview(bytearray(1))
        self.dns = None
        self.dns_ip = None
        self.pong = None
        self._idle = 0
        self._empty = 0
        self.clear()
        hif.handlers[_IP] = self._event
        hif.spill = self._spill
        wifi.on_down = self.fail_all

    def clear(self):
        self.sent = 0
        self.received = 0
        self.stale = 0
        self.copied = 0
        self.full = 0

    # --- ids ---

    def session(self):
        self._sid = self._sid + 1 & 0xFFFF or 1
        return self._sid

    def _take_id(self, s):
        """Round robin, so that an id rests before it is used again (5.7)."""
        if s.id >= 0:
            return
        first, n = (0, _TCP) if s.tcp else (_TCP, _ALL - _TCP)
        k = self._tcp if s.tcp else self._udp
        for _ in range(n):
            i = k
            k = first + (k + 1 - first) % n
            if self.table[i] is None:
                if s.tcp:
                    self._tcp = k
                else:
                    self._udp = k
                self.table[i] = s
                s.id = i
                s.sid = self.session()
                return
        raise WincError(
            _EMFILE, "all %d %s sockets of the module are in use; close one" % (n, "TCP" if s.tcp else "UDP")
        )

    def need_link(self):
        if self.wifi.state != GOT_IP:
            raise WincError(_ENETDOWN, self.wifi.reason or "no Wi-Fi connection; call connect() first")

    def fail_all(self, why):
        """The link is gone: so is every socket (5.10)."""
        for s in self.table:
            if s is not None and s.state != CLOSED and not s.err:
                self._fail(s, _ENOTCONN, why)
        self.dns_ip = b"\0\0\0\0"

    def _fail(self, s, err, why):
        s.err = err
        s.why = why
        s.pending = False
        s.out = s.unacked = 0
        if s.queue:
            for c in s.queue:
                self._fail(c, err, why)

    def check(self, s):
        """Raise what has ended the socket."""
        if s.err:
            raise WincError(s.err, s.why)
        if s.state == CLOSED:
            raise WincError(_ENOTCONN, "the socket is closed")

    # --- events: take notes, fetch data, send nothing ---

    def _event(self, op):
        h = self.hif
        m = h.bus.msg
        b = h.base
        if op == _RECV or op == _RECVFROM:
            return self._on_data(m, b)
        if op == _SEND or op == _SENDTO:
            s = self._find(m[b], m[b + 4] | m[b + 5] << 8)
            if s is not None:
                self._on_sent(s, m[b + 2] | m[b + 3] << 8)
            for s in self.table:
                if s is not None:
                    s.full = False  # a buffer has become free
        elif op == _ACCEPT:
            self._on_accept(m, b)
        elif op == _CONNECT:
            s = self.table[m[b]] if m[b] < _ALL else None
            # No session here (5.7): only a socket that waits for it can be meant.
            if s is None or s.state != CONNECTING:
                self.stale += 1
            elif m[b + 1]:
                e = from_chip(m[b + 1] - 256)
                if e == _ETIMEDOUT:
                    self._fail(s, e, "no answer from the peer")
                elif m[b + 1] - 256 == -12:
                    self._fail(s, _ECONNREFUSED, "the peer refused the connection, or cannot be reached")
                else:
                    self._fail(s, e, "connecting failed (module error %d)" % (m[b + 1] - 256))
            else:
                s.state = OPEN
                self.due = True
        elif op == _BIND or op == _LISTEN:
            s = self._find(m[b], m[b + 2] | m[b + 3] << 8)
            if s is not None:
                if m[b + 1]:
                    e = m[b + 1] - 256
                    what = "bind" if op == _BIND else "listen"
                    self._fail(s, from_chip(e), "%s to port %d failed (module error %d)" % (what, s.port, e))
                elif op == _BIND and s.state == BINDING:
                    s.state = BOUND
                elif op == _LISTEN and s.state == LISTENING:
                    s.state = LISTEN
        elif op == _DNS:
            p = h.payload(68)
            n = p.find(b"\0")
            if self.dns is not None and bytes(p[:n]) == self.dns:
                self.dns_ip = bytes(p[64:68])
            else:
                self.stale += 1
        elif op == _PING:
            self.pong = h.payload(20)
        return False

    def _find(self, i, sid):
        s = self.table[i] if i < _ALL else None
        if s is None or s.sid != sid:
            self.stale += 1  # a reply to a socket that was closed (5.7)
            return None
        return s

    def _on_sent(self, s, n):
        if s.out:
            s.out -= 1
        s.out_t = ticks_ms()
        if n & 0x8000:
            n -= 0x10000
            if not s.tcp:
                s.send_errors += 1
            elif not s.err:
                e = from_chip(n)
                self._fail(s, e, "sending failed (module error %d)" % n)
            return
        s.unacked -= n
        if s.tcp and not s.out and s.unacked and not s.err:
            self._fail(s, _EIO, "the module sent %d bytes less than it took" % s.unacked)

    def _on_accept(self, m, b):
        listener = self.table[m[b + 8]] if m[b + 8] < _TCP else None
        i = m[b + 9]
        if i >= _TCP:
            self.stale += 1
            return
        old = self.table[i]
        if old is not None:  # the chip chose an id that we had given away (10 #3)
            self._fail(old, _ECONNABORTED, "the module gave this socket's number to an accepted connection")
            old.id = -1
        s = Sock(True)
        s.id = i
        s.sid = self.session()
        s.state = OPEN
        s.peer = (bytes(m[b + 4 : b + 8]), m[b + 2] << 8 | m[b + 3])
        self.table[i] = s
        if listener is None or listener.state not in (LISTEN, LISTENING) or len(listener.queue) >= 7:
            s.err = _ECONNABORTED  # nobody wants it: closed at the next service()
            s.queue = False
        else:
            s.port = listener.port
            listener.queue.append(s)
        self.due = True

    def _on_data(self, m, b):
        s = self._find(m[b + 12], m[b + 14] | m[b + 15] << 8)
        if s is None or s.state == CLOSED:
            return False
        s.pending = False
        n = m[b + 8] | m[b + 9] << 8
        if n == 0 or n & 0x8000:
            self._on_end(s, n - 0x10000 if n else 0)
            return False
        at = m[b + 10] | m[b + 11] << 8
        if at < 16 or at + n > self.hif.size:
            self._fail(s, _EIO, "damaged message: %d bytes at %d of %d" % (n, at, self.hif.size))
            return False
        self.received += 1
        if not s.tcp:
            for i in range(6):
                s.src[i] = m[b + 2 + i]
            if s.peer is not None and s.src != s.peer_key:
                self.due = True  # a connected socket hears its peer alone
                return False
        if s.target is not None:
            left = self._deliver(s, at, n)
            if not left:
                return False
            at += n - left  # more than the caller's buffer takes: the rest stays in the chip for now
            n = left
        elif s.rx_n or not self.hif.may_hold:
            self._store(s, at, n)
            return False
        s.hold_at = at
        s.hold_n = n
        self._held = s
        return True

    def _on_end(self, s, status):
        if status == -13:  # only the request has timed out: make another (5.10)
            self.due = True
        elif status == 0 and s.tcp:
            s.eof = True
        elif status == 0:
            s.has_dgram = True  # an empty datagram
        else:
            e = from_chip(status)
            self._fail(s, e, "the connection was lost (module error %d)" % status)

    def _deliver(self, s, at, n):
        """Read payload into the buffer of the caller who waits; what is left of the n bytes."""
        t = s.target
        s.target = None
        k = len(t)
        if k > n:
            k = n
        try:
            self.hif.read_into(at, t, k)
        except BusError as e:
            self._fail(s, _EIO, e.text)
            return 0
        s.got = k
        if s.tcp:
            return n - k
        s.has_dgram = True
        return 0  # what is longer than the buffer is cut off, as everywhere with UDP

    def _store(self, s, at, n):
        """Read payload into a buffer of the socket."""
        try:
            if s.rx is None:
                s.rx = self._buffer(n)
            if s.rx_n or n > len(s.rx):
                raise BusError("the module sent more than was asked for")
            self.hif.read_into(at, s.rx, n)
        except BusError as e:
            self._fail(s, _EIO, e.text)
            return
        except MemoryError:
            self._fail(s, _ENOMEM, "no memory for a receive buffer of %d bytes" % n)
            return
        s.rx_at = 0
        s.rx_n = n
        self.copied += n
        if not s.tcp:
            s.has_dgram = True

    def _buffer(self, n):
        """A buffer for at least n bytes: a few words of a control connection take no large one."""
        if n <= _SMALL:
            return memoryview(bytearray(n + 63 & -64))
        return self._pool.pop() if self._pool else memoryview(bytearray(_LARGE))

    def _spill(self):
        """Take a held message into its socket's buffer: the chip is needed for something else."""
        s = self._held
        self._held = None
        h = self.hif
        try:
            if s is not None and s.hold_n:
                n = s.hold_n
                s.hold_n = 0
                self._store(s, s.hold_at, n)
        finally:
            h.done()
