"""Layer `socket`: opening connections, options, and what an errno of a connect means."""

import select
import socket
import sys

from iperf import clock
from iperf.errors import IperfError
from iperf.layers.socket import POLLOUT, Sock, errno_of

_MP = sys.implementation.name == "micropython"
_LINUX = sys.platform == "linux"
_POLLERR = 8
_POLLHUP = 16

# errno values: Linux, lwIP in MicroPython (which uses Linux's), and ESP-IDF (newlib's)
_EINPROGRESS = (115, 119, 11, 114, 10035)
_EISCONN = (106, 127)
_REFUSED = (111, 104, 103)
_NOROUTE = (113, 101, 118, 114)


def caps():
    """What this layer honours on this port (docs/contracts.md, section 4)."""
    if not _MP or _LINUX:
        opts = {"window", "mss", "tos", "ttl", "nodelay", "ipv6", "bind"}
        return {"udp_max": 65507, "options": opts, "why": {}}
    can = {"bind"}
    why = {}
    for k in ("tos", "ttl", "ipv6"):
        why[k] = "MicroPython's socket module on %s cannot set it" % sys.platform
    for k in ("window", "mss"):
        why[k] = "on %s it is fixed when lwIP is compiled" % sys.platform
    if hasattr(socket, "TCP_NODELAY"):
        can.add("nodelay")
    else:
        why["nodelay"] = "MicroPython's socket module has no TCP_NODELAY before 1.24"
    return {"udp_max": 1472, "options": can, "why": why}


def resolve(host, port, cfg, kind):
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
        raise IperfError("unreachable", "cannot resolve %r: %s" % (host, e), errno_of(e)) from None
    raise IperfError("unreachable", "%r has no IPv%d address" % (host, 6 if v6 else 4))


def open_socket(kind, family, cfg):
    s = socket.socket(family, kind)
    try:
        set_options(s, cfg, kind == socket.SOCK_STREAM)
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
    ("nodelay", 6, getattr(socket, "TCP_NODELAY", 1), True),  # modlwip's number is lwIP's TF_NODELAY
)


def set_options(s, cfg, tcp):
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


def bind(s, host, port, cfg, kind):
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    _, addr = resolve(host, port, cfg, kind)
    try:
        s.bind(addr)
    except OSError as e:
        s.close()
        n = errno_of(e)
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
    family, addr = resolve(host, port, cfg, socket.SOCK_STREAM)
    s = open_socket(socket.SOCK_STREAM, family, cfg)
    try:
        if cfg.get("bind"):
            bind(s, cfg["bind"], 0, cfg, socket.SOCK_STREAM)
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
        return errno_of(e)


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
                n = errno_of(e)
        raise connect_error(n, host, port)


def udp_connect(host, port, cfg):
    """A Sock whose datagrams go to, and come from, one address."""
    family, addr = resolve(host, port, cfg, socket.SOCK_DGRAM)
    s = open_socket(socket.SOCK_DGRAM, family, cfg)
    try:
        if cfg.get("bind") or cfg.get("local_port"):
            bind(s, cfg.get("bind"), cfg.get("local_port") or 0, cfg, socket.SOCK_DGRAM)
        s.connect(addr)
    except OSError as e:
        s.close()
        raise connect_error(errno_of(e), host, port) from None
    return Sock(s, (host, port))
