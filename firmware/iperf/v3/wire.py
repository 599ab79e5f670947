"""iPerf 3 on the wire: states and datagram headers (iperf.md B1, B3; iperf_api.h)."""

try:
    from micropython import const
except ImportError:

    def const(x):
        return x


TEST_START = const(1)
TEST_RUNNING = const(2)
TEST_END = const(4)
PARAM_EXCHANGE = const(9)
CREATE_STREAMS = const(10)
SERVER_TERMINATE = const(11)
CLIENT_TERMINATE = const(12)
EXCHANGE_RESULTS = const(13)
DISPLAY_RESULTS = const(14)
IPERF_DONE = const(16)
ACCESS_DENIED = const(255)
SERVER_ERROR = const(254)

COOKIE_SIZE = const(37)

UDP_HELLO = b"9876"  # 0x36373839 of a little-endian host, from 3.12 on
UDP_REPLY = b"6789"


def udp_header(bits64):
    """Datagram header: seconds, microseconds, then the number (from 1) in 32 or 64 bits, big-endian."""
    from iperf.flow import Header

    if bits64:
        return Header(12, 8, 0, 4, -1, 16, 1)
    return Header(8, -1, 0, 4, -1, 12, 1)


def stream_ids(n):
    """1, 3, 4, 5 …: 2 is never used (iperf.md B4)."""
    return [1] + list(range(3, n + 2))
