"""The datagram socket at which new streams arrive, and how each becomes a socket of its own."""

from iperf import clock
from iperf.engine import POLLIN
from iperf.errors import IperfError


class Door:
    """A bound UDP port. `look()` takes in what came:

    wanted(buf, n, addr)     of an unknown sender: True when a stream shall begin
    stream(sock, buf, n, addr) -> flow   makes it (buf[:n] is its first datagram), or closes sock: None
    feed(flow, n)            a datagram of it that came the slow way, the first one included
    """

    def __init__(self, layer, host, port, cfg, poller, buf, wanted, stream, feed):
        self.layer = layer
        self.at = (host, port, cfg)
        self.poller = poller
        self.buf = buf
        self.wanted = wanted
        self.stream = stream
        self.feed = feed
        self.known = []  # (address, flow) of the streams that run
        self.came = 0  # tick at which the last datagram that began a stream was taken in
        self.udp = None
        self.open()

    def open(self):
        self.udp = self.layer.udp_bind(*self.at)
        self.poller.register(self.udp, POLLIN)

    def look(self):
        """Take in what came. A new stream gets the socket it came to, connected to its sender, and a new
        one is bound for the next; what lies in the queue meanwhile is sorted here, in its order."""
        if self.udp is None:
            try:
                self.open()  # the network stack would not bind the port twice: one stream at a time
            except IperfError:
                return
        while True:
            got = self.udp.recvfrom_into(self.buf)
            if got is None:
                return
            n, addr = got
            self.came = clock.ticks_us()
            if self._feed(n, addr) or not self.wanted(self.buf, n, addr):
                continue
            old = self.udp
            self.udp = None
            rest = None
            try:
                self.open()
                rest = self._queue(old, addr, n)
            except IperfError:
                pass
            self.poller.unregister(old)
            if rest is None:
                self._begin(old.connect(addr), addr, n)
                return
            # what the others sent before this socket was connected is as good as new
            sock = old.connect(addr)
            for data, whose in rest:
                n = len(data)
                self.buf[:n] = data
                if sock is not None:
                    self._begin(sock, addr, n)
                    sock = None
                elif not self._feed(n, whose):
                    self._stranger(n, whose)

    def _queue(self, old, addr, n):
        """[(datagram, address)]: the first one and what else waits in this socket (bounded)."""
        rest = [(bytes(memoryview(self.buf)[:n]), addr)]
        size = n
        while size < len(self.buf) * 4:
            got = old.recvfrom_into(self.buf)
            if got is None:
                break
            rest.append((bytes(memoryview(self.buf)[: got[0]]), got[1]))
            size += got[0]
        return rest

    def _begin(self, sock, addr, n):
        flow = self.stream(sock, self.buf, n, addr)
        if flow is not None:
            self.known.append((addr, flow))
            self.feed(flow, n)

    def _stranger(self, n, addr):
        """A datagram of another new sender, in the queue of a socket that is taken: it begins its stream
        on the new socket."""
        if self.udp is None or not self.wanted(self.buf, n, addr):
            return
        old = self.udp
        self.udp = None
        try:
            self.open()
        except IperfError:
            pass
        self.poller.unregister(old)
        self._begin(old.connect(addr), addr, n)

    def _feed(self, n, addr):
        for a, flow in self.known:
            if a == addr and not flow.done:
                self.feed(flow, n)
                return True
        return False

    def name(self, addr):
        """(ip, port) of a sender's address."""
        return self.udp.name(addr)

    def forget(self, flow):
        """The stream is over: its address may come again."""
        self.known = [k for k in self.known if k[1] is not flow]

    def close(self):
        if self.udp is not None:
            self.poller.unregister(self.udp)
            self.udp.close()
            self.udp = None
