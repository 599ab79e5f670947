"""iPerf 3 server: serves the real iperf3 client, one test at a time; a second client is told "busy"."""

import gc

from iperf import clock, result
from iperf.engine import Engine
from iperf.errors import IperfError
from iperf.flow import Flow
from iperf.memory import TCP_LENGTH, buffer, forget
from iperf.v3 import wire
from iperf.v3.control import Closed, Control

_STATE_MS = 15000
_KEEP = 8  # results kept of a server that runs on
_GRACE_S = 40  # what iperf3's own server grants beyond the test's time (iperf.md B7)


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


class _Refused(Exception):
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
    """One client's session."""

    def __init__(self, server, sock, remote):
        self.server = server
        self.layer = server.layer
        self.emit = server.emit
        self.remote = remote
        self.who = "the client %s" % (remote[0] if remote else "")
        self.ctl = Control(self.layer, sock, self.who)
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
            p = ctl.read_json(_STATE_MS, "its parameters", 8192)
            self._take_params(p)
            self._create_streams()
            # in one segment: Nagle would hold the second back for the delayed ACK of the first, 40 ms
            ctl.write(bytes((wire.TEST_START, wire.TEST_RUNNING)))
            self._test()
            self._exchange()
        except _Refused as e:
            code, why = e.args
            self.refuse(code)
            raise IperfError("unsupported", "refused a test: %s" % why) from None
        except Closed:
            raise IperfError("closed", "%s went away %s" % (self.who, "during the test" if self.engine else
                             "before the test began")) from None  # fmt: skip

    def _take_params(self, p):
        from iperf.v3 import params

        server = self.server.cfg
        try:
            cfg = params.to_options(p, server)
        except ValueError as e:
            raise _Refused(wire.IERECVPARAMS, "the parameter %s makes no sense" % e) from None
        self.cfg = cfg
        for key, code in (("window", wire.IESETWINDOW), ("mss", wire.IESETMSS), ("tos", wire.IESETTOS),
                          ("nodelay", wire.IESETNODELAY)):  # fmt: skip
            if cfg[key] and key not in self.layer.caps()["options"]:
                raise _Refused(code, "layer %s cannot set %s" % (self.layer.NAME, key))
        if cfg["udp"] and cfg["length"] > self.layer.caps()["udp_max"]:
            if cfg["length"] == TCP_LENGTH:
                cfg["length"] = min(1460, self.layer.caps()["udp_max"])
            else:
                raise _Refused(20, "datagrams of %d bytes are longer than the layer's %d"
                               % (cfg["length"], self.layer.caps()["udp_max"]))  # fmt: skip
        limit = server["time"]
        if limit and (not cfg["time"] or cfg["time"] + cfg["omit"] > limit):
            raise _Refused(37, "the test is longer than %d s" % limit)
        limit = server["bandwidth_limit"]
        if limit and (not cfg["bandwidth"] or cfg["bandwidth"] * cfg["parallel"] > limit):
            raise _Refused(27, "the rate is over %d bit/s" % limit)
        n = cfg["parallel"] * (2 if cfg["bidir"] else 1)
        sends = cfg["reverse"] or cfg["bidir"]
        try:
            # a TCP length is only the size of one write: a board takes what its heap allows
            if not cfg["udp"]:
                cfg["length"] = min(cfg["length"] or TCP_LENGTH, _most())
            self.bufs = buffer(cfg, n if cfg["udp"] and sends else 2 if cfg["bidir"] else 1)
        except IperfError as e:
            raise _Refused(8, e.text) from None
        self.res = result.Result(cfg, "bidir" if cfg["bidir"] else "send" if cfg["reverse"] else "receive")
        self.res.remote = self.remote[0] if self.remote else None
        for b in self.bufs:
            wire.fill(b, cfg["repeating_payload"])

    # -- streams

    def _create_streams(self):
        cfg = self.cfg
        n = cfg["parallel"]
        total = 2 * n if cfg["bidir"] else n
        ids = wire.stream_ids(total)
        header = wire.udp_header(cfg["udp_counters_64bit"]) if cfg["udp"] else None
        if cfg["udp"]:
            # bound before the client is told, or its first datagram finds nobody (iperf.md B8)
            self._bind_udp()
        self.ctl.send_state(wire.CREATE_STREAMS)
        for k in range(total):
            sending = cfg["reverse"] or (cfg["bidir"] and k >= n)
            sock = self._udp_stream(k + 1 < total) if cfg["udp"] else self._tcp_stream()
            many = len(self.bufs) == total
            buf = self.bufs[k] if many else self.bufs[1] if cfg["bidir"] and not sending else self.bufs[0]
            if sending and header is not None:
                buf[:16] = bytes(16)
                buf[header.o[0]] = header.first
            self.flows.append(Flow(ids[k], sock, sending, buf, header, cfg["bandwidth"] if sending else 0))
        self.emit("connected", {"local": self.flows[0].sock.local, "remote": self.remote, "streams": ids})

    def _wait(self, poll, t0, what):
        """Wait for a stream while watching the control connection. Raises Closed, IperfError."""
        if clock.ticks_diff(clock.ticks_us(), t0) > 10000000:
            raise IperfError("timeout", "%s did not open its %s within 10 s" % (self.who, what))
        poll.wait(200)
        if self.ctl.sock.ready:
            self._client_said(self.ctl.try_state())

    def _tcp_stream(self):
        poll = self.layer.Poller()
        poll.register(self.server.listener, 1)
        poll.register(self.ctl.sock, 1)
        t0 = clock.ticks_us()
        try:
            while True:
                got = self.server.listener.accept()
                if got is None:
                    self._wait(poll, t0, "data connections")
                    continue
                sock = got[0]
                sock.configure(self.cfg)
                c = Control(self.layer, sock, self.who)
                try:
                    if bytes(c.read(wire.COOKIE_SIZE, 2000, "its cookie")) == self.cookie:
                        c.poller.unregister(sock)
                        return sock
                    c.write(bytes((wire.ACCESS_DENIED,)))
                except (Closed, IperfError):
                    pass
                c.close()
        finally:
            poll.unregister(self.server.listener)
            poll.unregister(self.ctl.sock)

    def _bind_udp(self):
        cfg = self.server.cfg
        self.udp = self.layer.udp_bind(cfg["bind"], cfg["port"], self.cfg)

    def _udp_stream(self, more):
        poll = self.layer.Poller()
        poll.register(self.udp, 1)
        poll.register(self.ctl.sock, 1)
        t0 = clock.ticks_us()
        hello = bytearray(64)
        try:
            while True:
                got = self.udp.recvfrom_into(hello)
                if got is None:
                    self._wait(poll, t0, "UDP stream")
                    continue
                break
        finally:
            poll.unregister(self.udp)
            poll.unregister(self.ctl.sock)
        sock = self.udp.connect(got[1])
        self.udp = None
        if more:
            self._bind_udp()
        sock.write(wire.UDP_REPLY)
        return sock

    # -- the test

    def _test(self):
        cfg = self.cfg
        self.ctl.poller.unregister(self.ctl.sock)
        forget("v3.params", "options", "layers.socket_open", "units")
        gc.collect()
        free = gc.mem_free() if hasattr(gc, "mem_free") else None
        whole = cfg["time"] + cfg["omit"] + _GRACE_S if cfg["time"] else 0
        self.engine = Engine(
            self.layer.Poller(), self.flows, time_us=int(whole * 1000000) if not cfg["omit"] else 0,
            omit_us=int(cfg["omit"] * 1000000), interval_us=int(cfg["interval"] * 1000000), rows=64,
            on_row=self._row if self.server.live else None,
            watch=((self.ctl.sock, self._control_in_test), (self.server.listener, self._another_client)),
            idle_us=int(self.server.cfg["rcv_timeout"] * 1000000),
        )  # fmt: skip
        self.emit("running", {})
        try:
            reason = self.engine.run()
            if reason in ("eof", "fin"):
                self._wait_for_end()
        except OSError as e:
            self.keep()
            self._wait_for_end()
            if e.args and e.args[0] == 12:
                raise IperfError("memory", "no memory left for the network (ENOMEM)", 12) from None
        finally:
            self.engine.finish()
            self.ctl.poller.register(self.ctl.sock, 1)
            self.res.heap = {"free_before": free, "free_after": gc.mem_free()} if free is not None else None
        self.keep()
        if not self.ended:
            self.refuse(160)
            raise IperfError("timeout", "%s did not end its test in time: the test is given up" % self.who)

    def _row(self, row):
        self.emit("interval", row)

    def _control_in_test(self):
        return self._client_said(self.ctl.try_state())

    def _client_said(self, s):
        """A state from the client; True for the end of the test. Raises Closed, IperfError."""
        if s is None:
            return False
        if s == wire.TEST_END:
            self.ended = True
            return True
        if s == wire.CLIENT_TERMINATE:
            raise IperfError("closed", "%s stopped the test" % self.who)
        self.refuse(wire.IEMESSAGE)
        raise IperfError("protocol", "%s sent the unknown state %d" % (self.who, s))

    def _another_client(self):
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

    def _wait_for_end(self):
        """All streams have ended: the client's word must follow."""
        t0 = clock.ticks_us()
        poll = self.layer.Poller()
        poll.register(self.ctl.sock, 1)
        poll.register(self.server.listener, 1)
        try:
            while not self._client_said(self.ctl.try_state()):
                if clock.ticks_diff(clock.ticks_us(), t0) > 10000000:
                    return
                self._another_client()
                poll.wait(200)
        finally:
            poll.unregister(self.server.listener)
            poll.unregister(self.ctl.sock)

    def _exchange(self):
        ctl = self.ctl
        res = self.res
        # iperf3's client reads whole blocks to the end in -R: only EOF gets it out of a partial one
        for f in self.flows:
            f.sock.close()
        ctl.send_state(wire.EXCHANGE_RESULTS)
        theirs = ctl.read_json(_STATE_MS, "its results", _most() * 2)
        from iperf.v3 import results

        odd = results.incoming(res, theirs)
        text = None
        if self.cfg["get_server_output"]:
            text = res.text()
        ctl.send_json(results.outgoing(res, text))
        ctl.send_state(wire.DISPLAY_RESULTS)
        res.counters = self.layer.counters()
        try:
            ctl.state(10000, "its goodbye")
        except (Closed, IperfError):
            pass  # the results are exchanged: how it leaves does not matter
        if odd:
            raise IperfError("protocol", odd)

    # -- the end

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

    def close(self):
        for f in self.flows:
            f.sock.close()
        self.flows = []
        if self.udp is not None:
            self.udp.close()
            self.udp = None
        self.ctl.close()


def _is_cookie(c):
    for x in c[:36]:
        if not (97 <= x <= 122 or 50 <= x <= 55):
            return False
    return True


def _most():
    """Largest block or text: a quarter of the heap."""
    return gc.mem_free() // 4 if hasattr(gc, "mem_free") else 1 << 20
