"""The datagram socket at which new streams arrive, and how each becomes a socket of its own."""

import gc

from iperf import clock
from iperf.errors import IperfError
from iperf.v2.common import POLLIN

_TURNS = 64  # datagrams taken the slow way before the streams have their turn
_KEPT = 1 << 19  # bytes


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
        """Take in what came. A new stream gets the socket that its first datagram came to, connected to its
        sender, and a new one is bound for the next; what others have sent to that socket meanwhile is kept
        and goes its way in its order."""
        if self.udp is None:
            try:
                self.open()  # the network stack would not bind the port twice: one stream at a time
            except IperfError:
                return
        kept = []  # (datagram, address)
        turns = _TURNS
        while kept or turns:
            if kept:
                data, addr = kept.pop(0)
                n = len(data)
                self.buf[:n] = data
            else:
                turns -= 1
                got = self.udp.recvfrom_into(self.buf) if self.udp is not None else None
                if got is None:
                    return
                n, addr = got
            if self._feed(n, addr) or self.udp is None or not self.wanted(self.buf, n, addr):
                continue
            self.came = clock.ticks_us()
            first = bytes(memoryview(self.buf)[:n])
            old, self.udp = self.udp, None
            try:
                self.open()
                self._keep(old, kept)
            except IperfError:
                pass
            self.poller.unregister(old)
            self.buf[:n] = first
            flow = self.stream(old.connect(addr), self.buf, n, addr)
            if flow is not None:
                self.known.append((addr, flow))
                self.feed(flow, n)

    def _keep(self, old, kept):
        """Read out a socket that is about to be one stream's alone."""
        left = gc.mem_free() // 4 if hasattr(gc, "mem_free") else _KEPT
        while left > 0:
            got = old.recvfrom_into(self.buf)
            if got is None:
                return
            kept.append((bytes(memoryview(self.buf)[: got[0]]), got[1]))
            left -= got[0] + 64

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
