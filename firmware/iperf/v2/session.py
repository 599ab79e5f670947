"""One test at the server: the streams of one client, both directions, until all of them are over."""

from iperf import clock, hot
from iperf.flow import Flow
from iperf.result import Result
from iperf.v2 import common, request
from iperf.v2.common import POLLIN

_HUSH_US = 300000  # a client that waits for our half-close, which the port does not know
_TOGETHER_S = 1  # streams of one -P test come within this time

_MODES = {"receive": "receive", "reverse": "send", "full_duplex": "bidir"}


class Session:
    """`req` is the first stream's Request, `remote` its (ip, port)."""

    def __init__(self, server, req, remote):
        self.server = server
        self.req = req
        self.ip = remote[0] if remote else None
        self.port = remote[1] if remote else 0
        cfg = dict(server.cfg)
        cfg["adapted"] = list(server.cfg["adapted"])
        self.cfg = cfg
        self.res = res = Result(cfg, _MODES.get(req.mode, req.mode))
        res.remote = self.ip
        self.streams = 0
        self.open = []  # sockets of streams that run
        self.ends = []  # handshakes at the end of datagram streams
        self.turned = req.mode != "tradeoff"
        self.fins = []
        self.engine = self._new_engine()

    def _new_engine(self):
        s = self.server
        e = common.engine(s.poller, [], self.cfg, 0, s.on_row, self.req.time_us)
        e.start()
        self.moved = True  # the engine still counts
        return e

    # -- streams join

    def takes(self, req, ip):
        """True for one more stream of the same -P test."""
        mine = self.req
        return (
            ip == self.ip and self.moved and self.turned == (mine.mode != "tradeoff")
            and req.mode == mine.mode and req.streams == mine.streams and req.port == mine.port
            and ((req.streams == 1 and not req.flags) or self.streams < req.streams)
            and self.engine.clock.s < _TOGETHER_S
        )  # fmt: skip

    def say_connected(self, sock, f):
        self.res.conns.append((f.id, sock.local, sock.remote))
        self.server.emit("connected", {"local": sock.local, "remote": [self.ip, self.port],
                                       "streams": [f.id for f in self.engine.flows]})  # fmt: skip

    def join_tcp(self, sock, hello):
        """A TCP stream whose header was read."""
        req = hello.request
        self.streams += 1
        self.open.append(sock)
        f = None
        if request.wants_ack(req.flags):
            try:
                sock.write(memoryview(hello.buf)[: request.put_ack(hello.buf)])
            except OSError:
                pass  # its stream will tell
        if req.mode != "reverse":
            f = self.watched(Flow(self.next_id(), sock, False, self.server.rbuf))
            self._add(f, hello.began)
            common.count(f, hello.have)
        if req.mode in ("reverse", "full_duplex"):
            s = self._back().sender(self, sock, req)
            f = f or s
        elif req.mode == "dual":
            self._back().connect(self, req)
        self.say_connected(sock, f)

    def join_udp(self, sock, buf, n, number):
        """A datagram stream; its first datagram is in buf. Returns the flow that the client's datagrams
        belong to."""
        from iperf.v2.inflow import InFlow  # loaded by the server

        layout, wide = request.layout(buf, n)
        req = self.server.request(buf, n)
        self.streams += 1
        self.open.append(sock)
        f = None
        if req.mode != "reverse":
            f = InFlow(self.next_id(), sock, buf, layout, wide, number, req.wants_report)
            self._add(self.watched(f), self.server.door.came)
        if req.mode in ("reverse", "full_duplex"):
            s = self._back().sender(self, sock, req)
            f = f or s
        elif req.mode == "dual":
            self._back().connect(self, req)
        self.say_connected(sock, f)
        f.session = self
        return f

    def _add(self, f, since):
        """Let a receiver join whose first data came at the tick `since`."""
        self.engine.add(f)
        f.start_us -= clock.ticks_diff(clock.ticks_us(), since)

    def _back(self):
        """What sends: loaded when a client asks for it."""
        from iperf.v2 import back

        return back

    def next_id(self):
        return 1 + max([f.id for f in self.engine.flows] + [s["id"] for s in self.res.streams] + [0])

    def watched(self, f):
        f.quiet_us = int(self.cfg["rcv_timeout"] * 1000000)
        f.moved_at = clock.ticks_us()
        f.moved_n = -1
        f.stop = None
        f.shut = False
        return f

    def failed(self, kind, text):
        if self.res.error is None:
            self.res.error = {"kind": kind, "text": text}
        self.server.emit("error", {"kind": kind, "text": text, "errno": None})

    # -- the run

    def moving(self):
        """False while only handshakes are left."""
        return not common.all_done(self.engine.flows)

    def step(self):
        """One slice of every stream; True when the test is over."""
        e = self.engine
        if not common.all_done(e.flows):
            try:
                e.slice()
            except OSError as err:
                self._broke(e.at, err)
            e.clock.update()
            now = clock.ticks_us()
            for f in e.flows:
                if not f.done:
                    self._check(f, now)
        if self.moved and common.all_done(e.flows):
            self.moved = False
            e.finish()  # the last rows end here, not with the handshakes
        for f in e.flows:
            if f.done and not f.shut:
                f.shut = True
                self._shut(f)
        for h in list(self.ends):
            if h.step():
                self.ends.remove(h)
                if self._unused(h.sock):
                    self._close(h.sock)
        if self.ends or not common.all_done(e.flows):
            return False
        if not self.turned:
            self._turn()
            return False
        return True

    def feed(self, f, n):
        """A datagram of this stream that came the slow way."""
        if not f.sender and not f.done and f.feed(n) == hot.FIN:
            self.engine.end(f, hot.FIN)

    def _check(self, f, now):
        """End a stream whose time is over or that has gone silent."""
        if f.stop is not None and self.engine.clock.until(f.stop[0], f.stop[1], 1) <= 0:
            self.engine.end(f)
            return
        if f.sender and f.header is not None:
            return  # datagrams always move
        n = f.lo[hot.C_BYTES]
        if n != f.moved_n:
            f.moved_n = n
            f.moved_at = now
            return
        silent = clock.ticks_diff(now, f.moved_at)
        if silent <= f.quiet_us:
            return
        self.engine.end(f)
        common.shift_end(f, silent)
        if f.quiet_us == _HUSH_US:
            return
        if f.header is None:
            self.failed("timeout", "%s: nothing moved for %d s, closed" % (self.ip, silent // 1000000))
        else:
            self.server.emit("text", {"text": "%s: no final datagram, ended after %d s of silence"
                                      % (self.ip, silent // 1000000)})  # fmt: skip

    def _broke(self, f, err):
        """A stream's socket failed: it ends, the others go on."""
        n = err.args[0] if err.args and isinstance(err.args[0], int) else 0
        self.engine.end(f)
        if f.header is None:
            from iperf.v2 import why

            e = why.closed(n, "the client %s" % self.ip, "in the test")
            self.failed(e.kind, e.text)

    def _shut(self, f):
        """What follows the end of a stream."""
        if f.header is not None:
            self._shut_udp(f)
            return
        mate = self._mate(f)
        if mate is None:
            if f.sender:
                f.sock.shutdown_write()
            self._close(f.sock)
        elif f.sender and not f.sock.shutdown_write():
            mate.quiet_us = _HUSH_US

    def _shut_udp(self, f):
        if self.server.door is not None:
            self.server.door.forget(f)
        if not f.sender:
            if f.fin and f.answer:
                from iperf.v2.answer import Report

                self.ends.append(Report(f, f.end_us - f.start_us))
                self.server.poller.register(f.sock, POLLIN)
            elif self._unused(f.sock):
                self._close(f.sock)
            return
        back = self.req.mode in ("dual", "tradeoff")
        from iperf.v2.fin import Fin

        h = Fin(f, False, back)
        self.ends.append(h)
        if back:
            self.fins.append(h)
            self.server.poller.register(f.sock, POLLIN)

    def _mate(self, f):
        """The other direction on the same socket, while it runs."""
        for g in self.engine.flows:
            if g is not f and g.sock is f.sock and not g.done:
                return g
        return None

    def _unused(self, sock):
        """True when neither a stream nor a handshake goes on there."""
        for f in self.engine.flows:
            if f.sock is sock and not f.done:
                return False
        for h in self.ends:
            if h.sock is sock:
                return False
        return True

    def _close(self, sock):
        if sock in self.open:
            self.open.remove(sock)
        self.server.poller.unregister(sock)
        if not self.cfg["udp"]:
            _swallow(sock)
        sock.close()

    def _turn(self):
        """Tradeoff: the client has sent, now it is our turn."""
        self.turned = True
        n = len(self.engine.flows)
        self._take()
        self.engine = self._new_engine()
        for _ in range(n):
            self._back().connect(self, self.req)

    # -- the end

    def _take(self):
        e, self.engine = self.engine, None
        if e is not None:
            e.finish()
            self.res.take(e)

    def finish(self):
        """The Result; closes what is open."""
        self._take()
        for h in self.fins:
            for s in self.res.streams:
                if s["id"] == h.flow.id:
                    h.close_books(s)
        for sock in list(self.open):
            self._close(sock)
        self.res.counters = self.server.layer.counters()
        return self.res


def _swallow(sock):
    """Read what is left, so that the close is none with a reset."""
    few = bytearray(256)
    try:
        for _ in range(16):
            if not sock.readinto(few):
                break
    except OSError:
        pass
