"""Layer `netconn`: our C module over lwIP's raw API. TCP sends without copying, UDP copies the header
only; received data is copied once, by readinto. Rules of ownership: docs/netconn.md."""

import socket

import netconn

from iperf import clock
from iperf.errors import IperfError
from iperf.layers.socket import POLLOUT, Poller, errno_of
from iperf.layers.socket_open import connect_error, resolve

NAME = "netconn"

_TCP = netconn.NETCONN_TCP
_UDP = netconn.NETCONN_UDP
_HEADER = 64  # bytes of a datagram that may change from one to the next: both protocols' headers
_DEPTH = 32  # datagrams waiting to be read


def caps():
    """What this layer honours (docs/contracts.md, section 4)."""
    why = "lwIP fixes it when it is compiled (choose another lwIP profile)"
    return {
        "udp_max": 1472,
        "options": {"tos", "ttl", "nodelay", "bind"},
        "why": {"window": why, "mss": why, "ipv6": "this firmware's lwIP is built without IPv6"},
    }


def counters():
    """lwIP's own statistics where the firmware has them (module `lwipstats` of our port)."""
    try:
        import lwipstats

        return lwipstats.counters()
    except ImportError:
        return {}


class Sock:
    """A connected, non-blocking connection; `write` and `readinto` are the C module's own."""

    fd = -1

    def __init__(self, nc, remote=None):
        self.nc = self.poll_obj = nc
        self.remote = remote
        self.local = nc.local()
        self.ready = 0
        nc.setblocking(False)
        self.write = nc.write
        self.readinto = nc.readinto

    def recv_datagram(self, most):
        """One datagram as bytes (allocates: for handshakes), or None."""
        nb = netconn.Netbuf()
        if self.nc.recv(nb) is None:
            return None
        data = bytes(nb)[:most]
        nb.free()
        return data

    def shutdown_write(self):
        """Half-close: FIN after what was written."""
        try:
            self.nc.shutdown()
        except OSError:
            pass
        return True

    def close(self):
        self.nc.close()


class Listener:
    """A listening TCP connection."""

    fd = -1

    def __init__(self, nc, cfg, make):
        self.nc = self.poll_obj = nc
        self.cfg = cfg
        self.make = make
        self.ready = 0
        nc.setblocking(False)

    def accept(self):
        """(Sock, (ip, port)) or None when nobody waits."""
        got = self.nc.accept()
        if got is None:
            return None
        _config(got[0], self.cfg, True)
        return self.make(got[0], got[1]), got[1]

    def close(self):
        self.nc.close()


class UdpServer:
    """A bound datagram socket that hears everybody; `connect` makes it the flow of one peer."""

    fd = -1

    def __init__(self, nc):
        self.nc = self.poll_obj = nc
        self.nb = netconn.Netbuf()
        self.ready = 0
        nc.setblocking(False)

    def recvfrom_into(self, buf):
        """(n, address) or None."""
        n = self.nc.recv(self.nb)
        if n is None:
            return None
        addr = self.nb.addr()
        at = 0
        more = True
        while more and at < len(buf):  # a datagram put together from fragments is a chain
            part = memoryview(self.nb)[: len(buf) - at]
            buf[at : at + len(part)] = part
            at += len(part)
            more = self.nb.next()
        self.nb.free()
        return at, addr

    def sendto(self, buf, addr):
        return self.nc.sendto(buf, addr)

    def connect(self, addr):
        """The Sock of this peer alone; this object must not be used any more."""
        self.nc.connect(addr)
        return Sock(self.nc, addr)

    def name(self, addr):
        """(ip, port) of an address as text and number."""
        return addr

    def close(self):
        self.nc.close()


def _config(nc, cfg, tcp):
    options = {}
    for key in ("tos", "ttl"):
        if cfg.get(key) is not None:
            options[key] = int(cfg[key])
    if tcp:
        options["nodelay"] = bool(cfg.get("nodelay"))
        # a block of a file is overwritten by the next one while lwIP may still send it
        options["flags"] = netconn.NETCONN_COPY if cfg.get("file") else netconn.NETCONN_NOCOPY
    else:
        options["header"] = _HEADER
    nc.config(**options)


def _open(kind, cfg):
    try:
        nc = netconn.Netconn(kind, _DEPTH)
    except OSError as e:
        raise IperfError("memory", "lwIP has no connection left (errno %d): close others, or reset the board"
                         % errno_of(e), errno_of(e)) from None  # fmt: skip
    _config(nc, cfg, kind == _TCP)
    return nc


def _bind(nc, host, port, cfg):
    try:
        nc.bind((host or "", port))
    except OSError as e:
        nc.close()
        n = errno_of(e)
        if n in (98, 112):
            raise IperfError("usage", "port %d is in use on the board: reset it, or choose another port"
                             % port, n) from None  # fmt: skip
        raise IperfError("usage", "cannot bind to %s port %d: %s" % (host or "*", port, e), n) from None


def _address(host, port, cfg):
    _, addr = resolve(host, port, cfg, socket.SOCK_STREAM)
    return addr[0], addr[1]


def _connect(nc, host, port, cfg, timeout_ms, make):
    addr = _address(host, port, cfg)
    try:
        if cfg.get("bind"):
            _bind(nc, cfg["bind"], 0, cfg)
        nc.setblocking(False)
        try:
            nc.connect(addr)
        except OSError as e:
            if errno_of(e) not in (115, 119):  # EINPROGRESS of MicroPython and of newlib
                raise
            p = Poller()
            sock = make(nc, (host, port))
            p.register(sock, POLLOUT)
            t0 = clock.ticks_us()
            while not sock.ready:
                left = timeout_ms - clock.ticks_diff(clock.ticks_us(), t0) // 1000
                if left <= 0:
                    raise connect_error(110, host, port) from None
                p.wait(min(left, 500))
            if nc.err():
                raise OSError(nc.err()) from None
        return make(nc, (host, port))
    except OSError as e:
        nc.close()
        raise connect_error(errno_of(e), host, port) from None
    except Exception:
        nc.close()
        raise


def tcp_connect(host, port, cfg, timeout_ms):
    """A connected Sock. Raises IperfError refused, unreachable, timeout."""
    return _connect(_open(_TCP, cfg), host, port, cfg, timeout_ms, Sock)


def tcp_listen(host, port, cfg, backlog, make=Sock):
    """A Listener. Raises IperfError usage when the port is taken."""
    nc = _open(_TCP, cfg)
    _bind(nc, host, port, cfg)
    nc.listen(backlog)
    return Listener(nc, cfg, make)


def udp_connect(host, port, cfg):
    """A Sock whose datagrams go to, and come from, one address."""
    nc = _open(_UDP, cfg)
    if cfg.get("bind") or cfg.get("local_port"):
        _bind(nc, cfg.get("bind"), cfg.get("local_port") or 0, cfg)
    try:
        nc.connect(_address(host, port, cfg))
    except OSError as e:
        nc.close()
        raise connect_error(errno_of(e), host, port) from None
    return Sock(nc, (host, port))


def udp_bind(host, port, cfg):
    """A UdpServer. Raises IperfError usage when the port is taken."""
    nc = _open(_UDP, cfg)
    _bind(nc, host, port, cfg)
    return UdpServer(nc)
