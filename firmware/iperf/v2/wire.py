"""iPerf 2 on the wire: test headers, acks, the final datagram and the server report.

All words are 32 bits, big-endian. A datagram begins with a header of 16 bytes (iperf >= 2.0.10: id, s, us,
id2) or 12 (<= 2.0.9: id, s, us). The V1 block of 24 bytes and the extension of 36 follow it, or begin a
TCP connection. Checked against iperf 2.0.6, 2.0.13, 2.1.3, 2.1.8 and 2.2.1.
"""

from struct import pack_into, unpack_from

from iperf.flow import Header

try:
    from micropython import const
except ImportError:

    def const(x):
        return x


# flags of the first header word
V1 = const(0x80000000)
EXTEND = const(0x40000000)
UDPTESTS = const(0x20000000)
KEYCHECK = const(0x10000000)
SEQNO64 = const(0x08000000)
V2 = const(0x04000000)
PEERDETECT = const(0x02000000)
BOUNCEBACK = const(0x00800000)
LEN = const(0x00010000)
RUN_NOW = const(0x00000001)

# upper flags of the extension
NO_FIN = const(0x0008)
TRIP_TIMES = const(0x0010)
BW_SET = const(0x0100)
PPS = const(0x0080)
REVERSE = const(0x0400)
FULL_DUPLEX = const(0x0800)

V1_LEN = const(24)
HEAD_LEN = const(60)  # V1 block and extension: what iperf 2.1 sends first on a TCP connection
UDP_HEAD_LEN = const(76)  # the same behind the header of a datagram
REPORT_LEN = const(128)  # exactly this: an iperf 2.1 client started with a small -l has no room for more
REPORT12_LEN = const(52)
COOKIE_LEN = const(37)  # iPerf 3
_HEADER_MAX = const(256)

_VERSION = (0x00020001, 0x00080003)  # announced as 2.1.8, whose rules these are
_ACK_TYPE = const(2)

# layouts of a datagram
NEW = const(16)  # 16-byte header, 64-bit numbers when the flags say so
OLD = const(12)  # 12-byte header (<= 2.0.9)
BARE = const(4)  # nothing but the number (ESP-IDF)


def header(layout, wide, first):
    """The Header of datagrams of this layout; `wide`: id2 holds the upper half of the number."""
    if layout == NEW:
        return Header(0, 12 if wide else -1, 4, 8, 12 if wide else 0, 16, first)
    return Header(0, -1, 4, 8, 0, layout, first)


# -- requests


def put_v1(buf, at, flags, streams, port, length, rate, amount):
    """Write the V1 block; amount is bytes, or minus hundredths of a second."""
    pack_into(">IIIIII", buf, at, flags, streams, port, length, rate & 0xFFFFFFFF, amount & 0xFFFFFFFF)


def put_extension(buf, at, upper, rate, tos):
    """Write the 36 bytes that follow the V1 block; rate in bit/s."""
    pack_into(">IIIIIIIII", buf, at, 0, 0, upper << 16, _VERSION[0], _VERSION[1], tos & 0xFF,
              rate & 0xFFFFFFFF, (rate >> 32) << 8 & 0xFFFFFFFF, 0)  # fmt: skip


def header_len(flags):
    """Length of the TCP test header that begins with these flags, 0 when it is payload."""
    if not flags & (V1 | V2 | EXTEND) or flags & BOUNCEBACK:
        return 0
    if flags & 0x00FFFFFF == 0x313233:
        return 36  # iperf 2.0.9 sets its flags on top of the payload "0123"
    if _is_text(flags):
        return 0  # the payload of a client without header; iperf 2.1 would drop or misread it
    if flags & LEN:
        n = (flags & 0x1FE) >> 1
        return n if V1_LEN <= n <= _HEADER_MAX else 0
    return HEAD_LEN if flags & (EXTEND | V2) else V1_LEN


def wants_ack(flags):
    """True when the client of a TCP header may wait for 28 (52) bytes."""
    return bool((flags & EXTEND and not flags & V2) or flags & PEERDETECT)


def _is_text(word):
    for k in (24, 16, 8, 0):
        if not 32 <= word >> k & 255 < 127:
            return False
    return True


def may_be_cookie(buf, n):
    """True while buf[:n] could be the begin of an iPerf 3 cookie (36 of a-z2-7, then NUL)."""
    for k in range(min(n, COOKIE_LEN)):
        b = buf[k]
        if not (b == 0 if k == 36 else 97 <= b <= 122 or 50 <= b <= 55):
            return False
    return True


