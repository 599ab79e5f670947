"""Layer `socket`: the port's own sockets (lwIP or the host OS), which copy."""

import select
import socket
import sys

from iperf import clock
from iperf.errors import IperfError

NAME = "socket"

_MP = sys.implementation.name == "micropython"
_LINUX = sys.platform == "linux"

POLLIN = 1
POLLOUT = 4
_POLLERR = 8
_POLLHUP = 16

# errno values: Linux, lwIP in MicroPython (which uses Linux's), and ESP-IDF (newlib's)
_EINPROGRESS = (115, 119, 11, 114, 10035)
_EISCONN = (106, 127)
_REFUSED = (111, 104, 103)
_NOROUTE = (113, 101, 118, 114)
_AGAIN = (11, 110, 35)


def caps():
    """What this layer honours on this port (docs/contracts.md, section 4)."""
    if not _MP or _LINUX:
        opts = {"window", "mss", "tos", "ttl", "nodelay", "ipv6", "bind"}
        return {"udp_max": 65507, "options": opts, "why": {}}
    why = "MicroPython's socket module on %s cannot set it: it is fixed when lwIP is compiled" % sys.platform
    no_ip = "MicroPython's socket module on %s cannot set it" % sys.platform
    return {
        "udp_max": 1472,
        "options": {"nodelay", "bind"},
        "why": {"window": why, "mss": why, "tos": no_ip, "ttl": no_ip, "ipv6": no_ip},
    }


def counters():
    """lwIP's own statistics where the firmware has them (module `lwipstats` of our port)."""
    try:
        import lwipstats

        return lwipstats.counters()
    except ImportError:
        return {}


class Sock:
    """A connected, non-blocking socket. On MicroPython `write` and `readinto` are the port's own
    methods: no Python frame stands between the hot loop and the C code. They are stream methods, which
    repeat until the buffer is done: **a datagram's buffer must have exactly the datagram's length**."""

    def __init__(self, s, remote=None):
        self.s = self.poll_obj = s
        self.remote = remote
        self.ready = 0
        if _MP:
            self.local = None
            self.write = s.write
            self.readinto = s.readinto
        else:
            try:
                self.local = s.getsockname()[:2]
            except OSError:
                self.local = None
            self._send = s.send
            self._recv = s.recv_into
        s.setblocking(False)

    if not _MP:

        def write(self, buf):
            try:
                return self._send(buf)
            except BlockingIOError:
                return None

        def readinto(self, buf):
            try:
                return self._recv(buf)
            except BlockingIOError:
                return None

    def recv_datagram(self, most):
        """One datagram as bytes (allocates: for handshakes), or None. `readinto` will not do here:
        MicroPython's goes on reading until the buffer is full, into the next datagram."""
        try:
            return self.s.recv(most)
        except OSError as e:
            if _errno(e) in _AGAIN:
                return None
            raise

    def configure(self, cfg):
        """Set cfg's options on an accepted connection. Raises IperfError unsupported."""
        _set_options(self.s, cfg, True)

    def shutdown_write(self):
        """Half-close, where the port can: MicroPython's sockets cannot. Returns True when it did."""
        try:
            self.s.shutdown(1)
            return True
        except AttributeError:
            return False
        except OSError:
            return True

    def close(self):
        self.s.close()


class Poller:
    """select.poll over Socks; after `wait(ms)` each registered Sock's `ready` holds its flags."""

    def __init__(self):
        self.p = select.poll()
        self.socks = []
        self._wait = self.p.ipoll if hasattr(self.p, "ipoll") else self.p.poll

    def register(self, sock, flags):
        """Watch sock for these flags; again: for these instead."""
        self.p.register(sock.poll_obj, flags)
        if sock not in self.socks:
            sock.ready = 0
            self.socks.append(sock)

    def modify(self, sock, flags):
        self.p.modify(sock.poll_obj, flags)

    def unregister(self, sock):
        if sock in self.socks:
            self.p.unregister(sock.poll_obj)
            self.socks.remove(sock)

    def wait(self, ms):
        """Wait for at most ms milliseconds; allocates nothing on MicroPython."""
        socks = self.socks
        for s in socks:
            s.ready = 0
        for o, flags in self._wait(ms):
            for s in socks:
                if s.poll_obj is o or s.fd == o:
                    s.ready = flags
                    break


