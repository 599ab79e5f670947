"""The UDP client: plain, reverse, full duplex; dual and tradeoff, where the server sends back."""

from iperf import clock, hot
from iperf.engine import POLLIN
from iperf.errors import IperfError
from iperf.flow import Flow
from iperf.v2 import common, wire
from iperf.v2.client import Client
from iperf.v2.datagrams import Fin, InFlow, Report

_ASK_US = 20000  # between two requests of a reverse test (iperf: up to 20 ms)
_ASK_TIMES = 150
_BACK_US = 5000000
_SLOP_US = 3000000
_IDLE_US = 5000000


class UdpClient(Client):
    door = None

    def run(self):
        cfg, kind = self.cfg, self.kind
        self.fins = []  # final datagrams that wait for the server's report
        self.over = []  # those whose wait is over
        self.reports = []
        common.note_clock(cfg)
        try:
            self.rbuf = bytearray(common.room(self.layer, cfg["length"])) if kind else None
            bufs = [self._datagram() for _ in range(cfg["parallel"])]
        except MemoryError:
            raise IperfError("memory", "no memory for %d buffer(s) of %d bytes: take fewer streams"
                             % (cfg["parallel"], cfg["length"])) from None  # fmt: skip
        self.started()
        if kind in ("dual", "tradeoff"):
            self._listen()
        for _ in bufs:
            self.socks.append(self.layer.udp_connect(cfg["host"], cfg["port"], cfg))
        self.connected()
        n = len(bufs)
        if kind == "reverse":
            self._receive([self._inflow(k + 1, self.socks[k]) for k in range(n)], bufs)
            return
        header = wire.header(wire.OLD if cfg["old"] else wire.NEW, not cfg["old"] and not cfg["signed"], 0)
        flows = [Flow(k + 1, self.socks[k], True, bufs[k], header, cfg["bandwidth"]) for k in range(n)]
        if kind == "full_duplex":
            flows += [self._inflow(k + 1 + n, self.socks[k]) for k in range(n)]
        self._send(flows)

    def _inflow(self, id, sock):
        return InFlow(id, sock, self.rbuf, wire.NEW, True, report=False)

    def _datagram(self):
        """A datagram whose header says what is asked for; every one of the test carries it. Its numbers
        begin at 0, as 2.0's, which every version counts right."""
        cfg, kind = self.cfg, self.kind
        need = wire.UDP_HEAD_LEN if kind == "reverse" else 16
        buf = bytearray(max(cfg["length"], need))
        old = cfg["old"]
        at = 12 if old else 16
        flags = 0 if old or cfg["compat"] else wire.SEQNO64
        if kind is None:
            if old and len(buf) >= at + wire.V1_LEN:
                wire.put_v1(buf, at, flags, cfg["parallel"], cfg["port"], 0, cfg["bandwidth"], self.amount)
            elif flags and len(buf) >= at + wire.V1_LEN:
                wire.put_v1(buf, at, flags, cfg["parallel"], 0, 0, 0, 0)
            elif flags and len(buf) >= 20:
                buf[16] = flags >> 24
            return buf
        upper = 0
        if kind == "reverse":
            buf[3] = 1  # a 2.2 server overhears a request with number 0
        if kind in ("reverse", "full_duplex"):
            flags |= wire.V2 | wire.UDPTESTS
            upper |= wire.REVERSE if kind == "reverse" else wire.FULL_DUPLEX | wire.NO_FIN
        else:
            flags |= wire.V1 | (wire.RUN_NOW if kind == "dual" else 0)
        extended = not cfg["old"] and not cfg["signed"]
        if extended:
            # the rate stands in the extension: without it a 2.1 server answers unpaced
            flags |= wire.EXTEND | wire.LEN | wire.UDP_HEAD_LEN << 1
        wire.put_v1(buf, at, flags, cfg["parallel"], cfg["listen_port"], cfg["length"], cfg["bandwidth"],
                    self.amount)  # fmt: skip
        if extended:
            wire.put_extension(buf, at + wire.V1_LEN, upper, cfg["bandwidth"], cfg["tos"] or 0)
        return buf

    # -- the directions

    def _send(self, flows):
        e = self.begin(flows, self.time_us)
        self._watch()
        e.start()
        while not (e.slice() or (self.kind and self._sent(flows))):
            pass
        self.end_senders()
        wait = self.kind != "full_duplex"
        for f in flows:
            if f.sender:
                self.fins.append(Fin(f, self.cfg["signed"], wait))
                if wait:
                    self.poller.register(f.sock, POLLIN)
        if self.kind in ("full_duplex", "dual"):
            self._pump(_SLOP_US)
            self._check_back()
            self.keep()
        else:
            self.keep()
            self._finish()
        if self.kind == "tradeoff":
            self._trade()

    @staticmethod
    def _sent(flows):
        return common.all_done([f for f in flows if f.sender])

    def _receive(self, flows, requests):
        e = self.begin(flows, self.time_us and self.time_us + _SLOP_US)
        e.idle_us = _IDLE_US
        e.start()
        asked = 0
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
                    flows[k].sock.write(requests[k])
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

    # -- the server's own streams (dual, tradeoff)

    def _listen(self):
        from iperf.v2.door import Door

        cfg = self.cfg
        self.door = Door(self.layer, cfg["bind"], cfg["listen_port"], cfg, self.poller, self.rbuf,
                         self._wanted, self._stream, self._feed)  # fmt: skip

    def _watch(self):
        if self.door is not None and self.kind == "dual":
            self.poller.register(self.door.udp, POLLIN)
            self.engine.watch = ((self.door.udp, self._look),)

    def _look(self):
        self.door.look()
        self.engine.watch = ((self.door.udp, self._look),) if self.door.udp is not None else ()
        return False

    def _wanted(self, buf, n, addr):
        final = n >= 16 and buf[0] & 128
        return not final and len(common.receiving(self.flows)) < self.cfg["parallel"]

    def _stream(self, sock, buf, n, addr):
        self.socks.append(sock)
        layout, wide = wire.layout(buf, n)
        first = len(self.flows) + 1 + (self.cfg["parallel"] if self.kind == "tradeoff" else 0)
        f = InFlow(first, sock, buf, layout, wide, buf[3] | buf[2] | buf[1] | buf[0])
        self.joined(f)
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
            self._step()
            if over:
                if not self.fins and not self.reports:
                    return
                self.poller.wait(5)

    def _look_while_waiting(self):
        self.poller.wait(5)
        if self.door.udp is not None and self.door.udp.ready:
            self._look()

    def _finish(self):
        """The handshakes at the end, while nothing else moves."""
        while self.fins or self.reports:
            self._step()
            self.poller.wait(5)

    def _step(self):
        """One look at every handshake; reports for the streams that have just ended."""
        for h in list(self.fins):
            if h.step():
                self.fins.remove(h)
                self.over.append(h)
                self.poller.unregister(h.sock)
        for h in list(self.reports):
            if h.step():
                self.reports.remove(h)
                self.poller.unregister(h.sock)
        if self.door is not None:
            for f in self.flows:
                if not f.sender and f.fin and f.report:
                    f.report = False
                    self.reports.append(Report(f, f.end_us - f.start_us))
                    self.poller.register(f.sock, POLLIN)

    def _check_back(self):
        got = common.receiving(self.flows)
        self._silent(got)
        if self.door is not None and len(got) < self.cfg["parallel"]:
            raise self.no_callback()
        if not any(f.total(hot.C_BYTES) for f in got):
            raise self.no_data()

    # -- the result

    def books(self):
        """Put the server's reports into the result."""
        peers = []
        for h in self.over + self.fins:
            for s in self.res.streams:
                if s["sender"] and s["id"] == h.flow.id:
                    h.close_books(s)
                    if s["peer"]:
                        peers.append(s["peer"])
                    elif h.wait:
                        self.emit("text", {"text": "stream %d: no server report came (n/a)" % h.flow.id})
        if peers:
            p = {k: sum(q[k] for q in peers) for k in ("bytes", "packets", "lost", "ooo")}
            p["us"] = max(q["us"] for q in peers)
            p["jitter_us"] = sum(q["jitter_us"] for q in peers) // len(peers)
            self.res.peer_received = p
