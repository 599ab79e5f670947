"""The result of one run (docs/contracts.md, section 3). What only its end needs is in iperf.summary."""


def public(cfg):
    """The effective options that were set, for the result."""
    return {k: v for k, v in cfg.items() if v is not None and v is not False and k not in ("adapted", "role")}


class Result:
    """What a run measured. `to_dict()` for machines, `text()` for people (iperf's own lines)."""

    def __init__(self, cfg, mode):
        self.cfg = cfg
        self.version = cfg["version"]
        self.role = cfg["role"]
        self.proto = "udp" if cfg["udp"] else "tcp"
        self.mode = mode
        self.remote = None
        self.conns = []  # (stream id, local, remote) for the text; addresses are (ip, port) or None
        self.streams = []
        self.peer_sent = None
        self.peer_received = None
        self.peer_text = None
        self.rings = []
        self.heap = None
        self.cpu = None
        self.counters = {}
        self.error = None

    def take(self, engine):
        """Streams and interval rows of a finished engine."""
        for f in engine.flows:
            self.streams.append(f.to_dict(f.end_us - f.start_us))
        self.rings.append(engine.ring)

    def rows(self):
        """The interval rows one by one, oldest first: a board has no room for all of them as dicts."""
        for ring in self.rings:
            for k in range(len(ring)):
                yield ring.row(k)

    @property
    def intervals(self):
        return list(self.rows())

    @property
    def intervals_dropped(self):
        return sum(ring.dropped for ring in self.rings)

    @property
    def sent(self):
        return self._sum(True)

    @property
    def received(self):
        return self._sum(False)

    def _sum(self, sender):
        from iperf.summary import total

        return total([s for s in self.streams if s["sender"] == sender])

    def to_dict(self, intervals=True):
        """The dict of docs/contracts.md; without the interval rows where they go another way."""
        from iperf.summary import to_dict

        return to_dict(self, intervals)

    def text(self):
        """iperf's own text lines of this run."""
        if self.version == 3:
            from iperf import text3 as t
        else:
            from iperf import text2 as t
        return t.lines(self)

    def __str__(self):
        return self.text()
