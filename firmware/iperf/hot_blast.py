"""The hot loop of UDP without a rate (what holds for all: iperf.hot)."""

from iperf import clock, hot

try:
    from micropython import const
except ImportError:

    def const(x):
        return x


# the numbers of iperf.hot
_SLICE = const(0)
_BLOCK = const(1)
_QUOTA = const(4)
_C_BYTES = const(0)
_C_PKTS = const(1)
_C_RETRY = const(5)
_O_ID = const(0)
_O_SEC = const(2)
_O_USEC = const(3)
_P_TICK = const(6)
_P_USEC = const(7)


def send(write, buf, c, t_end, limit, o, p):
    """Send `buf` with running sequence number and time stamp as fast as the socket takes it,
    until t_end or `limit` datagrams."""
    tu = clock.ticks_us
    td = clock.ticks_diff
    size = len(buf)
    sid = o[_O_ID]
    u1 = o[_O_USEC] + 1
    u2 = u1 + 1
    u3 = u1 + 2
    last = p[_P_TICK]
    us = p[_P_USEC]
    done = 0
    code = _SLICE
    try:
        while True:
            t = tu()
            us += td(t, last)
            last = t
            while us >= 1000000:
                us -= 1000000
                hot.count_up(buf, o[_O_SEC] + 3)
            buf[u1] = us >> 16
            buf[u2] = (us >> 8) & 255
            buf[u3] = us & 255
            if write(buf) is None:
                c[_C_RETRY] += 1
                code = _BLOCK
                break
            done += 1
            k = buf[sid] + 1
            if k < 256:
                buf[sid] = k
            else:
                hot.next_id(buf, o)
            if done >= limit:
                code = _QUOTA
                break
            if td(t, t_end) >= 0:
                break
    except OSError as e:
        code = hot.failed(e, c)
    p[_P_TICK] = last
    p[_P_USEC] = us
    c[_C_PKTS] += done
    c[_C_BYTES] += done * size
    return code
