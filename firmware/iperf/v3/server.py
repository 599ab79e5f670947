"""iPerf 3 server: serves the real iperf3 client, one test at a time; a second client is told "busy".

Each step of a test is a module of its own, given back when it is done: server_params, server_streams,
server_trial, server_results."""

import gc

from iperf import clock, result
from iperf.errors import IperfError
from iperf.memory import forget, stage
from iperf.v3 import wire
from iperf.v3.control import Closed, Control

_IEMESSAGE = 110  # iperf_api.h: an unknown control message
_KEEP = 8  # results kept of a server that runs on


def run(cfg, layer, emit, live):
    """Serve until `one_off`, `tests`, `idle_timeout` or Ctrl-C ends it. Returns the last results. A test
    that fails is emitted as "error" and does not end the server."""
    s = _Server(cfg, layer, emit, live)
    try:
        return s.run()
    except KeyboardInterrupt:
        s.terminate()
        e = IperfError("interrupted", "interrupted: the server stopped")
        e.result = s.res
        raise e from None
    finally:
        s.close()


class Refused(Exception):
    """The client's wish cannot be met: (iperf error number, reason)."""


class _Server:
    def __init__(self, cfg, layer, emit, live):
        self.cfg = cfg
        self.layer = layer
        self.emit = emit
        self.live = live
        self.results = []
        self.res = None
        self.t = None
        # options of the control connections: those of the data are the client's choice
        ctl = {"ipv6": cfg["ipv6"], "window": cfg["window"], "nodelay": "nodelay" in layer.caps()["options"]}
        self.listener = layer.tcp_listen(cfg["bind"], cfg["port"], ctl, 4)

    def run(self):
        cfg = self.cfg
        left = 1 if cfg["one_off"] else cfg["tests"] or 0
        self.emit("start", {"role": "server", "options": result.public(cfg), "adapted": cfg["adapted"]})
        while True:
            sock, remote = self._accept()
            if sock is None:
                return self.results
            self.t = t = _Test(self, sock, remote)
            try:
                t.run()
            except IperfError as e:
                t.keep()
                if t.res is not None:
                    t.res.error = {"kind": e.kind, "text": e.text}
                self.emit("error", {"kind": e.kind, "text": e.text, "errno": e.errno})
            finally:
                self.res = t.res
                t.close()
                self.t = None
            if t.res is not None:
                self.results = self.results[1 - _KEEP :] + [t.res]
                self.emit("test", t.res)
            if left and (t.res is not None or cfg["one_off"]):
                left -= 1
                if not left:
                    return self.results

    def _accept(self):
        """The next client; (None, None) when the idle time is over."""
        poller = self.layer.Poller()
        poller.register(self.listener, 1)
        t = clock.Elapsed()
        try:
            while True:
                got = self.listener.accept()
                if got:
                    return got
                t.update()
                if self.cfg["idle_timeout"] and t.s >= self.cfg["idle_timeout"]:
                    return None, None
                poller.wait(500)
        finally:
            poller.unregister(self.listener)

    def terminate(self):
        if self.t is not None:
            self.t.keep()
            self.res = self.t.res
            self.t.say(wire.SERVER_TERMINATE)

    def close(self):
        if self.t is not None:
            self.t.close()
        if self.listener is not None:
            self.listener.close()


class _Test:
    """One client's session; the modules of its steps work on it."""

    def __init__(self, server, sock, remote):
        self.server = server
        self.layer = server.layer
        self.emit = server.emit
        self.remote = remote
        self.who = "the client %s" % (remote[0] if remote else "")
        self.ctl = Control(self.layer, sock, self.who)
        self.cookie = None
        self.socks = []
        self.bufs = None
        self.flows = []
        self.engine = None
        self.res = None
        self.cfg = None
        self.udp = None
        self.ended = False  # the client said TEST_END

    def run(self):
        ctl = self.ctl
        try:
            cookie = ctl.read(wire.COOKIE_SIZE, 5000, "its cookie")
            if not _is_cookie(cookie):
                raise IperfError("wrong-peer", "%s speaks no iPerf 3 (an iPerf 2 client? serve version 2)"
                                 % self.who)  # fmt: skip
            self.cookie = bytes(cookie)
            ctl.send_state(wire.PARAM_EXCHANGE)
            stage("v3.server_params", self)
            forget("v3.message", "v3.payload")
            stage("v3.server_streams", self)
            forget("layers.socket_open")
            stage("v3.server_trial", self)
            # the figures are in the result: engine and loops make room for the exchange
            forget("engine", "flow", "hot", "hot_tcp", "hot_paced", "hot_blast", "hot_recv")
            stage("v3.server_results", self)
            forget("v3.message", "v3.results", "summary", "text3", "units")
        except Refused as e:
            code, why = e.args
            self.refuse(code)
            raise IperfError("unsupported", "refused a test: %s" % why) from None
        except Closed:
            began = self.engine or (self.res and self.res.streams)
            raise IperfError("closed", "%s went away %s" % (self.who, "during the test" if began else
                             "before the test began")) from None  # fmt: skip

    def client_said(self, s):
        """A state from the client; True for the end of the test. Raises Closed, IperfError."""
        if s is None:
            return False
        if s == wire.TEST_END:
            self.ended = True
            return True
        if s == wire.CLIENT_TERMINATE:
            raise IperfError("closed", "%s stopped the test" % self.who)
        self.refuse(_IEMESSAGE)
        raise IperfError("protocol", "%s sent the unknown state %d" % (self.who, s))

    def another_client(self):
        """Somebody else calls during the test: "busy", at once."""
        got = self.server.listener.accept()
        if got:
            try:
                got[0].write(bytes((wire.ACCESS_DENIED,)))
                # its cookie is read, or the close below would reset the connection under the answer
                got[0].readinto(bytearray(wire.COOKIE_SIZE))
            except OSError:
                pass
            got[0].close()
        return False

    def keep(self):
        if self.engine is not None and self.res is not None and not self.res.streams:
            self.engine.finish()
            self.res.take(self.engine)

    def say(self, state):
        try:
            self.ctl.send_state(state)
        except (Closed, IperfError):
            pass

    def refuse(self, code, errno=0):
        """SERVER_ERROR with iperf's number and an errno (both int32)."""
        try:
            self.ctl.write(bytes((wire.SERVER_ERROR, 0, 0, 0, code, 0, 0, 0, errno)), 1000)
        except (Closed, IperfError):
            pass

    def close_streams(self):
        for s in self.socks:
            s.close()
        self.socks = []
        self.flows = []

    def close(self):
        self.close_streams()
        if self.udp is not None:
            self.udp.close()
            self.udp = None
        self.ctl.close()


def _is_cookie(c):
    for x in c[:36]:
        if not (97 <= x <= 122 or 50 <= x <= 55):
            return False
    return True


def most():
    """Largest block or text: a quarter of the heap."""
    return gc.mem_free() // 4 if hasattr(gc, "mem_free") else 1 << 20
