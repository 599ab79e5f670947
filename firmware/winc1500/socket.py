"""MicroPython's socket module over the WINC1500's sockets.

    from winc1500 import socket        # or: socket.install(), then `import socket` anywhere

Objects are streams: select.poll, asyncio and tls take them. IPv4; 7 TCP and 4 UDP sockets; a datagram
has at most 1400 bytes. Errors are OSError with MicroPython's errno; the text is args[1].
"""

import io
import sys

from . import module as _find
from . import sockets as _s
from .compat import const, ticks_diff, ticks_ms
from .errors import WincError
from .wifi import text

# errno: MicroPython's numbers, which are Linux's
_EBADF = const(9)
_EAGAIN = const(11)
_EINVAL = const(22)
_EOPNOTSUPP = const(95)
_ETIMEDOUT = const(110)
_EINPROGRESS = const(115)

AF_INET = 2
SOCK_STREAM = 1
SOCK_DGRAM = 2
IPPROTO_IP = 0
IPPROTO_TCP = 6
IPPROTO_UDP = 17
SOL_SOCKET = 0xFFF
SO_REUSEADDR = 4
SO_KEEPALIVE = 8
IP_ADD_MEMBERSHIP = 0x400
IP_DROP_MEMBERSHIP = 0x401
SOL_WINC = 0x57  # options of the module itself:
SO_SEND_REPLY = 0  # UDP: report each datagram sent (costs a message per datagram; default off)

_CONNECT_MS = 30000  # sheet 4.6


