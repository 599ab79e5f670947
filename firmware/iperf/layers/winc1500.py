"""Layer `winc1500`: the sockets of an ATWINC1500/1510 Wi-Fi module, without a copy of the payload.

The module must be up and have an address (winc1500.network); its wiring comes from `winc1500.setup` or
a file winc_board.py on the board. Interface: docs/contracts.md, section 4.
"""

import gc

import winc1500
from winc1500 import sockets as _s
from winc1500.compat import const, ticks_diff, ticks_ms
from winc1500.errors import WincError
from winc1500.wifi import text

from iperf.errors import IperfError

NAME = "winc1500"

POLLIN = 1
POLLOUT = 4

# errno: MicroPython's numbers, which are Linux's
_EINVAL = const(22)
_EMFILE = const(24)
_EADDRINUSE = const(98)
_ENETDOWN = const(100)
_ENOTCONN = const(107)
_ETIMEDOUT = const(110)
_ECONNREFUSED = const(111)

_CHIP = "the WINC1500's own TCP/IP stack has no such setting"


def caps():
    """What this layer honours (docs/contracts.md, section 4)."""
    why = {}
    for k in ("window", "mss", "tos", "ttl", "nodelay"):
        why[k] = _CHIP
    why["ipv6"] = "the WINC1500 speaks IPv4 only"
    return {"udp_max": _s.MAX_SEND, "options": {"bind"}, "why": why}


def counters():
    """Counters of the driver since the first socket was opened: SPI bytes, calls and us, HIF waits, full
    buffers (winc1500.driver.Module.counters)."""
    try:
        return winc1500.module().counters()
    except OSError:
        return {}


def _stack():
    """The socket stack of a module that has an address. Raises IperfError network-down."""
    try:
        m = winc1500.module()
        k = m.need()
        for _ in range(8):  # a lost link is known only once its message was served
            if not k.service():
                break
        k.need_link()
    except OSError as e:
        raise IperfError("network-down", _text(e), e.args[0]) from None
    for s in k.table:
        if s is not None:
            return k
    m.clear_counters()
    gc.collect()  # what follows lives as long as the test: let it lie low in a small heap
    return k


def _text(e):
    return e.args[1] if len(e.args) > 1 else str(e)


def _error(e, host, port):
    """The IperfError of a driver's OSError."""
    n = e.args[0]
    where = "%s port %d" % (host or "*", port)
    if n == _ECONNREFUSED:
        return IperfError("refused", "%s refused the connection: no server listens there" % where, n)
    if n == _ETIMEDOUT:
        return IperfError("timeout", "%s does not answer: is it up, or does a firewall drop the packets?"
                          % where, n)  # fmt: skip
    if n in (_ENETDOWN, _ENOTCONN):
        return IperfError("network-down", _text(e), n)
    if n in (_EADDRINUSE, _EMFILE):
        return IperfError("unsupported", _text(e), n)
    if n == _EINVAL:
        return IperfError("usage", "%s: %s" % (where, _text(e)), n)
    return IperfError("unreachable", "%s: %s" % (where, _text(e)), n)


def _local(k, cfg):
    """See to it that the address to bind to, if one was asked for, is the module's. Raises IperfError."""
    want = cfg.get("bind")
    if want and want not in ("0.0.0.0", text(k.wifi.ip)):
        raise IperfError("usage", "cannot bind to %s: the module's address is %s" % (want, text(k.wifi.ip)))


class Sock:
    """A connected socket of the module; `write` and `readinto` never wait."""

    def __init__(self, k, o, remote):
        self.k = k
        self.o = o
        self.remote = remote
        self.local = (text(k.wifi.ip), o.port)
        self.poll_obj = self
        self.ready = 0
        self.want = 0

    def write(self, buf):
        return self.k.write(self.o, buf)

    def readinto(self, buf):
        return self.k.read(self.o, buf)

    def recv_datagram(self, most):
        """One datagram as bytes (allocates: for handshakes), or None."""
        buf = bytearray(most)
        n = self.k.read(self.o, buf)
        return None if n is None else bytes(memoryview(buf)[:n])

    def configure(self, cfg):
        """Nothing can be set on a socket of the module (caps)."""

    def shutdown_write(self):
        """The module cannot half-close: wait until what was sent is acknowledged. Returns False."""
        try:
            self.k.drain(self.o, 5000)
        except OSError:
            pass
        return False

    def close(self):
        try:
            self.k.close(self.o)
        except OSError:  # the bus is gone: nothing can be said to the module any more
            pass


