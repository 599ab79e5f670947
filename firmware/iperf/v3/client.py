"""iPerf 3 client: one test against an iperf3 server."""

import gc

from iperf import clock, result
from iperf.errors import IperfError
from iperf.memory import buffer, forget
from iperf.v3 import wire
from iperf.v3.control import Closed, Control

_STATE_MS = 15000  # a server answers at once, or it is not there any more
_HELLO_MS = 500
_HELLO_TRIES = 6


def run(cfg, layer, emit, live):
    """Run the test of `cfg` (options.client). Returns a Result; raises IperfError, whose `result` holds
    what was measured until then."""
    res = result.Result(cfg, "bidir" if cfg["bidir"] else "receive" if cfg["reverse"] else "send")
    busy = cfg["busy_retries"]
    busy = 3 if busy is None else busy
    while True:
        c = _Client(cfg, layer, emit, live, res)
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
            c.keep()
            res.error = {"kind": e.kind, "text": e.text}
            e.result = res
            raise
        except KeyboardInterrupt:
            c.keep()
            c.terminate()
            e = IperfError("interrupted", "interrupted: what was measured until then is kept")
            res.error = {"kind": e.kind, "text": e.text}
            e.result = res
            raise e from None
        finally:
            c.close()


class _Client:
    def __init__(self, cfg, layer, emit, live, res):
        self.cfg = cfg
        self.layer = layer
        self.emit = emit
        self.live = live
        self.res = res
        self.ctl = None
        self.socks = []
        self.flows = []
        self.engine = None
        self.who = "the server %s port %d" % (cfg["host"], cfg["port"])
        self.state = 0
        self.quota = 0
        self.pending = []  # states that came during the UDP greetings

    # -- the session

    def run(self):
        cfg = self.cfg
        if cfg["udp"] and cfg["length"] < 16 and cfg["udp_counters_64bit"]:
            raise IperfError("usage", "length must be at least 16 bytes with 64-bit counters")
        # buffers first: a board without memory for them fails before it bothers the server
        n = cfg["parallel"] * (2 if cfg["bidir"] else 1)
        self.bufs = buffer(cfg, n if cfg["udp"] and not cfg["reverse"] else 2 if cfg["bidir"] else 1)
        for b in self.bufs:
            wire.fill(b, cfg["repeating_payload"])
        self.emit("start", {"role": "client", "options": result.public(cfg), "adapted": cfg["adapted"]})
        own = {"ipv6": cfg["ipv6"], "bind": cfg["bind"], "nodelay": "nodelay" in self.layer.caps()["options"]}
        sock = self.layer.tcp_connect(cfg["host"], cfg["port"], own, int(cfg["connect_timeout"] * 1000))
        self.ctl = Control(self.layer, sock, self.who)
        self.cookie = wire.cookie()
        try:
            self.ctl.write(self.cookie)
            self._session()
        except Closed:
            raise self._closed() from None

    def _session(self):
        ctl = self.ctl
        while True:
            self.state = s = self._next_state()
            if s == wire.PARAM_EXCHANGE:
                self._send_params()
                forget("v3.params")
            elif s == wire.CREATE_STREAMS:
                self._create_streams()
            elif s == wire.TEST_START:
                pass
            elif s == wire.TEST_RUNNING:
                self._test()
            elif s == wire.EXCHANGE_RESULTS:
                self._exchange()
            elif s == wire.DISPLAY_RESULTS:
                ctl.send_state(wire.IPERF_DONE)
                return
            else:
                self._bad_state(s)

    def _send_params(self):
        # a function of its own: while its frame lives, the module cannot go
        from iperf.v3 import params

        self.quota = params.quota(self.cfg)
        self.ctl.send_json(params.from_options(self.cfg))

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

    def _bad_state(self, s):
        """Raise what a negative, unexpected or unknown state means."""
        if s == wire.SERVER_ERROR:
            self.ctl.raise_error()
        raise _why().bad_state(self.who, s, bool(self.socks or self.res.streams))

    def _closed(self):
        return _why().closed(self.who, self.state)

    # -- streams

    def _create_streams(self):
        cfg = self.cfg
        n = cfg["parallel"]
        senders = 0 if cfg["reverse"] else n
        total = 2 * n if cfg["bidir"] else n
        ids = wire.stream_ids(total)
        header = wire.udp_header(cfg["udp_counters_64bit"]) if cfg["udp"] else None
        source = None
        if cfg["file"]:
            source = _open(cfg["file"])
        for _ in range(total):
            self.socks.append(self._udp_stream() if cfg["udp"] else self._tcp_stream())
        # what the set-up needed and the test does not
        forget("layers.socket_open")
        from iperf.flow import Flow

        for k in range(total):
            sending = k < senders
            sock = self.socks[k]
            if cfg["udp"] and not cfg["reverse"]:
                buf = self.bufs[k]  # numbers and time stamps are the stream's own
            else:
                buf = self.bufs[1] if cfg["bidir"] and not sending else self.bufs[0]
            if sending and header is not None:
                buf[:16] = bytes(16)
                buf[header.o[0]] = header.first
            f = Flow(ids[k], sock, sending, buf, header, cfg["bandwidth"] if sending else 0)
            if sending:
                f.source = source
            self.flows.append(f)
        self.emit("connected", {"local": self.flows[0].sock.local, "remote": [cfg["host"], cfg["port"]],
                                "streams": ids})  # fmt: skip

    def _tcp_stream(self):
        cfg = self.cfg
        sock = self.layer.tcp_connect(cfg["host"], cfg["port"], cfg, int(cfg["connect_timeout"] * 1000))
        c = Control(self.layer, sock, self.who)
        c.write(self.cookie)
        c.poller.unregister(sock)
        return sock

    def _udp_stream(self):
        """A connected datagram socket for which the hello was answered; hello and answer may be lost."""
        cfg = self.cfg
        sock = self.layer.udp_connect(cfg["host"], cfg["port"], cfg)
        poller = self.layer.Poller()
        poller.register(sock, 1)
        try:
            for _ in range(_HELLO_TRIES):
                sock.write(wire.UDP_HELLO)
                t0 = clock.ticks_us()
                while True:
                    left = _HELLO_MS - clock.ticks_diff(clock.ticks_us(), t0) // 1000
                    if left <= 0:
                        break
                    poller.wait(left)
                    data = sock.recv_datagram(cfg["length"])
                    if data:  # 4 bytes; or data already, when only the answer was lost
                        return sock
                if self._began():
                    return sock  # the server has all its streams: only the answer was lost
        except OSError as e:
            sock.close()
            raise _why().no_greeting(self.who, cfg["port"], 0, e) from None
        finally:
            poller.unregister(sock)
        sock.close()
        raise _why().no_greeting(self.who, cfg["port"], _HELLO_TRIES)

    def _began(self):
        """Look at the control connection between two greetings; True when the server started the test."""
        s = self.ctl.try_state()
        if s is None:
            return False
        if s not in (wire.TEST_START, wire.TEST_RUNNING):
            self._bad_state(s)
        self.pending.append(s)
        return True

    # -- the test

    def _test(self):
        cfg = self.cfg
        self.ctl.poller.unregister(self.ctl.sock)
        quota = self.quota
        from iperf.engine import Engine

        gc.collect()
        free = gc.mem_free() if hasattr(gc, "mem_free") else None
        self.engine = Engine(
            self.layer.Poller(), self.flows, time_us=0 if quota else int(cfg["time"] * 1000000),
            omit_us=int((cfg["omit"] or 0) * 1000000), quota=quota,
            interval_us=int(cfg["interval"] * 1000000), rows=_rows(cfg, len(self.flows)),
            on_row=self._row if self.live else None, watch=((self.ctl.sock, self._control_in_test),),
            idle_us=120000000,
        )  # fmt: skip
        try:
            reason = self.engine.run()
        except OSError as e:
            raise self._stream_failed(e) from None
        finally:
            self.engine.finish()
            self.ctl.poller.register(self.ctl.sock, 1)
            self.res.heap = {"free_before": free, "free_after": gc.mem_free()} if free is not None else None
        self.keep()
        if reason == "idle":
            raise IperfError("timeout", "no data moved for 120 s: the test is given up")
        if reason == "eof" and not (cfg["file"] or all(f.sender for f in self.flows)):
            self._read_what_ended_it()
        self.ctl.drain_from(self.flows, self.bufs[-1])
        self.ctl.send_state(wire.TEST_END)

    def _row(self, row):
        self.emit("interval", row)

    def _control_in_test(self):
        s = self.ctl.try_state()
        if s is None:
            return False
        self._bad_state(s)

    def _stream_failed(self, e):
        """A stream's socket failed: the control connection may say why."""
        self.keep()
        try:
            self._read_what_ended_it()
        except IperfError as why:
            return why
        return _why().stream_failed(self.who, e)

    def _read_what_ended_it(self):
        try:
            s = self.ctl.state(2000)
        except Closed:
            raise self._closed() from None
        except IperfError:
            return
        self._bad_state(s)

    def _exchange(self):
        ctl = self.ctl
        ctl.drain_stop()
        for s in self.socks:
            s.close()
        # the figures are in the result: streams, engine and loops make room for the exchange
        self.flows = []
        self.engine = None
        forget("engine", "hot", "flow")
        from iperf.v3 import results

        ctl.send_json(results.outgoing(self.res))
        theirs = ctl.read_json(_STATE_MS, "its results", _most())
        odd = results.incoming(self.res, theirs)
        if odd:
            raise IperfError("protocol", odd)
        self.res.counters = self.layer.counters()

    # -- the end

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
        for s in self.socks:
            s.close()
        if self.ctl is not None:
            self.ctl.drain_stop()
            self.ctl.close()
            self.ctl = None
        self.socks = []
        self.flows = []


def _why():
    from iperf.v3 import why

    return why


def _rows(cfg, flows):
    """Rows of the ring: the whole test where it fits in an eighth of the heap, 8 at least."""
    if not cfg["interval"]:
        return 1
    want = int((cfg["time"] + (cfg["omit"] or 0)) / cfg["interval"] + 3) * flows
    most = gc.mem_free() // 8 // 52 if hasattr(gc, "mem_free") else 100000
    return max(8, min(want if cfg["time"] else 100000, most, 100000))


def _most():
    """Largest results JSON that is read: a quarter of the heap."""
    return gc.mem_free() // 4 if hasattr(gc, "mem_free") else 1 << 24


def _open(path):
    try:
        return open(path, "rb").readinto
    except OSError as e:
        raise IperfError("usage", "cannot read the file %s: %s" % (path, e)) from None
