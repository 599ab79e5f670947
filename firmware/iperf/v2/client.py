"""iPerf 2 client: one test against an iperf server."""

from iperf.errors import IperfError
from iperf.memory import forget
from iperf.result import Result, public
from iperf.v2 import common

MODES = {"reverse": "receive", "full_duplex": "bidir", "dual": "dual", "tradeoff": "tradeoff"}


def run(cfg, layer, emit, live):
    """Run the test of `cfg` (options.client). Returns a Result; raises IperfError, whose `result` holds
    what was measured until then."""
    kind = _checked(cfg)
    forget("v2.check")
    res = Result(cfg, MODES.get(kind, "send"))
    if kind:
        if cfg["udp"] and kind == "reverse":
            from iperf.v2.udpreverse import UdpReverse as Test
        elif cfg["udp"]:
            from iperf.v2.udpmodes import UdpModes as Test
        elif kind == "reverse":
            from iperf.v2.tcpreverse import TcpReverse as Test
        else:
            from iperf.v2.tcpmodes import TcpModes as Test
    elif cfg["udp"]:
        from iperf.v2.udpsend import UdpSend as Test
    else:
        from iperf.v2.tcp import TcpClient as Test
    c = Test(cfg, layer, emit, live, res, kind)
    try:
        try:
            c.run()
            # the figures are in the result: engine and loops make room for what follows
            c.flows = []
            forget("engine", "flow", "hot", "hot_tcp", "hot_paced", "hot_blast", "hot_recv")
            c.books()
            res.counters = layer.counters()
            return res
        except OSError as e:
            raise c.broken(e) from None
        except MemoryError as e:
            raise IperfError("memory", "the board ran out of memory (%s): take a smaller length or fewer "
                             "streams, or reset it" % e) from None  # fmt: skip
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


def _checked(cfg):
    # a frame of its own: while it lives, the module cannot go
    from iperf.v2.check import check

    return check(cfg)


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
        self.emit("start", {"role": "client", "options": public(self.cfg),
                            "adapted": self.cfg["adapted"]})  # fmt: skip

    def connected(self):
        self.res.remote = self.cfg["host"]
        ids = [k + 1 for k in range(len(self.socks))]
        for k in ids:
            s = self.socks[k - 1]
            self.res.conns.append((k, s.local, s.remote))
        self.emit("connected", {"local": self.socks[0].local, "remote": [self.cfg["host"], self.cfg["port"]],
                                "streams": ids})  # fmt: skip

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
        from iperf.v2 import why

        return why.closed(n, self.who, "in the test")

    def close(self):
        for s in self.socks:
            s.close()
        self.socks = []