class Listener:
    """A listening TCP socket."""

    def __init__(self, k, o):
        self.k = k
        self.o = o
        self.poll_obj = self
        self.ready = 0
        self.want = 0

    def accept(self):
        """(Sock, (ip, port)) or None when nobody waits."""
        c = self.k.accept(self.o)
        if c is None:
            self.k.service()
            c = self.k.accept(self.o)
            if c is None:
                return None
        remote = (text(c.peer[0]), c.peer[1])
        return Sock(self.k, c, remote), remote

    def close(self):
        try:
            self.k.close(self.o)
        except OSError:
            pass


class UdpServer(Sock):
    """A bound datagram socket that hears everybody; `connect` makes it the flow of one peer."""

    def recvfrom_into(self, buf):
        """(n, address) or None. The address goes back into `sendto` and `connect` as it is."""
        n = self.k.read(self.o, buf)
        if n is None:
            return None
        return n, bytes(self.o.src)

    def sendto(self, buf, addr):
        return self.k.sendto(self.o, buf, addr[2:6], addr[0] << 8 | addr[1])

    def connect(self, addr):
        """The Sock of this peer alone; this object must not be used any more."""
        self.k.connect(self.o, addr[2:6], addr[0] << 8 | addr[1])
        return Sock(self.k, self.o, self.name(addr))

    def name(self, addr):
        return text(addr[2:6]), addr[0] << 8 | addr[1]


class Poller:
    """Readiness of Socks; `wait` serves the module's messages meanwhile. Allocates nothing."""

    def __init__(self):
        self.socks = []

    def register(self, sock, flags):
        sock.want = flags
        sock.ready = 0
        if sock not in self.socks:
            self.socks.append(sock)

    modify = register

    def unregister(self, sock):
        if sock in self.socks:
            self.socks.remove(sock)
            sock.ready = 0

    def wait(self, ms):
        """Wait for at most ms milliseconds until one is ready; at least one message is served."""
        if not self.socks:
            return
        k = self.socks[0].k
        t0 = ticks_ms()
        while True:
            busy = k.service(True)
            n = 0
            holder = False
            for s in self.socks:
                s.ready = k.flags(s.o, s.want)
                if s.ready:
                    n += 1
                    if s.ready & 1 and s.o.hold_n:
                        holder = True
            if k.hif.held and not holder:
                k.hif.poll()  # held for a socket that nobody here reads: taken out of the way
                continue
            if n or ticks_diff(ticks_ms(), t0) >= ms:
                return
            k.idle(busy)


def tcp_connect(host, port, cfg, timeout_ms):
    """A connected Sock. Raises IperfError refused, unreachable, timeout, network-down."""
    k = _stack()
    _local(k, cfg)
    o = _s.Sock(True)
    t0 = ticks_ms()
    try:
        k.connect(o, k.resolve(host, timeout_ms), port)
        while o.state == _s.CONNECTING:
            k.check(o)
            if ticks_diff(ticks_ms(), t0) > timeout_ms:
                raise WincError(_ETIMEDOUT, "no answer")
            k.idle(k.service())
        k.check(o)
    except OSError as e:
        _give_up(k, o)
        raise _error(e, host, port) from None
    return Sock(k, o, (host, port))


def _give_up(k, o):
    try:
        k.close(o, 0)
    except OSError:
        pass


def tcp_listen(host, port, cfg, backlog):
    """A Listener. Raises IperfError when the port is taken."""
    k = _stack()
    _local(k, {"bind": host})
    o = _s.Sock(True)
    try:
        k.bind(o, port)
        k.listen(o, backlog)
    except OSError as e:
        _give_up(k, o)
        raise _error(e, host, port) from None
    return Listener(k, o)


def _udp(k, port, host):
    o = _s.Sock(False)
    try:
        k.bind(o, port)
    except OSError as e:
        _give_up(k, o)
        raise _error(e, host, port) from None
    return o


def udp_connect(host, port, cfg):
    """A Sock whose datagrams go to, and come from, one address."""
    k = _stack()
    _local(k, cfg)
    o = _udp(k, cfg.get("local_port") or 0, host)
    try:
        k.connect(o, k.resolve(host), port)
    except OSError as e:
        _give_up(k, o)
        raise _error(e, host, port) from None
    return Sock(k, o, (host, port))


def udp_bind(host, port, cfg):
    """A UdpServer. Raises IperfError; the module binds a port once: one UDP stream at a time."""
    k = _stack()
    _local(k, {"bind": host})
    return UdpServer(k, _udp(k, port, host), None)
