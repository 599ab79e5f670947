"""The chip's sockets as verbs: bind, listen, accept, connect, close (fact sheet 5.5-5.10).

socket.py makes MicroPython's socket of it, iperf's layer uses it as it is. Verbs with a time limit
wait, the others do not.
"""

from .compat import const, ticks_diff, ticks_ms
from .errors import WincError
from .flow import Flow
from .table import (
    BINDING,
    BOUND,
    CLOSED,
    CONNECTING,
    LISTEN,
    LISTENING,
    MAX_RECV,
    MAX_SEND,
    NEW,
    OPEN,
    Sock,
)
from .wifi import address

# errno: MicroPython's numbers, which are Linux's
_EINVAL = const(22)
_EADDRINUSE = const(98)
_EISCONN = const(106)
_ETIMEDOUT = const(110)
_EALREADY = const(114)

_IP = const(2)
_BIND = const(0x41)
_LISTEN = const(0x42)
_CONNECT = const(0x44)
_CLOSE = const(0x49)
_OPTION = const(0x4F)
_HEADER = const(8)
_SMALL = const(640)  # longest receive buffer that is made to measure (table.py)


class Stack(Flow):
    """The sockets of one module (see table.Table for its counters)."""

    def command(self, op, payload):
        self.hif.message(_IP, op, payload)

    def _addr(self, ip, port):
        return bytes((2, 0, port >> 8, port & 0xFF)) + ip

    def bind(self, s, port, ip=b"\0\0\0\0", timeout_ms=5000):
        """Bind to a local port, 0 = any. Waits for the chip's reply."""
        self.check(s)
        self.need_link()
        if s.state != NEW:
            raise WincError(_EINVAL, "the socket is bound or connected already")
        for t in self.table:
            if t is not None and t.tcp == s.tcp and port and t.port == port and t.state in (BOUND, LISTEN):
                raise WincError(_EADDRINUSE, "port %d is in use by another socket of this module" % port)
        self._take_id(s)
        s.port = port or self._free_port()
        s.state = BINDING
        self.command(_BIND, self._addr(ip, s.port) + bytes((s.id, 0, s.sid & 0xFF, s.sid >> 8)))
        self._await(s, BOUND, timeout_ms, "bind")
        if not s.tcp:
            # The bind has reset the option (4.5), so it is set now.
            if not s.replies:
                self.option(s, 0, 0)
            self._post(s)

    def _free_port(self):
        self._port = (self._port + 1) % 8192
        return 49152 + self._port

    def _await(self, s, state, timeout_ms, what):
        t0 = ticks_ms()
        while s.state != state:
            busy = self.service()
            self.check(s)
            if ticks_diff(ticks_ms(), t0) > timeout_ms:
                self._fail(s, _ETIMEDOUT, "the module did not answer %s in %d ms" % (what, timeout_ms))
                self.check(s)
            self.idle(busy)

    def listen(self, s, backlog=2, timeout_ms=5000):
        if s.state == NEW:
            self.bind(s, 0)
        self.check(s)
        if s.state != BOUND or not s.tcp:
            raise WincError(_EINVAL, "listen needs a TCP socket that is bound")
        s.queue = []
        s.state = LISTENING
        self.command(_LISTEN, bytes((s.id, min(backlog, 7), s.sid & 0xFF, s.sid >> 8)))
        self._await(s, LISTEN, timeout_ms, "listen")

    def accept(self, s):
        """The next accepted Sock, or None."""
        self.check(s)
        if s.state != LISTEN:
            raise WincError(_EINVAL, "the socket does not listen")
        return s.queue.pop(0) if s.queue else None

    def connect(self, s, ip, port):
        """TCP: start to connect; the state becomes OPEN, or err is set. UDP: fix the peer."""
        self.check(s)
        self.need_link()
        if not s.tcp:
            if s.state == NEW:
                self.bind(s, 0)
            s.peer = (ip, port)
            s.peer_key = bytearray(bytes((port >> 8, port & 0xFF)) + ip)
            return
        if s.state == CONNECTING:
            raise WincError(_EALREADY, "a connection attempt is under way")
        if s.state == OPEN:
            raise WincError(_EISCONN, "the socket is connected")
        if s.state not in (NEW, BOUND):
            raise WincError(_EINVAL, "the socket listens")
        self._take_id(s)
        s.peer = (ip, port)
        s.state = CONNECTING
        self.command(_CONNECT, self._addr(ip, port) + bytes((s.id, 0, s.sid & 0xFF, s.sid >> 8)))

    def option(self, s, option, value):
        """A chip option (5.6): 0 UDP send replies, 1/2 join/leave a multicast group, 4-7 keep-alive."""
        v = value
        if isinstance(v, int):
            v = bytes((v & 0xFF, v >> 8 & 0xFF, v >> 16 & 0xFF, 0))
        self.command(_OPTION, v + bytes((s.id, option, s.sid & 0xFF, s.sid >> 8)))

    def _release(self, s):
        b = s.rx
        if b is not None and len(b) > _SMALL and not self._pool:
            self._pool.append(b)
        s.rx = None

    def drain(self, s, timeout_ms):
        """Wait until every send has its reply: True, or False at the timeout or a failure."""
        t0 = ticks_ms()
        while s.out and not s.err:
            self.idle(self.service())
            if ticks_diff(ticks_ms(), t0) > timeout_ms:
                return False
        return not s.err

    def close(self, s, linger_ms=2000):
        """Close; sends that are still under way are given linger_ms."""
        if s.state == CLOSED:
            return
        try:
            if s.tcp and s.out:
                self.drain(s, linger_ms)
            if s.queue:
                for c in s.queue:
                    self._drop(c)
        finally:
            self._drop(s)

    def _drop(self, s, timeout_ms=1000):
        s.state = CLOSED
        s.queue = None
        s.view = s.views = None
        s.rx_n = 0
        self._release(s)
        self.hif.bus.forget()
        if self._held is s:
            s.hold_n = 0  # its message is given back unread by whoever needs the chip
        if s.id < 0 or self.table[s.id] is not s:
            return
        t0 = ticks_ms()
        while not self._say_close(s):
            if ticks_diff(ticks_ms(), t0) > timeout_ms:
                self.due = True  # it stays in the table; service() tries again
                return
            self.idle(self.hif.poll())

    def _say_close(self, s):
        """Send the close command; it has no reply. Even a socket that the peer has ended needs it (5.10)."""
        if not self.hif.request(_IP, _CLOSE, _HEADER + 4):
            return False
        o = self.hif.bus.out
        o[9] = s.id & 0xFF
        o[10] = 0
        o[11] = s.sid & 0xFF
        o[12] = s.sid >> 8
        self.hif.put(_IP, _CLOSE, 4)
        if s.id >= 0 and self.table[s.id] is s:
            self.table[s.id] = None
        s.state = CLOSED
        return True
    def resolve(self, name, timeout_ms=15000):
        """Four bytes of the IP address of a name or dotted address. Raises WincError."""
        ip = address(name)
        if ip is None:
            from .lookup import resolve

            ip = resolve(self, name, timeout_ms)
        return ip

    def ping(self, host, count=1, ttl=64, timeout_ms=5000):
        """(round trip in ms, answers, losses) of `count` echo requests sent by the module."""
        from .lookup import ping

        return ping(self, host, count, ttl, timeout_ms)


__all__ = ("BOUND", "CONNECTING", "LISTEN", "MAX_RECV", "MAX_SEND", "NEW", "OPEN", "Sock", "Stack")
