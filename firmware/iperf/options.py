"""The options of a run: iperf's own defaults, checked before anything is sent."""

from iperf import units
from iperf.errors import IperfError
from iperf.memory import TCP_LENGTH, buffer  # noqa: F401
from iperf.result import public  # noqa: F401

# name: (kind, iPerf versions that have it). Kinds: b bool, i int >= 0, n number >= 0, s text, z size
# in bytes (suffixes), r rate in bit/s (suffixes).
_COMMON = {
    "udp": ("b", "23"), "port": ("i", "23"), "length": ("z", "23"), "window": ("z", "23"),
    "interval": ("n", "23"), "bind": ("s", "23"), "ipv6": ("b", "23"), "layer": ("s", "23"),
    "mss": ("z", "23"), "tos": ("i", "23"), "nodelay": ("b", "23"), "format": ("s", "23"),
}  # fmt: skip
_CLIENT = {
    "time": ("n", "23"), "bandwidth": ("r", "23"), "parallel": ("i", "23"), "reverse": ("b", "23"),
    "num_bytes": ("z", "23"), "ttl": ("i", "23"), "file": ("s", "23"), "connect_timeout": ("n", "23"),
    "bidir": ("b", "3"), "omit": ("n", "3"), "blocks": ("i", "3"), "get_server_output": ("b", "3"),
    "udp_counters_64bit": ("b", "3"), "title": ("s", "3"), "extra_data": ("s", "3"),
    "repeating_payload": ("b", "3"), "busy_retries": ("i", "3"),
    "dual": ("b", "2"), "tradeoff": ("b", "2"), "full_duplex": ("b", "2"), "listen_port": ("i", "2"),
    "compat": ("s", "2"), "pps": ("i", "2"),
}  # fmt: skip
_SERVER = {
    "one_off": ("b", "23"), "tests": ("i", "23"), "time": ("n", "23"), "idle_timeout": ("n", "23"),
    "rcv_timeout": ("n", "23"), "bandwidth_limit": ("r", "3"),
}  # fmt: skip

_LAYER_OPTIONS = ("window", "mss", "tos", "ttl", "nodelay", "ipv6", "bind")
PORTS = {2: 5001, 3: 5201}
UDP_RATE = 1048576  # both programs: 1 Mibit/s
_UDP_LENGTH = {2: 1470, 3: 1460}
_MAX_STREAMS = 128


def client(host, version, kw):
    """The checked options of a client as a dict (all keys present). Raises IperfError usage."""
    if not isinstance(host, str) or not host:
        raise _usage("host must be a name or an address, such as '192.168.1.5'")
    cfg = _take(version, kw, _COMMON, _CLIENT)
    cfg["host"] = host
    cfg["role"] = "client"
    udp = cfg["udp"]
    _default(cfg, "time", 10)
    _default(cfg, "parallel", 1)
    _default(cfg, "interval", 1)
    _default(cfg, "connect_timeout", 5)
    _default(cfg, "format", "a")
    _default(cfg, "listen_port", cfg["port"])
    if not 1 <= cfg["parallel"] <= _MAX_STREAMS:
        raise _usage("parallel must be 1 to %d, not %d" % (_MAX_STREAMS, cfg["parallel"]))
    if cfg["bandwidth"] is None:
        cfg["bandwidth"] = UDP_RATE if udp else 0
    if sum(1 for k in ("reverse", "bidir", "dual", "tradeoff", "full_duplex") if cfg.get(k)) > 1:
        raise _usage("only one of reverse, bidir, dual, tradeoff and full_duplex at a time")
    if udp and (cfg["mss"] or cfg["nodelay"]):
        raise _usage("mss and nodelay are TCP options: leave them out with udp=True")
    ends = [k for k in ("num_bytes", "blocks") if cfg.get(k)]
    if len(ends) > 1 or (ends and "time" in kw and kw["time"] is not None and version == 3):
        raise _usage("only one test end: time, num_bytes or blocks")
    if version == 3 and cfg["time"] > 86400:
        raise _usage("time must be at most 86400 s: iperf3 refuses more (time=0 has no limit)")
    if version == 3 and cfg["omit"] and cfg["omit"] > 600:
        raise _usage("omit must be at most 600 s")
    return cfg


