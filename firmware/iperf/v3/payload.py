"""Random and repeating bytes: the cookie of a session, what is sent."""

import os

from iperf.v3 import wire


def cookie():
    """36 random characters of a-z2-7 and a NUL."""
    chars = b"abcdefghijklmnopqrstuvwxyz234567"
    c = bytearray(wire.COOKIE_SIZE)
    for i, x in enumerate(os.urandom(wire.COOKIE_SIZE - 1)):
        c[i] = chars[x & 31]
    return c


def fill(buf, digits):
    """Payload: iperf's repeating digits, or random bytes."""
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
