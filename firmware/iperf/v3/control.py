"""The control connection: bytes and one-byte states, every wait bounded (JSON: iperf.v3.message)."""

from iperf import clock
from iperf.errors import IperfError

POLLIN = 1
POLLOUT = 4


class Closed(Exception):
    """The peer closed, or reset, the control connection."""


class Control:
    """Control connection over a Sock of a layer. `drain` sockets are read and dropped while waiting,
    so that a peer that still sends is not stuck behind its own data."""

    def __init__(self, layer, sock, who):
        self.layer = layer
        self.sock = sock
        self.who = who
        self.one = bytearray(1)
        self.poller = layer.Poller()
        self.poller.register(sock, POLLIN)
        self.drain = ()
        self.junk = None

    def close(self):
        self.poller.unregister(self.sock)
        self.sock.close()

    def drain_from(self, socks, buf):
        """While waiting, read what comes on these sockets into buf."""
        self.drain = socks
        self.junk = buf
        for s in self.drain:
            self.poller.register(s, POLLIN)

    def drain_stop(self):
        for s in self.drain:
            self.poller.unregister(s)
        self.drain = ()

    def _wait(self, flags, t0, timeout_ms, what):
        left = timeout_ms - clock.ticks_diff(clock.ticks_us(), t0) // 1000
        if left <= 0:
            raise IperfError("timeout", "%s did not send %s within %d s"
                             % (self.who, what, timeout_ms // 1000))  # fmt: skip
        # registered anew: during the test the socket was the engine's to watch
        self.poller.register(self.sock, flags)
        self.poller.wait(left if left < 500 else 500)
        for s in self.drain:
            if s.ready:
                try:
                    if s.readinto(self.junk) == 0:
                        self.poller.modify(s, 0)
                except OSError:
                    self.poller.modify(s, 0)

    def read(self, n, timeout_ms, what):
        """Exactly n bytes. Raises Closed, IperfError timeout."""
        buf = bytearray(n)
        mv = memoryview(buf)
        got = 0
        t0 = clock.ticks_us()
        while got < n:
            try:
                k = self.sock.readinto(mv[got:])
            except OSError as e:
                raise Closed(e) from None
            if k is None:
                self._wait(POLLIN, t0, timeout_ms, what)
            elif k == 0:
                raise Closed(got)
            else:
                got += k
        return buf

    def write(self, data, timeout_ms=10000):
        mv = memoryview(data)
        t0 = clock.ticks_us()
        sent = 0
        while sent < len(data):
            try:
                k = self.sock.write(mv[sent:])
            except OSError as e:
                raise Closed(e) from None
            if k is None:
                self._wait(POLLOUT, t0, timeout_ms, "room for a message")
            else:
                sent += k

    def state(self, timeout_ms, what="its next state"):
        """The next state byte, 0 … 255."""
        return self.read(1, timeout_ms, what)[0]

    def try_state(self):
        """A state byte if one is there, else None. Raises Closed."""
        try:
            k = self.sock.readinto(self.one)
        except OSError as e:
            raise Closed(e) from None
        if k is None:
            return None
        if k == 0:
            raise Closed(0)
        return self.one[0]

    def send_state(self, s):
        self.write(bytes((s,)))
