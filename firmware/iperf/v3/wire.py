"""iPerf 3 on the wire: states, error numbers, datagram headers (iperf.md B1, B3; iperf_api.h)."""

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

# numbers of iperf_api.h that a server is known to send, or that ours sends
IEUNIMP = const(13)
IERECVPARAMS = const(114)
IEMESSAGE = const(110)
IESETNODELAY = const(122)
IESETMSS = const(123)
IESETTOS = const(125)
IESETWINDOW = const(130)
IEPROTOCOL = const(131)


def udp_header(bits64):
    """Datagram header: seconds, microseconds, then the number (from 1) in 32 or 64 bits, big-endian."""
    from iperf.flow import Header

    if bits64:
        return Header(12, 8, 0, 4, -1, 16, 1)
    return Header(8, -1, 0, 4, -1, 12, 1)


def stream_ids(n):
    """1, 3, 4, 5 …: 2 is never used (iperf.md B4)."""
    return [1] + list(range(3, n + 2))


def cookie():
    """36 random characters of a-z2-7 and a NUL."""
    import os

    chars = b"abcdefghijklmnopqrstuvwxyz234567"
    c = bytearray(COOKIE_SIZE)
    for i, x in enumerate(os.urandom(COOKIE_SIZE - 1)):
        c[i] = chars[x & 31]
    return c


def fill(buf, digits):
    """Payload: iperf's repeating digits, or random bytes."""
    import os

    if digits:
        piece = b"0123456789" * 5
    else:
        piece = os.urandom(64)
    n = len(piece)
    for i in range(0, len(buf) - n + 1, n):
        buf[i : i + n] = piece
    rest = len(buf) % n
    if rest:
        buf[len(buf) - rest :] = piece[:rest]


def number(x):
    """A number of a results JSON: 3.12 writes -1 as 2**64 - 1."""
    if x is None:
        return None
    if x >= 1 << 63:
        x -= 1 << 64
    return x