class Request:
    """What a client's header asks for; all fields as if absent when the header is short or none.

    mode     "receive" (a plain test), "reverse", "full_duplex", "dual" or "tradeoff"
    amount   us of the reverse direction (0 = none said) and num_bytes its bytes
    length   of its blocks or datagrams, 0 = default;  rate in bit/s, 0 = default
    """

    def __init__(self, buf, at, n):
        self.flags = f = _word(buf, at, n)
        self.streams = 1
        self.port = self.length = self.rate = self.upper = self.tos = self.time_us = self.num_bytes = 0
        self.mode = "receive"
        if f & 0x00FFFFFF == 0x313233 and f & V1:
            self._take_v1(buf, at, n)
            self.mode = "dual"
            return
        self._take_v1(buf, at, n)
        if not f & (V1 | V2 | EXTEND):
            self.port = self.length = self.time_us = self.num_bytes = 0
            return
        if f & EXTEND and n >= at + HEAD_LEN:
            self.upper = _word(buf, at + 32, n) >> 16
            self.tos = _word(buf, at + 44, n) & 0xFFFF
            self.rate = _word(buf, at + 48, n) | (_word(buf, at + 52, n) >> 8) << 32
            if self.upper & PPS:
                self.rate *= 8 * (self.length or 1470)
        if f & V2 and self.upper & FULL_DUPLEX:
            self.mode = "full_duplex"
        elif f & V2 and self.upper & REVERSE:
            self.mode = "reverse"
        elif f & V1 and not f & V2:
            self.mode = "dual" if f & RUN_NOW else "tradeoff"

    def _take_v1(self, buf, at, n):
        streams = _word(buf, at + 4, n) & 0x000FFFFF
        if 1 <= streams <= 1024:
            self.streams = streams
        port = _word(buf, at + 8, n)
        self.port = port if port < 65536 else 0
        length = _word(buf, at + 12, n)
        self.length = length if length < 1 << 24 else 0
        amount = _word(buf, at + 20, n)
        if amount & 0x80000000:
            self.time_us = ((amount ^ 0xFFFFFFFF) + 1) * 10000
        else:
            self.num_bytes = amount

    @property
    def wants_report(self):
        """False when the client of a datagram stream said that it waits for no report."""
        return not (self.flags & UDPTESTS and self.upper & NO_FIN)


def _word(buf, at, n):
    return unpack_from(">I", buf, at)[0] if at + 4 <= n else 0


def layout(buf, n):
    """(layout, wide) of a stream's first datagram, buf[:n]."""
    if n < 12:
        return BARE, False
    if n < 16:
        return OLD, False
    f = _word(buf, 16, n)
    if f & (V1 | EXTEND | SEQNO64):
        return NEW, bool(f & SEQNO64)
    if 1 <= f <= 1024 and _word(buf, 12, n) in (0, V1, V1 | RUN_NOW) and 0 < _word(buf, 20, n) < 65536:
        return OLD, False
    return NEW, False


# -- answers


def put_ack(buf):
    """Write the 28 bytes that a 2.1 server sends for a test header; returns their number."""
    pack_into(">IIIIIII", buf, 0, _ACK_TYPE, 28, 0, _VERSION[0], _VERSION[1], 0, 0)
    return 28


def is_ack(buf, n):
    """True for the ack that a 2.0.10 to 2.2 server sends at the start of a stream."""
    return n in (28, 52) and unpack_from(">I", buf, 0)[0] == _ACK_TYPE


def put_fin(buf, o, sign_magnitude):
    """Turn the number of the next datagram, in buf, into the final one: minus that number (two's
    complement), or with the top bit set (iperf 2.0.10 to 2.0.12). `o` is Header.o."""
    wide = o[1] >= 0
    low, high = unpack_from(">I", buf, 0)[0], unpack_from(">I", buf, 12)[0] if wide else 0
    if sign_magnitude:
        pack_into(">I", buf, 0, low | 0x80000000)
        return
    n = -(high << 32 | low)
    pack_into(">I", buf, 0, n & 0xFFFFFFFF)
    if wide:
        pack_into(">I", buf, 12, n >> 32 & 0xFFFFFFFF)


def fin_number(buf, o, expected):
    """The number of datagrams that the final datagram in buf says. Without a wide number the two ways
    to write it are told apart by which one is nearer to `expected`."""
    low = unpack_from(">I", buf, 0)[0]
    if o[1] >= 0:
        n = unpack_from(">I", buf, 12)[0] << 32 | low
        return (1 << 64) - n
    twos = (1 << 32) - low
    magnitude = low & 0x7FFFFFFF
    return twos if abs(twos - expected) <= abs(magnitude - expected) else magnitude


def put_report(buf, layout, nbytes, us, lost, ooo, datagrams, jitter_us):
    """Write the server report into buf (128 bytes, zero except the header to echo); returns the length
    to send. lost, ooo and datagrams as iperf counts them."""
    at = 12 if layout == OLD else 16
    pack_into(">IIIIIIIIII", buf, at, V1 if layout == OLD else V1 | SEQNO64, nbytes >> 32 & 0xFFFFFFFF,
              nbytes & 0xFFFFFFFF, us // 1000000, us % 1000000, lost & 0xFFFFFFFF, ooo & 0xFFFFFFFF,
              datagrams & 0xFFFFFFFF, jitter_us // 1000000, jitter_us % 1000000)  # fmt: skip
    if layout == OLD:
        return REPORT12_LEN
    pack_into(">III", buf, 116, lost >> 32, ooo >> 32, datagrams >> 32)
    return REPORT_LEN


def get_report(buf, n):
    """The server report in buf[:n] as (bytes, us, lost, ooo, datagrams, jitter_us), None when it is
    something else. It stands behind a header of 16 or 12 bytes: the flags tell which."""
    for at in (16, 12):
        if n < at + 40 or is_ack(buf, n):
            continue
        flags = unpack_from(">I", buf, at)[0]
        if not flags & V1 or flags & 0x07FFFFFF:
            continue
        w = unpack_from(">IIIIIIIII", buf, at + 4)
        lost, ooo, datagrams = w[4], w[5], w[6]
        if flags & SEQNO64 and at == 16 and n >= REPORT_LEN:
            high = unpack_from(">III", buf, 116)
            lost |= high[0] << 32
            ooo |= high[1] << 32
            datagrams |= high[2] << 32
        if w[3] >= 1000000 or w[8] >= 1000000 or lost > datagrams:
            return None
        return w[0] << 32 | w[1], w[2] * 1000000 + w[3], lost, ooo, datagrams, w[7] * 1000000 + w[8]
    return None
