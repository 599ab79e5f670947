"""iPerf 2 client: one test against an iperf server."""

from iperf import options
from iperf.errors import IperfError
from iperf.result import Result
from iperf.v2 import common

_MODES = {"reverse": "receive", "full_duplex": "bidir", "dual": "dual", "tradeoff": "tradeoff"}
_OLD = ("2.0", "2.0.5", "2.0.6", "2.0.7", "2.0.8", "2.0.9")
_SIGNED = ("2.0.10", "2.0.11", "2.0.12")
_PLAIN = ("True", "true", "1", "C")


def run(cfg, layer, emit, live):
    """Run the test of `cfg` (options.client). Returns a Result; raises IperfError, whose `result` holds
    what was measured until then."""
    kind = _check(cfg)
    res = Result(cfg, _MODES.get(kind, "send"))
    if cfg["udp"]:
        from iperf.v2.udp import UdpClient as Client
    else:
        from iperf.v2.tcp import TcpClient as Client
    c = Client(cfg, layer, emit, live, res, kind)
    try:
        try:
            c.run()
            c.books()
            res.counters = layer.counters()
            return res
        except OSError as e:
            raise c.broken(e) from None
        except KeyboardInterrupt:
            raise IperfError("interrupted", "interrupted: what was measured until then is kept") from None
    except IperfError as e:
        c.keep()
        c.books()
        res.error = {"kind": e.kind, "text": e.text}
        e.result = res
        raise
    finally:
        c.close()


def _check(cfg):
    """Check what iperf 2 can do with these options; returns the mode, None for a plain test."""
    kind = None
    for k in _MODES:
        if cfg[k]:
            kind = k
    c = cfg["compat"]
    if c is not None and c not in _OLD + _SIGNED + _PLAIN:
        raise IperfError("usage", "compat=%r is not known: True (no header, iperf -C), '2.0.9' or older, or "
                         "'2.0.10' to '2.0.12'" % (c,))  # fmt: skip
    if kind and c in _PLAIN:
        raise IperfError("usage", "compat sends no header, and %s needs one: leave out one of the two" % kind)
    if kind in ("reverse", "full_duplex") and c:
        raise IperfError("usage", "iperf %s knows no %s: use dual or tradeoff" % (c, kind))
    cfg["old"] = c in _OLD
    cfg["signed"] = c in _SIGNED
    if kind and not cfg["time"] and not cfg["num_bytes"]:
        raise IperfError("usage", "time=0 (no end) cannot be asked of the server: give a time or num_bytes")
    if kind and cfg["num_bytes"] and cfg["num_bytes"] > 0x7FFFFFFF:
        raise IperfError("usage", "num_bytes over 2147483647 cannot be asked of an iperf 2 server: use time")
    if cfg["time"] > 21474836:
        raise IperfError("usage", "time must be at most 21474836 s: iperf 2's header has no room for more")
    if cfg["pps"]:
        if not cfg["udp"]:
            raise IperfError("usage", "pps needs udp=True: a TCP stream has no datagrams to count")
        cfg["bandwidth"] = cfg["pps"] * 8 * cfg["length"]
    if cfg["file"] and (cfg["udp"] or kind == "reverse"):
        raise IperfError("usage", "file goes with sending over TCP only")
    need = 36 if cfg["old"] else 40 if cfg["signed"] else 76
    if cfg["udp"] and kind in ("dual", "tradeoff", "full_duplex") and cfg["length"] < need:
        raise IperfError("usage", "length must be at least %d bytes: the request of a %s test needs them"
                         % (need, kind))  # fmt: skip
    if not cfg["udp"] and cfg["bandwidth"]:
        _block_of_rate(cfg)
    return kind


def _block_of_rate(cfg):
    """A TCP block of more than a second's worth is refused, as iperf does; the default one shrinks."""
    second = cfg["bandwidth"] // 8
    if cfg["length"] is None:
        n = options.TCP_LENGTH
        while n > 1024 and n > second // 20:
            n //= 2
        if n < options.TCP_LENGTH:
            cfg["length"] = n
            cfg["adapted"].append("blocks of %d bytes: at this bandwidth larger ones come in bursts" % n)
    elif cfg["length"] > second:
        raise IperfError("usage", "length %d is more than a second of %d bit/s: take smaller blocks"
                         % (cfg["length"], cfg["bandwidth"]))  # fmt: skip


class Client:
    """What the TCP and the UDP client share. `kind`: reverse, full_duplex, dual, tradeoff or None."""

    def __init__(self, cfg, layer, emit, live, res, kind):
        self.cfg = cfg
        self.layer = layer
        self.emit = emit
        self.live = live
        self.res = res
        self.kind = kind
        self.who = "the server %s port %d" % (cfg["host"], cfg["port"])
        self.poller = layer.Poller()
        self.flows = []
        self.socks = []
        self.engine = None
        self.time_us = 0 if cfg["num_bytes"] or cfg["file"] else int(cfg["time"] * 1000000)

    # what the server is asked for
    @property
    def amount(self):
        n = self.cfg["num_bytes"]
        return n if n else -int(self.cfg["time"] * 100)

    def begin(self, flows, time_us):
        """Start an engine on these flows."""
        self.keep()
        self.flows = flows
        for f in flows:
            if f.sender and self.cfg["num_bytes"]:
                f.quota = self.cfg["num_bytes"]
        self.engine = common.engine(self.poller, flows, self.cfg, time_us, self._row if self.live else None)
        return self.engine

    def _row(self, row):
        self.emit("interval", row)

    def started(self):
        """Say that the test begins (the options are final)."""
        self.emit("start", {"role": "client", "options": options.public(self.cfg),
                            "adapted": self.cfg["adapted"]})  # fmt: skip

    def connected(self):
        self.res.remote = self.cfg["host"]
        ids = [k + 1 for k in range(len(self.socks))]
        for k in ids:
            s = self.socks[k - 1]
            self.res.conns.append((k, s.local, s.remote))
        self.emit("connected", {"local": self.socks[0].local, "remote": [self.cfg["host"], self.cfg["port"]],
                                "streams": ids})  # fmt: skip

    def joined(self, f):
        """A stream of the server's own has come: it joins the test."""
        self.engine.add(f)
        self.res.conns.append((f.id, f.sock.local, f.sock.remote))

    def end_senders(self):
        for f in self.flows:
            if f.sender:
                self.engine.end(f)

    def keep(self):
        """Take what the engine counted into the result, once."""
        e, self.engine = self.engine, None
        if e is not None:
            e.finish()
            self.res.take(e)

    def books(self):
        """Put what the server reported into the result (UDP)."""

    def broken(self, e):
        """The IperfError that says what an OSError means here."""
        n = e.args[0] if e.args and isinstance(e.args[0], int) else 0
        return common.closed(n, self.who, "in the test")

    def no_callback(self):
        return IperfError("peer", "%s did not connect back to port %d: a firewall on the way, or a server "
                          "that knows no %s" % (self.who, self.cfg["listen_port"], self.kind))  # fmt: skip

    def no_data(self):
        return IperfError("peer", "%s sent nothing: iperf 2.0 servers know no %s (dual and tradeoff they do)"
                          % (self.who, self.kind))  # fmt: skip

    def close(self):
        for s in self.socks:
            s.close()
        self.socks = []