Sock.fd = -1  # CPython's poll answers with file numbers
if not _MP:
    Sock.fd = property(lambda self: self.s.fileno())


class Listener:
    """A listening TCP socket."""

    def __init__(self, s, cfg):
        self.s = self.poll_obj = s
        self.cfg = cfg
        self.ready = 0
        self.fd = -1 if _MP else s.fileno()
        s.setblocking(False)

    def accept(self):
        """(Sock, (ip, port)) or None when nobody waits."""
        try:
            s, addr = self.s.accept()
        except OSError as e:
            if _errno(e) in _AGAIN:
                return None
            raise
        _set_options(s, self.cfg, True)
        remote = _name(addr)
        return Sock(s, remote), remote

    def close(self):
        self.s.close()


class UdpServer:
    """A bound datagram socket that hears everybody; `connect` makes it the flow of one peer."""

    def __init__(self, s):
        self.s = self.poll_obj = s
        self.ready = 0
        self.fd = -1 if _MP else s.fileno()
        s.setblocking(False)

    def recvfrom_into(self, buf):
        """(n, address) or None. The address goes back into `sendto` and `connect` as it is."""
        try:
            if _MP:
                data, addr = self.s.recvfrom(len(buf))
                n = len(data)
                buf[:n] = data
                return n, addr
            return self.s.recvfrom_into(buf)
        except OSError as e:
            if _errno(e) in _AGAIN:
                return None
            raise

    def sendto(self, buf, addr):
        return self.s.sendto(buf, addr)

    def connect(self, addr):
        """The Sock of this peer alone; this object must not be used any more."""
        self.s.connect(addr)
        return Sock(self.s, _name(addr))

    def name(self, addr):
        """(ip, port) of an address as text and number."""
        return _name(addr)

    def close(self):
        self.s.close()


def _name(addr):
    if isinstance(addr, tuple):
        return addr[0], addr[1]
    try:  # unix port: a packed sockaddr
        family, ip, port = socket.sockaddr(addr)[:3]
        return socket.inet_ntop(family, ip), port
    except (AttributeError, ValueError, TypeError, OSError):
        return None


def _resolve(host, port, cfg, kind):
    """(family, address). IPv4 unless ipv6 was asked for: a bare bind('') is IPv6-only on some ports."""
    v6 = bool(cfg.get("ipv6"))
    want = socket.AF_INET6 if v6 else socket.AF_INET
    if not host:
        host = "::" if v6 else "0.0.0.0"
    try:
        for ai in socket.getaddrinfo(host, port, want, kind):
            if ai[0] == want:
                return want, ai[-1]
    except OSError as e:
        raise IperfError("unreachable", "cannot resolve %r: %s" % (host, e), _errno(e)) from None
    raise IperfError("unreachable", "%r has no IPv%d address" % (host, 6 if v6 else 4))


def _errno(e):
    return e.args[0] if e.args and isinstance(e.args[0], int) else 0


def _open(kind, family, cfg):
    s = socket.socket(family, kind)
    try:
        _set_options(s, cfg, kind == socket.SOCK_STREAM)
    except Exception:
        s.close()
        raise
    return s


# Linux's numbers: MicroPython's socket module does not name them
_SET = (
    ("window", 1, 7, False),  # SO_SNDBUF
    ("window", 1, 8, False),  # SO_RCVBUF
    ("tos", 0, 1, False),  # IP_TOS
    ("ttl", 0, 2, False),  # IP_TTL
    ("mss", 6, 2, True),  # TCP_MAXSEG
    ("nodelay", 6, 1, True),  # TCP_NODELAY: the same number in lwIP
)


def _set_options(s, cfg, tcp):
    for key, level, opt, tcp_only in _SET:
        v = cfg.get(key)
        if v in (None, False) or (tcp_only and not tcp):
            continue
        if level == 0 and cfg.get("ipv6"):
            level, opt = 41, 67 if opt == 1 else 16  # IPV6_TCLASS, IPV6_UNICAST_HOPS
        try:
            s.setsockopt(level, opt, int(v))
        except (OSError, ValueError) as e:
            raise IperfError("unsupported", "the network stack refuses %s=%s: %s" % (key, v, e)) from None


