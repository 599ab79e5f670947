"""The TCP client: the plain test."""

from iperf import clock
from iperf.errors import IperfError
from iperf.memory import buffer, forget
from iperf.v2 import common
from iperf.v2.client import Client
from iperf.v2.common import POLLIN

_EOF_US = 2000000  # the least time iperf waits for the server's EOF, and the longest that we do
_EOF_MOST_US = 60000000
PROBE_US = 250000  # between two looks at what the server may say (it should not say anything)


class TcpClient(Client):
    def run(self):
        self.one = bytearray(1)
        self.few = bytearray(64)
        self.bufs = buffer(self.cfg, self.buffers())
        self.source = _open(self.cfg["file"]) if self.cfg["file"] else None
        self.started()
        flows = self.connect()
        self.connected()
        self.test(flows)

    def buffers(self):
        return 1

    def connect(self):
        """Four zero bytes go first (iperf 2.1's server waits for them before it listens on)."""
        self.open(bytes(4))
        return [self.sender(k, s, 4) for k, s in enumerate(self.socks)]

    def open(self, head):
        """The connections; `head` is sent on each at once."""
        cfg = self.cfg
        for _ in range(cfg["parallel"]):
            s = self.layer.tcp_connect(cfg["host"], cfg["port"], cfg, int(cfg["connect_timeout"] * 1000))
            self.socks.append(s)
        forget("layers.socket_open")
        # what the test needs, before the server's clock runs
        import iperf.engine
        import iperf.flow  # noqa: F401

        for s in self.socks:
            s.write(head)

    def sender(self, k, sock, sent):
        from iperf.flow import Flow  # not before the connections stand

        f = Flow(k + 1, sock, True, self.bufs[0], rate=self.cfg["bandwidth"], source=self.source)
        common.count(f, sent)
        return f

    def test(self, flows):
        self.begin(flows, self.time_us)
        self.send()
        self.keep()
        self.bye()

    def send(self):
        """The senders' time; what the server says meanwhile tells an iperf3 server."""
        e = self.engine
        e.start()
        t = clock.ticks_us()
        while not (e.slice() or (self.kind and self.sent())):
            if clock.ticks_diff(clock.ticks_us(), t) > PROBE_US:
                t = clock.ticks_us()
                self.probe()
        self.end_senders()

    def probe(self):
        for k in range(self.cfg["parallel"]):
            self.swallow(self.socks[k])

    def bye(self):
        """Half-close, then wait (the clock stands already) until the server has closed too, so that it got
        everything. Where the port knows no half-close: close, the network stack sends the rest."""
        t0 = clock.ticks_us()
        bound = min(max(_EOF_US, self.time_us), _EOF_MOST_US)
        for s in self.socks:
            self.poller.register(s, POLLIN)
            if not s.shutdown_write():
                # a test shorter than the first look: an iperf3 server has had no time to answer
                if sum(t["us"] for t in self.res.streams) < PROBE_US:
                    self.poller.wait(PROBE_US // 1000)
                self.swallow(s)
                self.poller.unregister(s)
                s.close()
                continue
            try:
                while self.swallow(s):
                    left = bound - clock.ticks_diff(clock.ticks_us(), t0)
                    if left <= 0:
                        break
                    self.poller.wait(min(left // 1000 + 1, 500))
            finally:
                self.poller.unregister(s)

    def swallow(self, s):
        """Read what the server says (an ack: nothing of interest; unread data would make the close a
        reset). False once the connection is over. Raises IperfError wrong-peer."""
        try:
            n = s.readinto(self.one)  # alone: MicroPython drops what it read before a reset
            if n and self.greeted():
                raise self.wrong_peer()
            while n:
                n = s.readinto(self.few)
            return n is None
        except OSError:
            return False

    def greeted(self):
        """True for what an iperf3 server answers to any 37 bytes: 9 (send parameters) or 255 (busy). Neither
        the acks nor the payload of an iperf 2 begin so."""
        return self.one[0] in (9, 255)

    def wrong_peer(self):
        return IperfError("wrong-peer", "%s is an iPerf 3 server: use version 3, or start iperf (2) there, "
                          "whose port is 5001" % self.who)  # fmt: skip

    def broken(self, e):
        for s in self.socks:
            try:
                self.swallow(s)
            except IperfError as why:
                return why
        return Client.broken(self, e)


def _open(path):
    try:
        return open(path, "rb").readinto
    except OSError as e:
        raise IperfError("usage", "cannot read the file %s: %s" % (path, e)) from None
