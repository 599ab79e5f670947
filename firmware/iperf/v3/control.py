"""The control connection: one-byte states and length-prefixed JSON, every wait bounded."""

import json

from iperf import clock
from iperf.errors import IperfError
from iperf.v3 import wire

POLLIN = 1
POLLOUT = 4


class Closed(Exception):
    """The peer closed, or reset, the control connection."""


class Control:
    """Control connection over a Sock of a layer. `drain` flows are read and dropped while waiting,
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

    def drain_from(self, flows, buf):
        """While waiting, read what comes on these flows' sockets into buf."""
        self.drain = [f.sock for f in flows if not f.sender and not f.done]
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
        self.poller.modify(self.sock, flags)
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

    def send_json(self, obj):
        """Length and text in one write: 3.12 gives up on a text that comes later (P3)."""
        text = json.dumps(obj).encode()
        n = len(text)
        self.write(bytes((n >> 24, n >> 16 & 255, n >> 8 & 255, n & 255)) + text)

    def read_json(self, timeout_ms, what, most):
        """A JSON object of at most `most` bytes. Raises Closed, IperfError protocol or peer."""
        h = self.read(4, timeout_ms, what)
        if h[0] == wire.SERVER_ERROR:  # an error frame where a length was due
            self.raise_error(bytes(h[1:]) + self._rest(1) + self._rest(4))
        n = h[0] << 24 | h[1] << 16 | h[2] << 8 | h[3]
        if n > most:
            if bytes(h).isdigit():
                raise IperfError("wrong-peer", "%s speaks iPerf 2, not iPerf 3" % self.who)
            raise IperfError("protocol", "%s announces %s of %d bytes: more than the %d that fit here"
                             % (self.who, what, n, most))  # fmt: skip
        data = self.read(n, timeout_ms, what)
        try:
            obj = json.loads(bytes(data).decode())
        except ValueError:
            obj = None
        if not isinstance(obj, dict):
            raise IperfError("protocol", "%s sent %s that are no JSON object" % (self.who, what))
        return obj

    def _rest(self, n):
        try:
            return bytes(self.read(n, 2000, "its error number"))
        except (Closed, IperfError):
            return b""

    def raise_error(self, frame=None):
        """Raise the peer error of a SERVER_ERROR frame (8 bytes; 3.12 sends 4 in one case)."""
        if frame is None:
            frame = self._rest(4) + self._rest(4)
        from iperf.v3 import why

        raise why.error_frame(self.who, frame)
