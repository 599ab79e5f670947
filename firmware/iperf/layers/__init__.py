"""Socket layers: one file each, found by its name (docs/contracts.md, section 4)."""

from iperf.errors import IperfError

NAMES = ("socket", "netconn", "raw", "winc1500")


def get(name):
    """The layer's module. Raises IperfError: unknown name, or not in this board's firmware."""
    if name not in NAMES:
        raise IperfError("usage", "no layer %r: there are %s" % (name, ", ".join(NAMES)))
    try:
        return getattr(__import__("iperf.layers." + name).layers, name)
    except ImportError as e:
        raise IperfError("unsupported", "this board's firmware has no layer %r (%s)" % (name, e)) from None
