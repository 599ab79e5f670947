"""The UDP client's modes with both directions: full duplex on its own sockets, dual and tradeoff, where the
server sends back."""

from iperf import clock, hot
from iperf.v2 import common, modes, request
from iperf.v2.answer import Report
from iperf.v2.common import POLLIN
from iperf.v2.inflow import InFlow
from iperf.v2.udpreverse import UdpReverse
from iperf.v2.udpsend import UdpSend

_BACK_US = 5000000
_SLOP_US = 3000000
_IDLE_US = 5000000


class UdpModes(UdpSend, UdpReverse):
    door = None
    datagram = UdpReverse.datagram

    def buffers(self):
        self.reports = []
        bufs = UdpReverse.buffers(self)
        if self.kind in ("dual", "tradeoff"):
            self._listen()
        return bufs

    def test(self, bufs):
        n = len(bufs)
        flows = self.senders(bufs)
        if self.kind == "full_duplex":
            flows += [self.inflow(k + 1 + n, self.socks[k]) for k in range(n)]
        e = self.begin(flows, self.time_us)
        if self.kind == "dual":
            self.poller.register(self.door.udp, POLLIN)
            e.watch = ((self.door.udp, self._look),)
        e.start()
        while not (e.slice() or common.all_done([f for f in flows if f.sender])):
            pass
        self.end_senders()
        self.finals(self.kind != "full_duplex")
        if self.kind == "tradeoff":
            self.keep()
            self.finish()
            self._trade()
        else:
            self._pump(_SLOP_US)
            self._check_back()
            self.keep()

    def _listen(self):
        from iperf.v2.door import Door

        cfg = self.cfg
        self.door = Door(self.layer, cfg["bind"], cfg["listen_port"], cfg, self.poller, self.rbuf,
                         self._wanted, self._stream, self._feed)  # fmt: skip

    def _look(self):
        self.door.look()
        self.engine.watch = ((self.door.udp, self._look),) if self.door.udp is not None else ()
        return False

    def _wanted(self, buf, n, addr):
        final = n >= 16 and buf[0] & 128
        return not final and len(common.receiving(self.flows)) < self.cfg["parallel"]

    def _stream(self, sock, buf, n, addr):
        self.socks.append(sock)
        layout, wide = request.layout(buf, n)
        first = len(self.flows) + 1 + (self.cfg["parallel"] if self.kind == "tradeoff" else 0)
        f = InFlow(first, sock, buf, layout, wide, request.number(buf))
        modes.joined(self, f)
        return f

    def _feed(self, flow, n):
        if flow.feed(n) == hot.FIN:
            self.engine.end(flow, hot.FIN)

    def _trade(self):
        e = self.begin([], 0)
        self.poller.register(self.door.udp, POLLIN)
        e.watch = ((self.door.udp, self._look),)
        e.start()
        self._pump(self.time_us + _SLOP_US)
        self._check_back()
        self.keep()

    def _pump(self, us):
        """Run the receivers to their end, at most `us` longer, and the final datagrams and reports."""
        e = self.engine
        owed = self.cfg["parallel"] if self.door is not None else 0
        e.slice_us = 5000
        e.idle_us = _IDLE_US
        e.end_in(us if self.time_us else 0)
        t0 = clock.ticks_us()
        over = False
        while True:
            if not over:
                over = e.slice()
                if over and e.reason not in ("time", "idle") and len(common.receiving(e.flows)) < owed:
                    # the server's streams are still to come
                    over = clock.ticks_diff(clock.ticks_us(), t0) > _BACK_US
                    e.clock.update()
                    self._look_while_waiting()
                if over:
                    e.finish()  # the last rows end here, not with the handshakes
            self.step()
            if over:
                if not self.busy():
                    return
                self.poller.wait(5)

    def _look_while_waiting(self):
        self.poller.wait(5)
        if self.door.udp is not None and self.door.udp.ready:
            self._look()

    def busy(self):
        return bool(self.fins or self.reports)

    def step(self):
        """One look at every handshake; reports for the streams that have just ended."""
        UdpSend.step(self)
        for h in list(self.reports):
            if h.step():
                self.reports.remove(h)
        if self.door is not None:
            for f in self.flows:
                if not f.sender and f.fin and f.answer:
                    f.answer = False
                    self.reports.append(Report(f, f.end_us - f.start_us))

    def _check_back(self):
        got = common.receiving(self.flows)
        self.silent(got)
        if self.door is not None and len(got) < self.cfg["parallel"]:
            raise modes.no_callback(self)
        if not any(f.total(hot.C_BYTES) for f in got):
            raise modes.no_data(self)

    def close(self):
        UdpSend.close(self)
        if self.door is not None:
            self.door.close()
