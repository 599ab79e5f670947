"""Layer `socket`: the port's own sockets (lwIP or the host OS), which copy."""

import select
import sys

NAME = "socket"

_MP = sys.implementation.name == "micropython"
POLLIN = 1
POLLOUT = 4
AGAIN = (11, 110, 35)  # EAGAIN, and what a socket with a time-out says


def errno_of(e):
    """The errno of an OSError, 0 where it has none."""
    return e.args[0] if e.args and isinstance(e.args[0], int) else 0


def _more(part):
    """The parts that a running test does not need: loaded when asked for (iperf.forget drops them)."""
    return getattr(__import__("iperf.layers.socket_" + part).layers, "socket_" + part)


def caps():
    """What this layer honours on this port (docs/contracts.md, section 4)."""
    return _more("open").caps()


def tcp_connect(host, port, cfg, timeout_ms):
    """A connected Sock. Raises IperfError refused, unreachable, timeout."""
    return _more("open").tcp_connect(host, port, cfg, timeout_ms)


def udp_connect(host, port, cfg):
    """A Sock whose datagrams go to, and come from, one address."""
    return _more("open").udp_connect(host, port, cfg)


def tcp_listen(host, port, cfg, backlog):
    """A Listener. Raises IperfError usage when the port is taken."""
    return _more("serve").tcp_listen(host, port, cfg, backlog)


def udp_bind(host, port, cfg):
    """A UdpServer. Raises IperfError usage when the port is taken."""
    return _more("serve").udp_bind(host, port, cfg)


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
            if errno_of(e) in AGAIN:
                return None
            raise

    def configure(self, cfg):
        """Set cfg's options on an accepted connection. Raises IperfError unsupported."""
        for key in ("window", "tos", "ttl", "mss", "nodelay"):
            if cfg.get(key):
                _more("open").set_options(self.s, cfg, True)
                return

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
