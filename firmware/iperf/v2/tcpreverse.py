"""The TCP client's reverse test, and what it shares with the other modes."""

from iperf import clock
from iperf.errors import IperfError
from iperf.v2 import common, wire
from iperf.v2.common import POLLIN
from iperf.v2.tcp import TcpClient

_BACK_US = 5000000  # for the server to connect back (iperf waits 3 s)
_SLOP_US = 5000000  # that the server's direction may take longer
_IDLE_US = 10000000


class TcpReverse(TcpClient):
    def buffers(self):
        self.asked = self.cfg["length"] or 0
        return 1

    def connect(self):
        self.open(self.head())
        return self.receivers()

    def receivers(self):
        """The flows that come back on our own connections."""
        from iperf.flow import Flow

        more = 0 if self.kind == "reverse" else len(self.socks)
        return [Flow(k + 1 + more, s, False, self.bufs[-1]) for k, s in enumerate(self.socks)]

    def head(self):
        """The request."""
        cfg, kind = self.cfg, self.kind
        rate = cfg["bandwidth"]
        short = kind in ("dual", "tradeoff") and not rate
        flags = 0 if short else wire.EXTEND | wire.LEN | wire.HEAD_LEN << 1
        if kind in ("reverse", "full_duplex"):
            flags |= wire.V2
        else:
            flags |= wire.V1 | (wire.RUN_NOW if kind == "dual" else 0)
        head = bytearray(wire.V1_LEN if short else wire.HEAD_LEN)
        wire.put_v1(head, 0, flags, cfg["parallel"], cfg["listen_port"], self.asked, 0, self.amount)
        if not short:
            upper = {"reverse": wire.REVERSE, "full_duplex": wire.FULL_DUPLEX}.get(kind, 0)
            wire.put_extension(head, wire.V1_LEN, upper | (wire.BW_SET if rate else 0), rate, cfg["tos"] or 0)
        return head

    def test(self, flows):
        e = self.begin(flows, self.time_us and self.time_us + _SLOP_US)
        e.idle_us = _IDLE_US
        t0 = clock.ticks_us()
        came = self.first_byte(flows[0], _BACK_US)
        e.start()
        for f in flows:
            f.start_us = -clock.ticks_diff(clock.ticks_us(), t0)
        while came and not e.slice():
            pass
        reason = e.reason
        self.keep()
        if not sum(s["bytes"] for s in self.res.streams):
            from iperf.v2 import modes

            raise modes.no_data(self)
        if reason == "idle":
            raise IperfError("timeout", "%s went silent: no data for %d s" % (self.who, _IDLE_US // 1000000))

    def first_byte(self, f, us):
        """Wait for the first byte of a stream: it tells an iperf3 server, which closes soon after it. False
        when none came."""
        t0 = clock.ticks_us()
        self.poller.register(f.sock, POLLIN)
        while True:
            n = f.sock.readinto(self.one)
            if n:
                common.count(f, 1)
                if self.greeted():
                    raise self.wrong_peer()
            left = us - clock.ticks_diff(clock.ticks_us(), t0)
            if n is not None or left <= 0:
                return bool(n)
            self.poller.wait(min(left // 1000 + 1, 500))
