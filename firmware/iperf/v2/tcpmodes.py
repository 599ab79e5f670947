"""The TCP client's modes with both directions: full duplex on its own connections, dual and tradeoff, where
the server connects back."""

from iperf import clock, hot
from iperf.flow import Flow
from iperf.v2 import common, modes
from iperf.v2.common import POLLIN
from iperf.v2.tcp import PROBE_US, TcpClient
from iperf.v2.tcpreverse import TcpReverse

_BACK_US = 5000000  # for the server to connect back (iperf waits 3 s)
_SLOP_US = 5000000  # that the server's direction may take longer
_IDLE_US = 10000000


class TcpModes(TcpReverse):
    listener = None

    def buffers(self):
        TcpReverse.buffers(self)
        return 2

    def connect(self):
        cfg, kind = self.cfg, self.kind
        if kind in ("dual", "tradeoff"):
            self.listener = self.layer.tcp_listen(cfg["bind"], cfg["listen_port"], cfg, cfg["parallel"])
            self.poller.register(self.listener, POLLIN)
        head = self.head()
        self.open(head)
        flows = [self.sender(k, s, len(head)) for k, s in enumerate(self.socks)]
        return flows + self.receivers() if kind == "full_duplex" else flows

    def test(self, flows):
        e = self.begin(flows, self.time_us)
        if self.kind == "dual":
            e.watch = ((self.listener, self._accept),)
        elif self.kind == "full_duplex":
            self.first_byte(flows[-self.cfg["parallel"]], PROBE_US)
        self.send()
        if self.kind == "tradeoff":
            self.keep()
            self.bye()
            self._trade()
            return
        for f in flows:
            if f.sender and not f.sock.shutdown_write() and self.kind == "dual":
                self.swallow(f.sock)
                f.sock.close()
        self._drain(_SLOP_US)
        self.keep()
        for s in self.socks:
            self.swallow(s)

    def sent(self):
        return common.all_done([f for f in self.flows if f.sender])

    def probe(self):
        if self.kind != "full_duplex":
            TcpClient.probe(self)

    def _accept(self):
        """A connection that the server made."""
        got = self.listener.accept()
        if got is None:
            return False
        sock, _ = got
        if len(common.receiving(self.flows)) >= self.cfg["parallel"]:
            sock.close()  # not of this test
            return False
        self.socks.append(sock)
        f = Flow(len(self.flows) + 1, sock, False, self.bufs[-1])
        if self.kind == "tradeoff":
            f.id += self.cfg["parallel"]
        modes.joined(self, f)
        return False

    def _trade(self):
        """The second half of a tradeoff: the server connects back and sends."""
        e = self.begin([], 0)
        e.watch = ((self.listener, self._accept),)
        e.start()
        self._drain(self.time_us + _SLOP_US)
        self.keep()

    def _drain(self, us):
        """Let the receivers run on to their EOF, at most `us` longer; connections that the server owes
        may still come for a while."""
        e = self.engine
        owed = self.cfg["parallel"] if self.listener is not None else 0
        t0 = clock.ticks_us()
        e.end_in(us if self.time_us else 0)
        e.idle_us = _IDLE_US
        while True:
            over = e.slice()
            if not over:
                continue
            if e.reason in ("time", "idle") or len(common.receiving(e.flows)) >= owed:
                break
            if clock.ticks_diff(clock.ticks_us(), t0) > _BACK_US:
                break
            e.clock.update()
            self.poller.wait(20)
            if self.listener.ready:
                self._accept()
        got = len(common.receiving(e.flows))
        if got < owed:
            raise modes.no_callback(self)
        if not sum(f.total(hot.C_BYTES) for f in common.receiving(e.flows)):
            raise modes.no_data(self)

    def close(self):
        TcpClient.close(self)
        if self.listener is not None:
            self.listener.close()
