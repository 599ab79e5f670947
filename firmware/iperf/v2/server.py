"""iPerf 2 server: serves iperf clients of any version, several at a time."""

import gc

from iperf import clock
from iperf.errors import IperfError
from iperf.memory import buffer
from iperf.result import public
from iperf.v2 import common, request, wire
from iperf.v2.common import POLLIN
from iperf.v2.session import Session

_KEEP = 8  # results kept of a server that runs on
_PENDING = 16  # connections that have not said yet what they want
_STRAY_ANSWER = b"\xfe\x00\x00\x00\x6e\x00\x00\x00\x00"  # iPerf 3's SERVER_ERROR 110: unknown message


def run(cfg, layer, emit, live):
    """Serve until `one_off`, `tests`, `time`, `idle_timeout` or Ctrl-C ends it. Returns the last results.
    A test that fails is emitted as "error" and does not end the server."""
    s = Server(cfg, layer, emit, live)
    try:
        return s.run()
    except (KeyboardInterrupt, MemoryError) as e:
        if isinstance(e, MemoryError):
            e = IperfError("memory", "the board ran out of memory: take a smaller length, or reset it")
        else:
            e = IperfError("interrupted", "interrupted: the server stopped")
        e.result = s.stop()
        raise e from None
    finally:
        s.close()