def server(version, kw):
    """The checked options of a server as a dict (all keys present). Raises IperfError usage."""
    cfg = _take(version, kw, _COMMON, _SERVER)
    cfg["host"] = None
    cfg["role"] = "server"
    _default(cfg, "interval", 1)
    _default(cfg, "format", "a")
    # iPerf 2 over TCP: longer than a stall of Wi-Fi, over UDP: the client may never say that it ended
    _default(cfg, "rcv_timeout", 120 if version == 3 else 5 if cfg["udp"] else 30)
    return cfg


def check_layer(cfg, layer):
    """Refuse what the layer cannot honour; fill in and check the block length. Raises IperfError."""
    caps = layer.caps()
    for k in _LAYER_OPTIONS:
        if cfg.get(k) and k not in caps["options"]:
            why = caps["why"].get(k, "it has no such setting")
            raise IperfError("unsupported", "layer %s cannot honour %s: %s" % (layer.NAME, k, why))
    cfg["adapted"] = []
    if cfg["udp"]:
        top = caps["udp_max"]
        if cfg["length"] is None:
            cfg["length"] = _UDP_LENGTH[cfg["version"]] - (20 if cfg.get("ipv6") else 0)
            if cfg["length"] > top:
                cfg["length"] = top
                cfg["adapted"].append("datagrams of %d bytes: the layer's largest" % top)
        elif cfg["length"] > top:
            raise IperfError("unsupported", "layer %s sends at most %d bytes in a datagram, not %d"
                             % (layer.NAME, top, cfg["length"]))  # fmt: skip
        elif cfg["length"] < 16:
            raise _usage("length must be at least 16 bytes with udp: the header needs them")


def _take(version, kw, *tables):
    if version not in (2, 3):
        raise _usage("version must be 3 or 2, not %r" % (version,))
    cfg = {"version": version}
    known = {}
    for t in tables:
        known.update(t)
        for k in t:
            cfg[k] = None
    for k, v in kw.items():
        if k not in known:
            raise _usage("no option %r%s" % (k, _near(k, known)))
        kind, versions = known[k]
        if v is None or v is False:
            cfg[k] = v
            continue
        if str(version) not in versions:
            raise _usage("iPerf %d has no option %s%s" % (version, k, _instead(k, version)))
        cfg[k] = _value(k, kind, v, version)
    _default(cfg, "port", PORTS[version])
    _default(cfg, "layer", "socket")
    if not 0 < cfg["port"] < 65536:
        raise _usage("port must be 1 to 65535, not %d" % cfg["port"])
    return cfg


def _value(k, kind, v, version):
    try:
        if kind == "b":
            return bool(v)
        if kind == "s":
            return v if isinstance(v, str) else str(v)
        if kind == "i" and isinstance(v, str):
            v = int(v, 0) if hasattr(v, "encode") else int(v)
        elif kind == "n" and isinstance(v, str):
            v = float(v)
        elif kind == "z":
            v = units.parse(v, 0 if version == 2 else 1024)
        elif kind == "r":
            v = units.parse(v, 0 if version == 2 else 1000)
        elif kind == "i":
            v = int(v)
        if v < 0:
            raise ValueError
        return v
    except (ValueError, TypeError):
        raise _usage("%s=%r is not %s" % (k, v, {
            "i": "a whole number of 0 or more", "n": "a number of 0 or more", "z": "a size in bytes",
            "r": "a rate in bit/s"}[kind])) from None  # fmt: skip


_INSTEAD = {
    ("bidir", 2): "dual=True (two connections) or full_duplex=True (one)",
    ("dual", 3): "bidir=True",
    ("full_duplex", 3): "bidir=True",
    ("tradeoff", 3): "a second run with reverse=True",
    ("blocks", 2): "num_bytes",
    ("omit", 2): "a longer time",
}


def _instead(k, version):
    t = _INSTEAD.get((k, version))
    return ": use " + t if t else ""


def _near(k, known):
    alias = {
        "bitrate": "bandwidth", "duration": "time", "len": "length", "bytes": "num_bytes",
        "blksize": "length", "streams": "parallel", "num_streams": "parallel", "server_hostname": "host",
        "bidirectional": "bidir", "protocol": "udp", "rate": "bandwidth", "no_delay": "nodelay",
    }  # fmt: skip
    if k in alias:
        return ": it is called " + alias[k]
    near = [n for n in known if n.startswith(k[:3]) or k in n]
    return ": did you mean %s?" % " or ".join(sorted(near)) if near else ""


def _default(cfg, key, value):
    if cfg.get(key) is None:
        cfg[key] = value


def _usage(text):
    return IperfError("usage", text)
