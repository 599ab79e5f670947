"""iPerf 3 client: one test against an iperf3 server. Each step of a session is a module of its own,
which is given back when the step is done: params, streams, trial, results."""

from iperf import clock, result
from iperf.errors import IperfError
from iperf.memory import buffer, forget, stage
from iperf.v3 import wire
from iperf.v3.control import Closed, Control

_STATE_MS = 15000  # a server answers at once, or it is not there any more


def run(cfg, layer, emit, live):
    """Run the test of `cfg` (options.client). Returns a Result; raises IperfError, whose `result` holds
    what was measured until then."""
    res = result.Result(cfg, "bidir" if cfg["bidir"] else "receive" if cfg["reverse"] else "send")
    busy = cfg["busy_retries"]
    busy = 3 if busy is None else busy
    again = busy > 0
    while True:
        c = Client(cfg, layer, emit, live, res)
        try:
            c.run()
            return res
        except IperfError as e:
            if e.kind == "busy" and busy > 0 and not res.streams:
                busy -= 1
                emit("text", {"text": "the server is busy: trying again in 2 s"})
                c.close()
                clock.sleep_ms(2000)
                continue
            if again and (e.kind == "refused" if c.ctl is None else c.state == 0 and c.early):
                # iperf3 closes its listener after each test and opens it anew: who comes in between is
                # refused, or accepted and closed without a byte
                again = False
                c.close()
                clock.sleep_ms(500)
                continue
            raise c.failed(e)
        except KeyboardInterrupt:
            c.keep()
            c.terminate()
            e = IperfError("interrupted", "interrupted: what was measured until then is kept")
            raise c.failed(e) from None
        finally:
            c.close()


class Client:
    """The session; the modules of its steps work on it."""

    def __init__(self, cfg, layer, emit, live, res):
        self.cfg = cfg
        self.layer = layer
        self.emit = emit
        self.live = live
        self.res = res
        self.ctl = None
        self.socks = []
        self.flows = []
        self.bufs = None
        self.cookie = None
        self.source = None  # readinto() of the file that is sent
        self.engine = None
        self.who = "the server %s port %d" % (cfg["host"], cfg["port"])
        self.state = 0
        self.early = False  # closed before it said a thing
        self.quota = 0
        self.pending = []  # states that came during the UDP greetings

    def run(self):
        cfg = self.cfg
        if cfg["udp"] and cfg["length"] < 16 and cfg["udp_counters_64bit"]:
            raise IperfError("usage", "length must be at least 16 bytes with 64-bit counters")
        # buffers first: a board without memory for them fails before it bothers the server
        n = cfg["parallel"] * (2 if cfg["bidir"] else 1)
        self.bufs = buffer(cfg, n if cfg["udp"] and not cfg["reverse"] else 2 if cfg["bidir"] else 1)
        self._prepare()
        forget("v3.payload")
        self.emit("start", {"role": "client", "options": result.public(cfg), "adapted": cfg["adapted"]})
        own = {"ipv6": cfg["ipv6"], "bind": cfg["bind"], "nodelay": "nodelay" in self.layer.caps()["options"]}
        sock = self.layer.tcp_connect(cfg["host"], cfg["port"], own, int(cfg["connect_timeout"] * 1000))
        self.ctl = Control(self.layer, sock, self.who)
        try:
            self.ctl.write(self.cookie)
            self._session()
        except Closed:
            self.early = self.state == 0
            raise self.closed() from None

    def _prepare(self):
        # a frame of its own: while it lives, the module cannot go
        from iperf.v3 import payload

        self.cookie = payload.cookie()
        for b in self.bufs:
            payload.fill(b, self.cfg["repeating_payload"])

    def _session(self):
        while True:
            self.state = s = self._next_state()
            if s == wire.PARAM_EXCHANGE:
                stage("v3.params", self)
                forget("v3.message")
            elif s == wire.CREATE_STREAMS:
                stage("v3.streams", self)
                forget("layers.socket_open")
            elif s == wire.TEST_START:
                pass
            elif s == wire.TEST_RUNNING:
                stage("v3.trial", self)
                # the figures are in the result: engine and loops make room for the exchange
                forget("engine", "flow", "hot", "hot_tcp", "hot_paced", "hot_blast", "hot_recv")
            elif s == wire.EXCHANGE_RESULTS:
                stage("v3.results", self)
                forget("v3.message")
            elif s == wire.DISPLAY_RESULTS:
                self.ctl.send_state(wire.IPERF_DONE)
                return
            else:
                self.bad_state(s)

    def _next_state(self):
        if self.pending:
            return self.pending.pop(0)
        first = self.state == 0
        try:
            return self.ctl.state(_STATE_MS)
        except IperfError as e:
            if first and e.kind == "timeout":
                raise _why().silent(self.who) from None
            raise

    def bad_state(self, s):
        """Raise what a negative, unexpected or unknown state means."""
        if s == wire.SERVER_ERROR:
            _why().read_error(self.ctl)
        raise _why().bad_state(self.who, s, bool(self.socks or self.res.streams))

    def closed(self):
        """The error of a control connection that the server closed."""
        return _why().closed(self.who, self.state)

    def failed(self, e):
        """The error e with what was measured until then."""
        self.keep()
        self.res.error = {"kind": e.kind, "text": e.text}
        e.result = self.res
        return e

    def keep(self):
        """Take what the engine counted into the result (once)."""
        if self.engine is not None and not self.res.streams:
            self.engine.finish()
            self.res.take(self.engine)

    def terminate(self):
        """Tell the server that this client stops, so that it is free for the next."""
        try:
            if self.ctl is not None:
                self.ctl.send_state(wire.CLIENT_TERMINATE)
        except (Closed, IperfError):
            pass

    def close(self):
        self.close_streams()
        if self.ctl is not None:
            self.ctl.close()
            self.ctl = None

    def close_streams(self):
        if self.ctl is not None:
            self.ctl.drain_stop()
        for s in self.socks:
            s.close()
        self.socks = []
        self.flows = []
        self.engine = None


def _why():
    from iperf.v3 import why

    return why
