"""The test that a client of our iPerf 3 server asks for (iperf.md B2), and whether it can be had."""

from iperf import result
from iperf.errors import IperfError
from iperf.memory import TCP_LENGTH, buffer, fitting
from iperf.v3 import message, payload
from iperf.v3.server import Refused

# numbers of iperf_api.h that say why not
_NO_BUFFER = 8
_LENGTH = 20
_RATE = 27
_DURATION = 37
_PARAMS = 114
_OPTIONS = (("window", 130), ("mss", 123), ("tos", 125), ("nodelay", 122))


def run(test):
    """Read the parameters into test.cfg and make buffers and result. Raises Refused."""
    server = test.server.cfg
    try:
        test.cfg = cfg = to_options(message.read(test.ctl, 15000, "its parameters", 8192), server)
    except ValueError as e:
        raise Refused(_PARAMS, "the parameter %s makes no sense" % e) from None
    caps = test.layer.caps()
    for key, code in _OPTIONS:
        if cfg[key] and key not in caps["options"]:
            raise Refused(code, "layer %s cannot set %s" % (test.layer.NAME, key))
    if cfg["udp"] and cfg["length"] > caps["udp_max"]:
        if cfg["length"] == TCP_LENGTH:
            cfg["length"] = min(1460, caps["udp_max"])
        else:
            raise Refused(_LENGTH, "datagrams of %d bytes are longer than the layer's %d"
                          % (cfg["length"], caps["udp_max"]))  # fmt: skip
    limit = server["time"]
    if limit and (not cfg["time"] or cfg["time"] + cfg["omit"] > limit):
        raise Refused(_DURATION, "the test is longer than %d s" % limit)
    limit = server["bandwidth_limit"]
    if limit and (not cfg["bandwidth"] or cfg["bandwidth"] * cfg["parallel"] > limit):
        raise Refused(_RATE, "the rate is over %d bit/s" % limit)
    n = cfg["parallel"] * (2 if cfg["bidir"] else 1)
    sends = cfg["reverse"] or cfg["bidir"]
    try:
        # a TCP length is only the size of one write: a board takes what its heap allows
        if not cfg["udp"]:
            cfg["length"] = fitting(cfg["length"] or TCP_LENGTH, 2 if cfg["bidir"] else 1)
        test.bufs = buffer(cfg, n if cfg["udp"] and sends else 2 if cfg["bidir"] else 1)
    except IperfError as e:
        raise Refused(_NO_BUFFER, e.text) from None
    test.res = result.Result(cfg, "bidir" if cfg["bidir"] else "send" if cfg["reverse"] else "receive")
    test.res.remote = test.remote[0] if test.remote else None
    for b in test.bufs:
        payload.fill(b, cfg["repeating_payload"])


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
