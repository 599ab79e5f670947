"""What every test of the UDP client begins with."""

from iperf.errors import IperfError
from iperf.memory import forget
from iperf.v2.client import Client


class UdpClient(Client):
    """Its modes make `datagram()`, which is sent, and run `test(datagrams)`."""

    def run(self):
        cfg = self.cfg
        self.fins = []  # final datagrams that wait for the server's report
        self.over = []  # those whose wait is over
        self.note_clock()
        forget("v2.why")
        try:
            bufs = self.buffers()
        except MemoryError:
            raise IperfError("memory", "no memory for %d buffer(s) of %d bytes: take fewer streams"
                             % (cfg["parallel"], cfg["length"])) from None  # fmt: skip
        self.started()
        for _ in bufs:
            self.socks.append(self.layer.udp_connect(cfg["host"], cfg["port"], cfg))
        forget("layers.socket_open")
        self.connected()
        self.test(bufs)

    def note_clock(self):
        # a frame of its own: while it lives, the module cannot go
        from iperf.v2 import why

        why.note_clock(self.cfg)

    def buffers(self):
        return [self.datagram() for _ in range(self.cfg["parallel"])]