class socket(io.IOBase):
    """One socket. `sock` (of an accepted connection) is for internal use."""

    def __init__(self, af=AF_INET, type=SOCK_STREAM, proto=0, fileno=None, *, sock=None):
        if af != AF_INET:
            raise WincError(_EOPNOTSUPP, "address family %r: the module speaks IPv4 only" % (af,))
        if type not in (SOCK_STREAM, SOCK_DGRAM):
            raise WincError(_EOPNOTSUPP, "socket type %r: SOCK_STREAM or SOCK_DGRAM" % (type,))
        self._k = _find().need()
        self._o = sock if sock is not None else _s.Sock(type == SOCK_STREAM)
        self._t = None  # time limit in ms, None = for ever, 0 = non-blocking

    def _sock(self):
        if self._o is None:
            raise WincError(_EBADF, "the socket is closed")
        return self._o

    def _round(self, t0):
        """One turn of waiting: serve a message, see to the time limit. Raises _EAGAIN, _ETIMEDOUT."""
        t = self._t
        if t == 0:
            raise WincError(_EAGAIN, "not ready")
        k = self._k
        k.idle(k.service())
        if t is not None and ticks_diff(ticks_ms(), t0) >= t:
            raise WincError(_ETIMEDOUT, "timed out after %d ms" % t)

    # --- settings ---

    def setblocking(self, flag):
        self._t = None if flag else 0

    def settimeout(self, seconds):
        self._t = None if seconds is None else int(seconds * 1000)

    def setsockopt(self, level, option, value):
        o = self._sock()
        if level == SOL_WINC and option == SO_SEND_REPLY:
            o.replies = bool(value)
            if o.id >= 0:
                self._k.option(o, 0, 1 if value else 0)
        elif option in (IP_ADD_MEMBERSHIP, IP_DROP_MEMBERSHIP) and level == IPPROTO_IP:
            if o.state == _s.NEW:
                raise WincError(_EINVAL, "bind before joining a group")
            self._k.option(o, 1 if option == IP_ADD_MEMBERSHIP else 2, bytes(value[:4]))
        elif level == SOL_SOCKET and option == SO_KEEPALIVE:
            if self._k.wifi.fw < (19, 7, 0):
                raise WincError(_EOPNOTSUPP, "keep-alive needs firmware 19.7 or newer")
            if o.id < 0:
                raise WincError(_EINVAL, "connect before setting keep-alive")
            self._k.option(o, 4, 1 if value else 0)
        elif level == SOL_SOCKET and option == SO_REUSEADDR:
            pass  # the module has no such thing, and needs none
        else:
            raise WincError(_EOPNOTSUPP, "option %r of level %r" % (option, level))

    # --- set up and down ---

    def _target(self, addr):
        host, port = addr[0], addr[1]
        if not 0 <= port <= 65535:
            raise WincError(_EINVAL, "port %d" % port)
        return self._k.resolve(host), port

    def bind(self, addr):
        host, port = addr[0], addr[1]
        ip = b"\0\0\0\0" if host in ("", "0.0.0.0") else self._k.resolve(host)
        self._k.bind(self._sock(), port, ip)

    def listen(self, backlog=2):
        self._k.listen(self._sock(), backlog)

    def accept(self):
        """(socket, (ip, port)). After a time-out the socket listens on."""
        o = self._sock()
        t0 = ticks_ms()
        while True:
            c = self._k.accept(o)
            if c is None and self._t == 0:
                self._k.service()
                c = self._k.accept(o)
            if c is not None:
                return socket(sock=c), (text(c.peer[0]), c.peer[1])
            self._round(t0)

    def connect(self, addr):
        o = self._sock()
        ip, port = self._target(addr)
        self._k.connect(o, ip, port)
        if not o.tcp:
            return
        if self._t == 0:
            raise WincError(_EINPROGRESS, "connecting")
        t0 = ticks_ms()
        limit = _CONNECT_MS if self._t is None else self._t
        while o.state == _s.CONNECTING:
            self._k.check(o)
            if ticks_diff(ticks_ms(), t0) > limit:
                self._k.close(o, 0)  # what comes late must not look like success
                self._o = _s.Sock(True)
                raise WincError(_ETIMEDOUT, "no answer from %s port %d in %d ms" % (text(ip), port, limit))
            self._k.idle(self._k.service())
        self._k.check(o)

    def close(self):
        o = self._o if hasattr(self, "_o") else None
        self._o = None
        if o is not None and not self._k.hif.off:
            self._k.close(o)

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.close()

    def fileno(self):
        return self._o.id if self._o is not None else -1

    def getpeername(self):
        p = self._sock().peer
        if p is None:
            raise WincError(_EINVAL, "not connected")
        return text(p[0]), p[1]

    # --- data ---

    def send(self, buf):
        """Bytes taken, at least one. OSError(_EAGAIN) when non-blocking and the module is full."""
        o = self._sock()
        t0 = ticks_ms()
        while True:
            n = self._k.write(o, buf)
            if n is not None:
                return n
            self._round(t0)

    def write(self, buf):
        """As a stream: everything when blocking; what was taken, or None, when not."""
        if self._t == 0:
            o = self._sock()
            n = self._k.write(o, buf)
            if n is None:
                self._k.service()
                n = self._k.write(o, buf)
            return n
        self.sendall(buf)
        return len(buf)

    def sendall(self, buf):
        n = len(buf)
        at = self.send(buf)
        if at < n:
            m = memoryview(buf)
            while at < n:
                at += self.send(m[at : at + _s.MAX_SEND])

    def sendto(self, buf, addr):
        o = self._sock()
        ip, port = self._target(addr)
        t0 = ticks_ms()
        while True:
            n = self._k.sendto(o, buf, ip, port)
            if n is not None:
                return n
            self._round(t0)

    def readinto(self, buf, nbytes=-1):
        """Bytes read, 0 at the end, None when it would block. At most one message of the module."""
        if nbytes >= 0:
            buf = memoryview(buf)[:nbytes]
        o = self._sock()
        t0 = ticks_ms()
        while True:
            n = self._k.read(o, buf)
            if n is not None:
                return n
            if self._t == 0:
                return None
            self._round(t0)

    def recv_into(self, buf, nbytes=0):
        n = self.readinto(buf, nbytes or -1)
        if n is None:
            raise WincError(_EAGAIN, "not ready")
        return n

    def recv(self, n, flags=0):
        buf = bytearray(n)
        return bytes(memoryview(buf)[: self.recv_into(buf)])

    def recvfrom_into(self, buf):
        n = self.recv_into(buf)
        o = self._sock()
        if o.tcp:
            return n, self.getpeername()
        s = o.src
        return n, (text(s[2:6]), s[0] << 8 | s[1])

    def recvfrom(self, n, flags=0):
        buf = bytearray(n)
        k, addr = self.recvfrom_into(buf)
        return bytes(memoryview(buf)[:k]), addr

    def read(self, n=-1):
        """n bytes, or all up to the end; fewer, or None, when non-blocking."""
        out = b""
        while n < 0 or len(out) < n:
            buf = bytearray(512 if n < 0 or n - len(out) > 512 else n - len(out))
            k = self.readinto(buf)
            if k is None:
                return out or None
            if not k:
                break
            out += memoryview(buf)[:k]
            if not self._o.tcp:
                break
        return out

    def readline(self, limit=-1):
        out = bytearray()
        one = bytearray(1)
        while limit < 0 or len(out) < limit:
            k = self.readinto(one)
            if k is None:
                return bytes(out) or None
            if not k:
                break
            out += one
            if one[0] == 10:
                break
        return bytes(out)

    def makefile(self, *args, **kw):
        return self

    def ioctl(self, request, arg):
        """The stream protocol's poll (3) and close (4)."""
        if request == 3:
            if self._o is None:
                return 0x20
            return self._k.ready(self._o, arg)
        if request == 4:
            self.close()
            return 0
        return -_EINVAL


def getaddrinfo(host, port, af=0, type=0, proto=0, flags=0):
    """[(AF_INET, type, proto, '', (ip, port))]; a name costs a DNS query by the module."""
    if host in ("", None):
        ip = "0.0.0.0"
    else:
        ip = text(_find().need().resolve(host))
    return [(AF_INET, type or SOCK_STREAM, proto, "", (ip, int(port)))]


def install():
    """Make `import socket` (asyncio's too) find this module."""
    sys.modules["socket"] = sys.modules[__name__]
