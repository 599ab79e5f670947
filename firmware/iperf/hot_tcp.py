"""The hot loops of TCP: as many blocks as go in a slice (what holds for all: iperf.hot)."""

from iperf import clock, hot

try:
    from micropython import const
except ImportError:

    def const(x):
        return x


# the numbers of iperf.hot
_SLICE = const(0)
_BLOCK = const(1)
_EOF = const(2)
_QUOTA = const(4)
_C_BYTES = const(0)
_C_RETRY = const(5)


def send(write, buf, c, t_end, limit):
    """Write `buf` again and again until t_end, until `limit` bytes are gone or the socket is full."""
    tu = clock.ticks_us
    td = clock.ticks_diff
    size = len(buf)
    sent = 0
    code = 0
    try:
        while True:
            n = write(buf)
            if n is None:
                c[_C_RETRY] += 1
                code = _BLOCK
                break
            sent += n
            if sent >= limit:
                code = _QUOTA
                break
            if n != size:
                c[_C_RETRY] += 1
                code = _BLOCK
                break
            if td(tu(), t_end) >= 0:
                code = _SLICE
                break
    except OSError as e:
        code = hot.failed(e, c)
    c[_C_BYTES] += sent
    return code


def recv(readinto, buf, c, t_end, limit):
    """Read and drop until t_end, until `limit` bytes came, EOF, or nothing is there."""
    tu = clock.ticks_us
    td = clock.ticks_diff
    got = 0
    code = _SLICE
    try:
        while True:
            n = readinto(buf)
            if n is None:
                code = _BLOCK
                break
            if n == 0:
                code = _EOF
                break
            got += n
            if got >= limit:
                code = _QUOTA
                break
            if td(tu(), t_end) >= 0:
                break
    except OSError as e:
        code = hot.failed(e, c)
    c[_C_BYTES] += got
    return code
