"""The hot loop of a sender with a rate (what holds for all: iperf.hot)."""

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
_WAIT = const(5)
_C_BYTES = const(0)
_C_PKTS = const(1)
_C_RETRY = const(5)
_C_STALL = const(7)
_O_ID = const(0)
_O_SEC = const(2)
_O_USEC = const(3)
_P_NEXT = const(0)
_P_GAP = const(1)
_P_REM = const(2)
_P_DEN = const(3)
_P_ERR = const(4)
_P_WAIT = const(5)
_P_TICK = const(6)
_P_USEC = const(7)


def send(write, buf, c, t_end, limit, o, p, spin):
    """Send blocks at the rate of `p`, datagrams when `o` is given, TCP blocks when it is None.

    Waits up to `spin` microseconds for a block by itself, longer waits are the caller's (WAIT).
    The schedule does not depend on when a block really left, so it does not drift; a delay of more than
    two gaps is given up (counted as stall), so that at most two blocks follow one another without a gap.
    `limit` counts datagrams (UDP) or bytes (TCP).
    """
    tu = clock.ticks_us
    td = clock.ticks_diff
    size = len(buf)
    gap = p[_P_GAP]
    if o is not None:
        sid = o[_O_ID]
        u1 = o[_O_USEC] + 1
        u2 = u1 + 1
        u3 = u1 + 2
        last = p[_P_TICK]
        us = p[_P_USEC]
    count = 0
    sent = 0
    code = _SLICE
    try:
        while True:
            t = tu()
            late = td(t, p[_P_NEXT])
            if late < 0:
                if td(t, t_end) >= 0:
                    break
                if late < -spin or td(p[_P_NEXT], t_end) > 0:
                    p[_P_WAIT] = -late
                    code = _WAIT
                    break
                if late < -300:
                    clock.sleep_us(-late - 150)
                continue
            if late > gap + gap:
                c[_C_STALL] += late - gap
                p[_P_NEXT] = clock.ticks_add(t, -gap)
            if o is not None:
                us += td(t, last)
                last = t
                while us >= 1000000:
                    us -= 1000000
                    hot.count_up(buf, o[_O_SEC] + 3)
                buf[u1] = us >> 16
                buf[u2] = (us >> 8) & 255
                buf[u3] = us & 255
            n = write(buf)
            if n is None:
                c[_C_RETRY] += 1
                code = _BLOCK
                break
            sent += n
            # Advance in exact fractions; a TCP block taken in part is due again only for that part.
            if n == size:
                e = p[_P_ERR] + p[_P_REM]
                g = gap
                if e >= p[_P_DEN]:
                    e -= p[_P_DEN]
                    g += 1
                p[_P_ERR] = e
            else:
                c[_C_RETRY] += 1
                g = _share(gap, n, size)
            p[_P_NEXT] = clock.ticks_add(p[_P_NEXT], g)
            if o is not None:
                count += 1
                k = buf[sid] + 1
                if k < 256:
                    buf[sid] = k
                else:
                    hot.next_id(buf, o)
                if count >= limit:
                    code = _QUOTA
                    break
            elif sent >= limit:
                code = _QUOTA
                break
            if td(t, t_end) >= 0:
                break
    except OSError as e:
        code = hot.failed(e, c)
    if o is not None:
        p[_P_TICK] = last
        p[_P_USEC] = us
        c[_C_PKTS] += count
    c[_C_BYTES] += sent
    return code


def _share(gap, n, size):
    """gap * n // size in small integers, for any block (of a long one to 1/32768)."""
    while size > 0x7FFF:
        size >>= 1
        n >>= 1
    return gap // size * n + gap % size * n // size