class Server:
    def __init__(self, cfg, layer, emit, live):
        self.cfg = cfg
        self.layer = layer
        self.emit = emit
        self.on_row = (lambda row: emit("interval", row)) if live else None
        self.poller = layer.Poller()
        self.sessions = []
        self.hellos = []
        self.results = []
        self.left = 1 if cfg["one_off"] else cfg["tests"] or 0
        self.begun = 0
        self.listener = None
        self.door = None
        self._send_buf = None
        self.asked = cfg["length"] or 0
        if cfg["udp"]:
            import iperf.v2.door
            import iperf.v2.inflow  # noqa: F401 - not while the first client waits

            self.udp_max = layer.caps()["udp_max"]
            self._note_clock()
            try:
                self.rbuf = bytearray(common.room(layer, cfg["length"]))
            except MemoryError:
                raise IperfError("memory", "no memory to receive datagrams: take a smaller length") from None
        else:
            import iperf.v2.hello  # noqa: F401

            self.rbuf = buffer(cfg)[0]

    def _note_clock(self):
        from iperf.v2 import why

        why.note_clock(self.cfg)

    def run(self):
        cfg = self.cfg
        if cfg["udp"]:
            from iperf.v2.door import Door

            self.door = Door(self.layer, cfg["bind"], cfg["port"], cfg, self.poller, self.rbuf,
                             self._wanted, self._stream, self._feed)  # fmt: skip
        else:
            self.listener = self.layer.tcp_listen(cfg["bind"], cfg["port"], cfg, 8)
            self.poller.register(self.listener, POLLIN)
        self.emit("start", {"role": "server", "options": public(cfg), "adapted": cfg["adapted"]})
        total, idle = clock.Elapsed(), clock.Elapsed()
        while True:
            # the engines wait by themselves
            self.poller.wait(100 if not self.sessions else 0 if any(s.moving() for s in self.sessions) else 5)
            if self.door is not None:
                if self.door.udp is None or self.door.udp.ready:
                    self.door.look()
            else:
                self._greet()
            for s in list(self.sessions):
                if s.step():
                    self._over(s)
            if self.left and self.begun >= self.left and not self.sessions:
                return self.results
            total.update()
            idle.update()
            if self.sessions or self.hellos:
                idle.start()
            elif cfg["idle_timeout"] and idle.s >= cfg["idle_timeout"]:
                return self.results
            if cfg["time"] and total.s >= cfg["time"]:
                self.stop()
                return self.results

    # -- clients come

    def _session(self, req, remote):
        """The session that this stream belongs to; None when no further test is wanted."""
        ip = remote[0] if remote else None
        for s in self.sessions:
            if s.takes(req, ip):
                return s
        if self.left and self.begun >= self.left:
            return None
        common.collect()
        s = Session(self, req, remote)
        self.sessions.append(s)
        self.begun += 1
        self._share()
        return s

    def _share(self):
        """Turns of a few milliseconds when several tests share the loop."""
        n = len(self.sessions)
        for s in self.sessions:
            if s.engine is not None:
                s.engine.slice_us = max(500, 20000 // n)

    def _greet(self):
        """Connections: new ones, and those that have not said what they want."""
        from iperf.v2 import hello

        if self.listener.ready and len(self.hellos) < _PENDING:
            got = self.listener.accept()
            if got is not None:
                self.hellos.append(hello.Hello(got[0], got[1], self.poller))
        for h in list(self.hellos):
            state = h.step()
            if state == hello.WAIT:
                continue
            self.hellos.remove(h)
            self.poller.unregister(h.sock)
            if state == hello.READY:
                self._join(h)
                continue
            who = h.remote[0] if h.remote else "a client"
            if state == hello.STRAY:
                try:
                    h.sock.write(_STRAY_ANSWER)
                except OSError:
                    pass
                self.emit("error", {"kind": "wrong-peer", "text": "%s: %s" % (who, h.why), "errno": None})
            else:
                self.emit("text", {"text": "%s %s: no test" % (who, h.why)})
            h.sock.close()

    def _join(self, h):
        who = h.remote[0] if h.remote else "a client"
        if h.request.flags & wire.BOUNCEBACK and not h.request.flags & (wire.V1 | wire.EXTEND):
            self._refuse(h.sock, "unsupported", "%s asked for a bounce-back test, which is not served" % who)
            return
        s = None
        try:
            s = self._session(h.request, h.remote)
            if s is not None:
                s.join_tcp(h.sock, h)
                return
            self._refuse(h.sock, "busy", "%s came while the last test runs" % who)
        except MemoryError:
            text = "no memory for another client: %s is refused" % who
            if s is not None and not s.engine.flows:
                s.failed("memory", text)
                h.sock.close()
            else:
                self._refuse(h.sock, "memory", text)

    def _refuse(self, sock, kind, text):
        self.emit("error", {"kind": kind, "text": text, "errno": None})
        sock.close()

    def request(self, buf, n):
        """What the header in a datagram asks for."""
        layout, _ = request.layout(buf, n)
        return request.Request(buf, 12 if layout == wire.OLD else 16, n if layout != wire.BARE else 0)

    def _wanted(self, buf, n, addr):
        if n < 4:
            return False
        wide = request.layout(buf, n)[1]
        if buf[12 if wide else 0] & 128:
            return False  # the final datagram of a stream that is over
        if self.left and self.begun >= self.left:
            req = self.request(buf, n)
            remote = self.door.name(addr)
            return any(s.takes(req, remote[0] if remote else None) for s in self.sessions)
        return True

    def _stream(self, sock, buf, n, addr):
        try:
            s = self._session(self.request(buf, n), sock.remote)
            if s is not None:
                return s.join_udp(sock, buf, n, request.number(buf))
        except MemoryError:
            self.emit("error", {"kind": "memory", "text": "no memory for another client", "errno": None})
        sock.close()
        return None

    def _feed(self, flow, n):
        flow.session.feed(flow, n)

    def send_buffer(self, length):
        """A buffer to send TCP blocks from: shared, unless a client asks for another length."""
        want = length or self.asked or len(self.rbuf)
        if self._send_buf is None or len(self._send_buf) != want:
            common.collect()
            if hasattr(gc, "mem_free") and want > 1024:
                want = min(want, max(1024, gc.mem_free() // 3))
            self._send_buf = bytearray(want)
        return self._send_buf

    # -- and go

    def _over(self, s):
        self.sessions.remove(s)
        res = s.finish()
        self.results = self.results[1 - _KEEP :] + [res]
        self._share()
        self.emit("test", res)

    def stop(self):
        """End the tests that run; returns the last result, None without any."""
        for s in list(self.sessions):
            self._over(s)
        return self.results[-1] if self.results else None

    def close(self):
        for s in self.sessions:
            s.finish()
        for h in self.hellos:
            h.sock.close()
        if self.listener is not None:
            self.listener.close()
        if self.door is not None:
            self.door.close()
