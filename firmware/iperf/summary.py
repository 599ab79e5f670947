"""What a result needs only when the test is over: sums, and its dict (docs/contracts.md, section 3)."""

from iperf.result import public

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


def to_dict(res, intervals):
    """The dict of a Result; without the interval rows where they go another way."""
    c = res.cfg
    return {
        "version": res.version, "role": res.role, "proto": res.proto, "mode": res.mode,
        "layer": c["layer"], "host": c["host"] or res.remote, "port": c["port"],
        "options": public(c), "adapted": c.get("adapted", []), "streams": res.streams,
        "sent": res.sent, "received": res.received, "peer_sent": res.peer_sent,
        "peer_received": res.peer_received, "peer_text": res.peer_text,
        "intervals": res.intervals if intervals else [], "intervals_dropped": res.intervals_dropped,
        "heap": res.heap, "cpu": res.cpu, "counters": res.counters, "error": res.error,
    }  # fmt: skip
