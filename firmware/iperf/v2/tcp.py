"""The TCP client: plain, reverse, full duplex; dual and tradeoff, where the server connects back."""

from iperf import clock, hot, options
from iperf.engine import POLLIN
from iperf.errors import IperfError
from iperf.flow import Flow
from iperf.v2 import common, wire
from iperf.v2.client import Client

_EOF_US = 2000000  # the least time iperf waits for the server's EOF
_BACK_US = 5000000  # for the server to connect back (iperf waits 3 s)
_SLOP_US = 5000000  # that the server's direction may take longer
_IDLE_US = 10000000


class TcpClient(Client):
    listener = None

    def run(self):
        cfg, kind = self.cfg, self.kind
        self.asked = cfg["length"] or 0
        both = kind is not None and kind != "reverse"
        bufs = options.buffer(cfg, 2 if both else 1)
        self.rbuf = bufs[-1]
        self.source = _open(cfg["file"]) if cfg["file"] else None
        self.started()
        if kind in ("dual", "tradeoff"):
            self.listener = self.layer.tcp_listen(cfg["bind"], cfg["listen_port"], cfg, cfg["parallel"])
            self.poller.register(self.listener, POLLIN)
        flows = self._connect(bufs[0])
        self.connected()
        if kind == "reverse":
            self._receive(flows)
        else:
            self._send(flows)

    def _head(self):
        """What goes first: four zero bytes of a plain test (iperf 2.1's server waits for them before it
        listens on), else the request."""
        cfg, kind = self.cfg, self.kind
        if kind is None:
            return bytes(4)
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

    def _connect(self, buf):
        cfg, kind = self.cfg, self.kind
        n = cfg["parallel"]
        head = self._head()
        senders, receivers = [], []
        for k in range(n):
            s = self.layer.tcp_connect(cfg["host"], cfg["port"], cfg, int(cfg["connect_timeout"] * 1000))
            self.socks.append(s)
            s.write(head)
            if kind != "reverse":
                f = Flow(k + 1, s, True, buf, rate=cfg["bandwidth"], source=self.source)
                common.count(f, len(head))
                senders.append(f)
            if kind in ("reverse", "full_duplex"):
                receivers.append(Flow(k + 1 + (n if senders else 0), s, False, self.rbuf))
        return senders + receivers

    # -- the directions

    def _send(self, flows):
        e = self.begin(flows, self.time_us)
        if self.kind == "dual":
            e.watch = ((self.listener, self._accept),)
        e.start()
        while not (e.slice() or (self.kind and self._sent(flows))):
            pass
        self.end_senders()
        if self.kind is None or self.kind == "tradeoff":
            self.keep()
            self._bye()
            if self.kind == "tradeoff":
                self._trade()
            return
        for f in flows:
            if f.sender and not f.sock.shutdown_write() and self.kind == "dual":
                self._swallow(f.sock)
                f.sock.close()
        self._drain(_SLOP_US)
        self.keep()
        for s in self.socks:
            self._swallow(s)

    @staticmethod
    def _sent(flows):
        return common.all_done([f for f in flows if f.sender])

    def _receive(self, flows):
        e = self.begin(flows, self.time_us and self.time_us + _SLOP_US)
        e.idle_us = _IDLE_US
        reason = e.run()
        got = sum(f.total(hot.C_BYTES) for f in flows)
        if got <= len(flows) and self._greeted(self.rbuf[0], got == len(flows)):
            raise self._wrong_peer()
        self.keep()
        if not got:
            raise self.no_data()
        if reason == "idle":
            raise IperfError("timeout", "%s went silent: no data for %d s" % (self.who, _IDLE_US // 1000000))

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
        self.joined(f)
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
            raise self.no_callback()
        if not sum(f.total(hot.C_BYTES) for f in common.receiving(e.flows)):
            raise self.no_data()

    # -- the end

    def _bye(self):
        """Half-close, then wait (the clock stands already) until the server has closed too, so that it got
        everything. Where the port knows no half-close: close, the network stack sends the rest."""
        t0 = clock.ticks_us()
        bound = max(_EOF_US, self.time_us)
        for s in self.socks:
            if not s.shutdown_write():
                self._swallow(s)
                s.close()
                continue
            self.poller.register(s, POLLIN)
            try:
                while self._swallow(s):
                    left = bound - clock.ticks_diff(clock.ticks_us(), t0)
                    if left <= 0:
                        break
                    self.poller.wait(min(left // 1000 + 1, 500))
            finally:
                self.poller.unregister(s)

    def _swallow(self, s):
        """Read what the server says (an ack: nothing of interest; unread data would make the close a
        reset). False once the connection is over. Raises IperfError wrong-peer."""
        few = bytearray(64)
        try:
            n = s.readinto(few)
            while n:
                if self._greeted(few[0], n == 1):
                    raise self._wrong_peer()
                n = s.readinto(few)
            return n is None
        except OSError:
            return False

    @staticmethod
    def _greeted(byte, alone):
        """True for what an iperf3 server answers to any 37 bytes: 9 (send parameters) or 255 (busy)."""
        return alone and byte in (9, 255)

    def _wrong_peer(self):
        return IperfError("wrong-peer", "%s is an iPerf 3 server: use version 3, or start iperf (2) there, "
                          "whose port is 5001" % self.who)  # fmt: skip

    def broken(self, e):
        for s in self.socks:
            try:
                self._swallow(s)
            except IperfError as why:
                return why
        return Client.broken(self, e)

    def close(self):
        Client.close(self)
        if self.listener is not None:
            self.listener.close()


def _open(path):
    try:
        return open(path, "rb").readinto
    except OSError as e:
        raise IperfError("usage", "cannot read the file %s: %s" % (path, e)) from None
