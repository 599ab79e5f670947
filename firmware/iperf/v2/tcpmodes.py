"""The TCP client's other modes: reverse and full duplex on its own connections, dual and tradeoff, where
the server connects back."""

from iperf import clock, hot
from iperf.engine import POLLIN
from iperf.errors import IperfError
from iperf.flow import Flow
from iperf.v2 import common, modes, wire
from iperf.v2.tcp import PROBE_US, TcpClient

_BACK_US = 5000000  # for the server to connect back (iperf waits 3 s)
_SLOP_US = 5000000  # that the server's direction may take longer
_IDLE_US = 10000000


class TcpModes(TcpClient):
    listener = None

    def buffers(self):
        self.asked = self.cfg["length"] or 0
        return 1 if self.kind == "reverse" else 2

    def connect(self):
        cfg, kind = self.cfg, self.kind
        self.rbuf = self.bufs[-1]
        if kind in ("dual", "tradeoff"):
            self.listener = self.layer.tcp_listen(cfg["bind"], cfg["listen_port"], cfg, cfg["parallel"])
            self.poller.register(self.listener, POLLIN)
        n = cfg["parallel"]
        head = self._head()
        senders, receivers = [], []
        for k in range(n):
            s = self.open(head)
            if kind != "reverse":
                senders.append(self.sender(k, s, len(head)))
            if kind in ("reverse", "full_duplex"):
                receivers.append(Flow(k + 1 + (n if senders else 0), s, False, self.rbuf))
        return senders + receivers

    def _head(self):
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
        if self.kind == "reverse":
            self._receive(flows)
            return
        e = self.begin(flows, self.time_us)
        if self.kind == "dual":
            e.watch = ((self.listener, self._accept),)
        elif self.kind == "full_duplex":
            self._first_byte(flows[-self.cfg["parallel"]], PROBE_US)
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

    def _receive(self, flows):
        e = self.begin(flows, self.time_us and self.time_us + _SLOP_US)
        e.idle_us = _IDLE_US
        t0 = clock.ticks_us()
        came = self._first_byte(flows[0], _BACK_US)
        e.start()
        for f in flows:
            f.start_us = -clock.ticks_diff(clock.ticks_us(), t0)
        while came and not e.slice():
            pass
        reason = e.reason
        self.keep()
        if not sum(f.total(hot.C_BYTES) for f in flows):
            raise modes.no_data(self)
        if reason == "idle":
            raise IperfError("timeout", "%s went silent: no data for %d s" % (self.who, _IDLE_US // 1000000))

    def _first_byte(self, f, us):
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
        f = Flow(len(self.flows) + 1, sock, False, self.rbuf)
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
