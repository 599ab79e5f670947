"""The end of an iPerf 2 datagram stream on the wire: final datagram and server report."""

from struct import pack_into, unpack_from

from iperf.v2 import wire

REPORT_LEN = 128  # exactly this: an iperf 2.1 client started with a small -l has no room for more
_REPORT12_LEN = 52


def is_ack(buf, n):
    """True for the ack that a 2.0.10 to 2.2 server sends at the start of a stream."""
    return n in (28, 52) and unpack_from(">I", buf, 0)[0] == 2


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


def put_report(buf, layout, nbytes, us, lost, ooo, datagrams, jitter_us):
    """Write the server report into buf (128 bytes, zero except the header to echo); returns the length
    to send. lost, ooo and datagrams as iperf counts them."""
    at = 12 if layout == wire.OLD else 16
    flags = wire.V1 if layout == wire.OLD else wire.V1 | wire.SEQNO64
    pack_into(">IIIIIIIIII", buf, at, flags, nbytes >> 32 & 0xFFFFFFFF,
              nbytes & 0xFFFFFFFF, us // 1000000, us % 1000000, lost & 0xFFFFFFFF, ooo & 0xFFFFFFFF,
              datagrams & 0xFFFFFFFF, jitter_us // 1000000, jitter_us % 1000000)  # fmt: skip
    if layout == wire.OLD:
        return _REPORT12_LEN
    pack_into(">III", buf, 116, lost >> 32, ooo >> 32, datagrams >> 32)
    return REPORT_LEN


def get_report(buf, n):
    """The server report in buf[:n] as (bytes, us, lost, ooo, datagrams, jitter_us), None when it is
    something else. It stands behind a header of 16 or 12 bytes: the flags tell which."""
    for at in (16, 12):
        if n < at + 40 or is_ack(buf, n):
            continue
        flags = unpack_from(">I", buf, at)[0]
        if not flags & wire.V1 or flags & 0x07FFFFFF:
            continue
        w = unpack_from(">IIIIIIIII", buf, at + 4)
        lost, ooo, datagrams = w[4], w[5], w[6]
        if flags & wire.SEQNO64 and at == 16 and n >= REPORT_LEN:
            high = unpack_from(">III", buf, 116)
            lost |= high[0] << 32
            ooo |= high[1] << 32
            datagrams |= high[2] << 32
        if w[3] >= 1000000 or w[8] >= 1000000 or lost > datagrams:
            return None
        return w[0] << 32 | w[1], w[2] * 1000000 + w[3], lost, ooo, datagrams, w[7] * 1000000 + w[8]
    return None
