"""Layouts of an iPerf 2 datagram (the rest of the wire format: iperf.v2.wire)."""

try:
    from micropython import const
except ImportError:

    def const(x):
        return x


NEW = const(16)  # 16-byte header, 64-bit numbers when the flags say so
OLD = const(12)  # 12-byte header (<= 2.0.9)
BARE = const(4)  # nothing but the number (ESP-IDF)


def header(layout, wide, first):
    """The Header of datagrams of this layout; `wide`: id2 holds the upper half of the number."""
    from iperf.flow import Header

    if layout == NEW:
        return Header(0, 12 if wide else -1, 4, 8, 12 if wide else 0, 16, first)
    return Header(0, -1, 4, 8, 0, layout, first)
