"""Layer `raw`: netconn's pump, driven by lwIP's callbacks in C. TCP only; the ceiling to compare with.

A sender's blocks are queued and handed on without Python; a receiver's data is counted and thrown away
in the callback, from the first read into a bytearray of 512 bytes or more (the protocols' own messages
are shorter, or read through a memoryview).
"""

from iperf.errors import IperfError
from iperf.layers import netconn as base
from iperf.layers.netconn import Poller, counters  # noqa: F401

NAME = "raw"
_NO_UDP = "layer raw is a TCP pump and has no UDP: use --layer netconn"


def caps():
    """What this layer honours (docs/contracts.md, section 4)."""
    c = base.caps()
    c["udp_max"] = 0
    return c


class Sock(base.Sock):
    """A connected, non-blocking connection whose data goes through the pump."""

    def __init__(self, nc, remote=None):
        base.Sock.__init__(self, nc, remote)
        self.write = nc.pump_write
        self.readinto = nc.sink_into


def tcp_connect(host, port, cfg, timeout_ms):
    """A connected Sock. Raises IperfError refused, unreachable, timeout."""
    make = Sock if "length" in cfg else base.Sock  # iPerf 3's control connection asks for no length
    return base._connect(base._open(base._TCP, cfg), host, port, cfg, timeout_ms, make)


def tcp_listen(host, port, cfg, backlog):
    """A Listener. Raises IperfError usage when the port is taken."""
    return base.tcp_listen(host, port, cfg, backlog, Sock)


def udp_connect(host, port, cfg):
    """Raises IperfError unsupported."""
    raise IperfError("unsupported", _NO_UDP)


def udp_bind(host, port, cfg):
    """Raises IperfError unsupported."""
    raise IperfError("unsupported", _NO_UDP)
