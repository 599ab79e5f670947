"""The parameters of a test as JSON (iperf.md B2): from our options, and from a client's."""

from iperf.memory import TCP_LENGTH

VERSION = "3.12"  # the behaviour that we follow


def from_options(cfg):
    """What a client sends. Booleans are exactly true: from 3.18 on servers check the type."""
    udp = cfg["udp"]
    p = {
        "udp" if udp else "tcp": True, "omit": int(cfg["omit"] or 0),
        "time": 0 if cfg["num_bytes"] or cfg["blocks"] else int(cfg["time"]),
        "num": cfg["num_bytes"] or 0, "blockcount": cfg["blocks"] or 0, "parallel": cfg["parallel"],
        "len": cfg["length"], "pacing_timer": 1000, "client_version": VERSION,
    }  # fmt: skip
    if cfg["bandwidth"]:
        p["bandwidth"] = cfg["bandwidth"]
    for key, name in (("reverse", "reverse"), ("bidir", "bidirectional"), ("nodelay", "nodelay")):
        if cfg[key]:
            p[name] = True
    for key, name in (("window", "window"), ("mss", "MSS"), ("tos", "TOS"), ("title", "title"),
                      ("extra_data", "extra_data")):  # fmt: skip
        if cfg[key]:
            p[name] = cfg[key]
    for key in ("get_server_output", "udp_counters_64bit", "repeating_payload"):
        if cfg[key] and (udp or key != "udp_counters_64bit"):
            p[key] = 1
    return p


def to_options(p, server_cfg):
    """The options of a test that a client asked for, as `options.client` makes them.

    Raises ValueError with the reason for what makes no sense.
    """
    udp = bool(p.get("udp"))
    if p.get("sctp"):
        raise ValueError("SCTP")
    num = _int(p, "num", 0)
    blocks = _int(p, "blockcount", 0)
    length = _int(p, "len", 0)
    parallel = _int(p, "parallel", 1)
    if not 1 <= parallel <= 128:
        raise ValueError("parallel %d" % parallel)
    if not 0 <= length <= 1 << 20 or (udp and not 12 <= length <= 65507):
        # without `len` nobody knows where one datagram ends (iperf.md, "UDP length trap")
        raise ValueError("len %d" % length)
    cfg = {
        "version": 3, "role": "server", "host": None, "udp": udp, "port": server_cfg["port"],
        "time": _int(p, "time", 0 if num or blocks else 10), "omit": _int(p, "omit", 0), "num_bytes": num,
        "blocks": blocks, "length": length or None, "parallel": parallel,
        "reverse": bool(p.get("reverse")), "bidir": bool(p.get("bidirectional")),
        "bandwidth": _int(p, "bandwidth", 0), "window": _int(p, "window", 0) or None,
        "mss": _int(p, "MSS", 0) or None, "nodelay": bool(p.get("nodelay")), "tos": _int(p, "TOS", 0) or None,
        "udp_counters_64bit": bool(p.get("udp_counters_64bit")),
        "repeating_payload": bool(p.get("repeating_payload")),
        "get_server_output": bool(p.get("get_server_output")), "title": p.get("title"),
        "interval": server_cfg["interval"], "layer": server_cfg["layer"], "ipv6": server_cfg["ipv6"],
        "format": server_cfg["format"], "adapted": [],
    }  # fmt: skip
    if udp and not length:
        cfg["length"] = TCP_LENGTH
    return cfg


def _int(p, key, default):
    v = p.get(key, default)
    if v is True or not isinstance(v, (int, float)) or v < 0:
        raise ValueError("%s %r" % (key, v))
    return int(v)


def quota(cfg):
    """Bytes that end the test, 0 for a test by time."""
    if cfg["num_bytes"]:
        return cfg["num_bytes"]
    if cfg["blocks"]:
        return cfg["blocks"] * cfg["length"]
    return 0
