"""iPerf 2 on the wire: flags, layouts of a datagram, and what a client writes.

All words are 32 bits, big-endian. A datagram begins with a header of 16 bytes (iperf >= 2.0.10: id, s, us,
id2) or 12 (<= 2.0.9: id, s, us). The V1 block of 24 bytes and the extension of 36 follow it, or begin a
TCP connection. Checked against iperf 2.0.6, 2.0.13, 2.1.3, 2.1.8 and 2.2.1.
"""

from struct import pack_into

from iperf.v2.layouts import BARE, NEW, OLD, header  # noqa: F401

try:
    from micropython import const
except ImportError:

    def const(x):
        return x


# flags of the first header word
V1 = const(0x80000000)
EXTEND = const(0x40000000)
UDPTESTS = const(0x20000000)
SEQNO64 = const(0x08000000)
V2 = const(0x04000000)
PEERDETECT = const(0x02000000)
BOUNCEBACK = const(0x00800000)
LEN = const(0x00010000)
RUN_NOW = const(0x00000001)

# upper flags of the extension
NO_FIN = const(0x0008)
BW_SET = const(0x0100)
PPS = const(0x0080)
REVERSE = const(0x0400)
FULL_DUPLEX = const(0x0800)

V1_LEN = const(24)
HEAD_LEN = const(60)  # V1 block and extension: what iperf 2.1 sends first on a TCP connection
UDP_HEAD_LEN = const(76)  # the same behind the header of a datagram

VERSION = (0x00020001, 0x00080003)  # announced as 2.1.8, whose rules these are


def put_v1(buf, at, flags, streams, port, length, rate, amount):
    """Write the V1 block; amount is bytes, or minus hundredths of a second."""
    pack_into(">IIIIII", buf, at, flags, streams, port, length, rate & 0xFFFFFFFF, amount & 0xFFFFFFFF)


def put_extension(buf, at, upper, rate, tos):
    """Write the 36 bytes that follow the V1 block; rate in bit/s."""
    pack_into(">IIIIIIIII", buf, at, 0, 0, upper << 16, VERSION[0], VERSION[1], tos & 0xFF,
              rate & 0xFFFFFFFF, (rate >> 32) << 8 & 0xFFFFFFFF, 0)  # fmt: skip
