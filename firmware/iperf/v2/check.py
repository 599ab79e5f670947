"""What iPerf 2 can do with the options of a client."""

from iperf.errors import IperfError
from iperf.memory import TCP_LENGTH
from iperf.v2.client import MODES

_OLD = ("2.0", "2.0.5", "2.0.6", "2.0.7", "2.0.8", "2.0.9")
_SIGNED = ("2.0.10", "2.0.11", "2.0.12")
_PLAIN = ("True", "true", "1", "C")


def check(cfg):
    """Check what iperf 2 can do with these options; returns the mode, None for a plain test."""
    kind = None
    for k in MODES:
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
        n = TCP_LENGTH
        while n > 1024 and n > second // 20:
            n //= 2
        if n < TCP_LENGTH:
            cfg["length"] = n
            cfg["adapted"].append("blocks of %d bytes: at this bandwidth larger ones come in bursts" % n)
    elif cfg["length"] > second:
        raise IperfError("usage", "length %d is more than a second of %d bit/s: take smaller blocks"
                         % (cfg["length"], cfg["bandwidth"]))  # fmt: skip
