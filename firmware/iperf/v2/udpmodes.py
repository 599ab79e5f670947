"""The UDP client's other modes: reverse and full duplex on its own sockets, dual and tradeoff, where the
server sends back."""

from iperf import clock, hot
from iperf.engine import POLLIN
from iperf.errors import IperfError
from iperf.v2 import common, modes, request, wire
from iperf.v2.inflow import InFlow, Report
from iperf.v2.udp import UdpClient

_ASK_US = 20000  # between two requests of a reverse test (iperf: up to 20 ms)
_ASK_TIMES = 150
_BACK_US = 5000000
_SLOP_US = 3000000
_IDLE_US = 5000000


class UdpModes(UdpClient):
    door = None

    def buffers(self):
        self.reports = []
        # what comes back has our length, or 2.0's default
        self.rbuf = bytearray(max(self.cfg["length"], 1500))
        bufs = UdpClient.buffers(self)
        if self.kind in ("dual", "tradeoff"):
            self._listen()
        return bufs

    def datagram(self):
        """A datagram whose header says what is asked for; every one of the test carries it."""
        cfg, kind = self.cfg, self.kind
        buf = bytearray(max(cfg["length"], wire.UDP_HEAD_LEN if kind == "reverse" else 16))
        at = 12 if cfg["old"] else 16
        flags = 0 if cfg["old"] or cfg["compat"] else wire.SEQNO64
        upper = 0
        if kind == "reverse":
            buf[3] = 1  # a 2.2 server overhears a request with number 0
        if kind in ("reverse", "full_duplex"):
            flags |= wire.V2 | wire.UDPTESTS
            upper |= wire.REVERSE if kind == "reverse" else wire.FULL_DUPLEX | wire.NO_FIN
        else:
            flags |= wire.V1 | (wire.RUN_NOW if kind == "dual" else 0)
        extended = not cfg["compat"]
        if extended:
            # the rate stands in the extension: without it a 2.1 server answers unpaced
            flags |= wire.EXTEND | wire.LEN | wire.UDP_HEAD_LEN << 1
        wire.put_v1(buf, at, flags, cfg["parallel"], cfg["listen_port"], cfg["length"], cfg["bandwidth"],
                    self.amount)  # fmt: skip
        if extended:
            wire.put_extension(buf, at + wire.V1_LEN, upper, cfg["bandwidth"], cfg["tos"] or 0)
        return buf

    def test(self, bufs):
        n = len(bufs)
        if self.kind == "reverse":
            self._receive([self._inflow(k + 1, self.socks[k]) for k in range(n)], bufs)
            return
        flows = self.senders(bufs)
        if self.kind == "full_duplex":
            flows += [self._inflow(k + 1 + n, self.socks[k]) for k in range(n)]
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

    def _inflow(self, id, sock):
        return InFlow(id, sock, self.rbuf, wire.NEW, True, answer=False)

    def _receive(self, flows, requests):
        e = self.begin(flows, self.time_us and self.time_us + _SLOP_US)
        e.idle_us = _IDLE_US
        e.start()
        asked = refused = 0
        t = clock.ticks_us()
        silent = list(flows)
        while not e.slice():
            for f in list(silent):
                if f.u[hot.U_SEEN]:
                    # its time counts from the first datagram
                    silent.remove(f)
                    f.start_us = e.clock.total_us() - f.silent_us()
            if asked <= _ASK_TIMES and clock.ticks_diff(clock.ticks_us(), t) >= 0:
                waiting = [k for k in range(len(flows)) if not flows[k].u[hot.U_SEEN] and not flows[k].done]
                for k in waiting:
                    try:
                        flows[k].sock.write(requests[k])
                    except OSError as e:
                        refused += 1
                        if e.args[0] != 111 or refused > 10:
                            raise
                asked = asked + 1 if waiting else _ASK_TIMES + 1
                t = clock.ticks_add(t, _ASK_US)
                if asked == _ASK_TIMES and len(waiting) == len(flows):
                    self.keep()
                    raise IperfError("timeout", "%s does not answer: no server, UDP filtered on the way, "
                                     "or one that knows no reverse test" % self.who)  # fmt: skip
        reason = e.reason
        self.keep()
        self._silent(flows)
        if reason == "idle" and not any(f.fin for f in flows):
            raise IperfError("timeout", "%s went silent: no datagram for %d s"
                             % (self.who, _IDLE_US // 1000000))  # fmt: skip

    def _silent(self, flows):
        """Emit which streams ended without a final datagram."""
        for f in flows:
            if not f.sender and not f.fin:
                self.emit("text", {"text": "stream %d: the final datagram did not come" % f.id})

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
        UdpClient.step(self)
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
        self._silent(got)
        if self.door is not None and len(got) < self.cfg["parallel"]:
            raise modes.no_callback(self)
        if not any(f.total(hot.C_BYTES) for f in got):
            raise modes.no_data(self)

    def close(self):
        UdpClient.close(self)
        if self.door is not None:
            self.door.close()
