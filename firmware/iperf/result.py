"""The result of one run (docs/contracts.md, section 3)."""

_SUMMED = ("bytes", "packets", "lost", "ooo", "dup", "retries", "enomem", "stall_us")


def total(streams):
    """SUM of a list of STREAM dicts of one direction; None for an empty list."""
    if not streams:
        return None
    s = {k: sum(t[k] or 0 for t in streams) for k in _SUMMED}
    s["us"] = max(t["us"] for t in streams)
    j = [t["jitter_us"] for t in streams if t["jitter_us"] is not None]
    s["jitter_us"] = sum(j) // len(j) if j else None
    return s


def bits_per_s(s):
    """Rate of a SUM or STREAM in bit/s (0.0 where no time passed)."""
    return s["bytes"] * 8e6 / s["us"] if s and s["us"] else 0.0


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
        return total([s for s in self.streams if s["sender"]])

    @property
    def received(self):
        return total([s for s in self.streams if not s["sender"]])

    def to_dict(self, intervals=True):
        """The dict of docs/contracts.md; without the interval rows where they go another way."""
        c = self.cfg
        return {
            "version": self.version, "role": self.role, "proto": self.proto, "mode": self.mode,
            "layer": c["layer"], "host": c["host"] or self.remote, "port": c["port"],
            "options": public(c), "adapted": c.get("adapted", []), "streams": self.streams,
            "sent": self.sent, "received": self.received, "peer_sent": self.peer_sent,
            "peer_received": self.peer_received, "peer_text": self.peer_text,
            "intervals": self.intervals if intervals else [], "intervals_dropped": self.intervals_dropped,
            "heap": self.heap, "cpu": self.cpu, "counters": self.counters, "error": self.error,
        }  # fmt: skip

    def text(self):
        """iperf's own text lines of this run."""
        if self.version == 3:
            from iperf import text3 as t
        else:
            from iperf import text2 as t
        return t.lines(self)

    def __str__(self):
        return self.text()
