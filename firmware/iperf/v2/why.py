"""What iPerf 2 has to say in words: loaded only then."""

from iperf import clock
from iperf.errors import IperfError

_CLOCK_SET_S = 1577836800  # 2020: no board's clock is earlier once it was set
NOTE_CLOCK = (
    "the board's clock is not set: the jitter that an iperf 2.1.8 server shows needs some 500 datagrams "
    "to come true (set the clock, or send more)"
)


def note_clock(cfg):
    """Say in the result that the board's clock is not set (iperf 2.1.8 then shows a wrong jitter)."""
    if clock.wall_us()[0] < _CLOCK_SET_S:
        cfg["adapted"].append(NOTE_CLOCK)


def closed(n, who, what):
    """The IperfError of a connection that broke with errno n."""
    if n in (12, 105):
        return IperfError("memory", "the board ran out of memory for the network (errno %d)" % n, n)
    if n == 111:
        return IperfError("refused", "%s refused the datagrams: no iperf server listens there (iperf -s -u)"
                          % who, n)  # fmt: skip
    if n in (113, 101, 118):
        return IperfError("unreachable", "no route to %s: check address, subnet and gateway" % who, n)
    return IperfError("closed", "%s broke the connection %s (errno %d): was it stopped?" % (who, what, n), n)
