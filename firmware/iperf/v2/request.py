"""What an iPerf 2 server reads: the test headers of every client version, and the ack."""

from struct import pack_into, unpack_from

from iperf.v2 import wire

COOKIE_LEN = 37  # iPerf 3
_HEADER_MAX = 256


def header_len(flags):
    """Length of the TCP test header that begins with these flags, 0 when it is payload."""
    if not flags & (wire.V1 | wire.V2 | wire.EXTEND) or flags & wire.BOUNCEBACK:
        return 0
    if flags & 0x00FFFFFF == 0x313233:
        return 36  # iperf 2.0.9 sets its flags on top of the payload "0123"
    if _is_text(flags):
        return 0  # the payload of a client without header; iperf 2.1 would drop or misread it
    if flags & wire.LEN:
        n = (flags & 0x1FE) >> 1
        return n if wire.V1_LEN <= n <= _HEADER_MAX else 0
    return wire.HEAD_LEN if flags & (wire.EXTEND | wire.V2) else wire.V1_LEN


def wants_ack(flags):
    """True when the client of a TCP header may wait for 28 (52) bytes."""
    return bool((flags & wire.EXTEND and not flags & wire.V2) or flags & wire.PEERDETECT)


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
        if f & 0x00FFFFFF == 0x313233 and f & (wire.V1 | wire.EXTEND):
            self._take_v1(buf, at, n)  # 2.0.9, which does not say whether dual or tradeoff
            if f & wire.V1:
                self.mode = "dual"
            return
        if _is_text(f):
            self.flags = 0
            return
        self._take_v1(buf, at, n)
        if not f & (wire.V1 | wire.V2 | wire.EXTEND):
            self.port = self.length = self.time_us = self.num_bytes = 0
            return
        if f & wire.EXTEND and n >= at + wire.HEAD_LEN:
            self.upper = _word(buf, at + 32, n) >> 16
            self.tos = _word(buf, at + 44, n) & 0xFFFF
            self.rate = _word(buf, at + 48, n) | (_word(buf, at + 52, n) >> 8) << 32
            if self.upper & wire.PPS:
                self.rate *= 8 * (self.length or 1470)
        if f & wire.V2 and self.upper & wire.FULL_DUPLEX:
            self.mode = "full_duplex"
        elif f & wire.V2 and self.upper & wire.REVERSE:
            self.mode = "reverse"
        elif f & wire.V1 and not f & wire.V2:
            self.mode = "dual" if f & wire.RUN_NOW else "tradeoff"

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
        return not (self.flags & wire.UDPTESTS and self.upper & wire.NO_FIN)


def _word(buf, at, n):
    return unpack_from(">I", buf, at)[0] if at + 4 <= n else 0


def layout(buf, n):
    """(layout, wide) of a stream's first datagram, buf[:n]."""
    if n < 12:
        return wire.BARE, False
    if n < 16:
        return wire.OLD, False
    f = _word(buf, 16, n)
    if _is_text(f):
        return wire.NEW, False  # payload: a sender without header (ESP-IDF, iperf -C)
    if f & (wire.V1 | wire.EXTEND | wire.SEQNO64):
        return wire.NEW, bool(f & wire.SEQNO64)
    old = 1 <= f <= 1024 and _word(buf, 12, n) in (0, wire.V1, wire.V1 | wire.RUN_NOW)
    if old and 0 < _word(buf, 20, n) < 65536:
        return wire.OLD, False  # flags, streams and port stand four bytes earlier
    return wire.NEW, False


def number(buf):
    """The low word of a datagram's sequence number."""
    return unpack_from(">I", buf, 0)[0]


def put_ack(buf):
    """Write the 28 bytes that a 2.1 server sends for a test header; returns their number."""
    pack_into(">IIIIIII", buf, 0, 2, 28, 0, wire.VERSION[0], wire.VERSION[1], 0, 0)
    return 28