def _bind(s, host, port, cfg, kind):
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    _, addr = _resolve(host, port, cfg, kind)
    try:
        s.bind(addr)
    except OSError as e:
        s.close()
        n = _errno(e)
        if n in (98, 112):
            raise IperfError("usage", "port %d is in use on the board: reset it, or choose another port"
                             % port, n) from None  # fmt: skip
        raise IperfError("usage", "cannot bind to %s port %d: %s" % (host or "*", port, e), n) from None


def connect_error(n, host, port):
    """The IperfError for errno n of a connect: three causes, three texts."""
    where = "%s port %d" % (host, port)
    if n in _REFUSED:
        return IperfError("refused", "%s refused the connection: no server listens there" % where, n)
    if n in _NOROUTE:
        return IperfError("unreachable", "no route to %s: check address, subnet and gateway" % where, n)
    if n in (110, 116):
        return IperfError("timeout", "%s does not answer: is it up, or does a firewall drop the packets?"
                          % where, n)  # fmt: skip
    return IperfError("unreachable", "cannot connect to %s: errno %d" % (where, n), n)


def tcp_connect(host, port, cfg, timeout_ms):
    """A connected Sock. Raises IperfError refused, unreachable, timeout."""
    family, addr = _resolve(host, port, cfg, socket.SOCK_STREAM)
    s = _open(socket.SOCK_STREAM, family, cfg)
    try:
        if cfg.get("bind"):
            _bind(s, cfg["bind"], 0, cfg, socket.SOCK_STREAM)
        s.setblocking(False)
        n = _try_connect(s, addr)
        if n:
            if n not in _EINPROGRESS:
                raise connect_error(n, host, port)
            _wait_connected(s, addr, host, port, timeout_ms)
        return Sock(s, (host, port))
    except Exception:
        s.close()
        raise


def _try_connect(s, addr):
    try:
        s.connect(addr)
        return 0
    except OSError as e:
        return _errno(e)


def _wait_connected(s, addr, host, port, timeout_ms):
    p = select.poll()
    p.register(s, POLLOUT)
    t0 = clock.ticks_us()
    left = timeout_ms
    while True:
        got = p.poll(min(left, 500))
        if got:
            break
        left = timeout_ms - clock.ticks_diff(clock.ticks_us(), t0) // 1000
        if left <= 0:
            raise connect_error(110, host, port)
    if got[0][1] & (_POLLERR | _POLLHUP):
        # The pending error is what a second connect, or else a read, raises: there is no getsockopt.
        n = _try_connect(s, addr)
        if n in (0,) + _EISCONN:
            try:
                s.recv(1)
                n = 104
            except OSError as e:
                n = _errno(e)
        raise connect_error(n, host, port)


def tcp_listen(host, port, cfg, backlog):
    """A Listener. Raises IperfError usage when the port is taken."""
    family, _ = _resolve(host, port, cfg, socket.SOCK_STREAM)
    s = _open(socket.SOCK_STREAM, family, cfg)
    _bind(s, host, port, cfg, socket.SOCK_STREAM)
    s.listen(backlog)
    return Listener(s, cfg)


def udp_connect(host, port, cfg):
    """A Sock whose datagrams go to, and come from, one address."""
    family, addr = _resolve(host, port, cfg, socket.SOCK_DGRAM)
    s = _open(socket.SOCK_DGRAM, family, cfg)
    try:
        if cfg.get("bind") or cfg.get("local_port"):
            _bind(s, cfg.get("bind"), cfg.get("local_port") or 0, cfg, socket.SOCK_DGRAM)
        s.connect(addr)
    except OSError as e:
        s.close()
        raise connect_error(_errno(e), host, port) from None
    return Sock(s, (host, port))


def udp_bind(host, port, cfg):
    """A UdpServer. Raises IperfError usage when the port is taken."""
    family, _ = _resolve(host, port, cfg, socket.SOCK_DGRAM)
    s = _open(socket.SOCK_DGRAM, family, cfg)
    _bind(s, host, port, cfg, socket.SOCK_DGRAM)
    return UdpServer(s)
