"""The hot loop of a receiver of datagrams (what holds for all: iperf.hot)."""

from iperf import clock, hot

try:
    from micropython import const
except ImportError:

    def const(x):
        return x


# the numbers of iperf.hot
_SLICE = const(0)
_BLOCK = const(1)
_FIN = const(3)
_QUOTA = const(4)
_C_BYTES = const(0)
_C_PKTS = const(1)
_C_LOST = const(2)
_C_OOO = const(3)
_C_DUP = const(4)
_C_SPAN = const(8)
_C_RUNT = const(9)
_O_ID = const(0)
_O_SEC = const(2)
_O_USEC = const(3)
_O_FIN = const(4)
_O_LEN = const(5)
_U_EXP = const(0)
_U_JIT = const(1)
_U_TICK = const(2)
_U_SEC = const(3)
_U_USEC = const(4)
_U_SEEN = const(5)
_U_HOLE = const(6)
_U_LOSTH = const(7)
_U_HOLES = const(8)
_HOLES = const(8)
_ID_MASK = const(0x1FFFFFFF)
_ID_HALF = const(0x10000000)
_ID_JUMP = const(0x01000000)
_D_MAX = const(0x00FFFFFF)  # longest transit difference taken into the jitter, 16.7 s


def recv(readinto, buf, c, t_end, limit, o, u):
    """Take datagrams in: bytes, loss, order and jitter, until t_end, `limit` datagrams, the final
    datagram, or nothing is there."""
    tu = clock.ticks_us
    td = clock.ticks_diff
    i3 = o[_O_ID]
    i2 = i3 - 1
    i1 = i3 - 2
    i0 = i3 - 3
    s2 = o[_O_SEC] + 2
    s3 = s2 + 1
    u1 = o[_O_USEC] + 1
    u2 = u1 + 1
    u3 = u1 + 2
    fin = o[_O_FIN]
    head = o[_O_LEN]
    exp = u[_U_EXP]
    jit = u[_U_JIT]
    tick = u[_U_TICK]
    sec = u[_U_SEC]
    usec = u[_U_USEC]
    seen = u[_U_SEEN]
    got = 0
    count = 0
    code = _SLICE
    try:
        while True:
            n = readinto(buf)
            if n is None:
                code = _BLOCK
                break
            t = tu()
            if n < head:
                c[_C_RUNT] += 1
                if td(t, t_end) >= 0:
                    break
                continue
            if fin >= 0 and buf[fin] & 128:
                got += n
                code = _FIN
                break
            got += n
            count += 1
            i = ((buf[i0] & 31) << 24) | (buf[i1] << 16) | (buf[i2] << 8) | buf[i3]
            if i == exp:
                exp = (i + 1) & _ID_MASK
                c[_C_SPAN] += 1
            else:
                exp = _misordered(i, exp, c, u)
            # jitter: difference of the transit times of this datagram and the one before
            s = ((buf[s2] & 3) << 8) | buf[s3]
            m = (buf[u1] << 16) | (buf[u2] << 8) | buf[u3]
            if seen:
                d = td(t, tick) - ((((s - sec + 512) & 1023) - 512) * 1000000 + m - usec)
                if d < 0:
                    d = -d
                if d > _D_MAX:
                    d = _D_MAX
                jit += d - ((jit + 8) >> 4)
            seen = 1
            tick = t
            sec = s
            usec = m
            if count >= limit:
                code = _QUOTA
                break
            if td(t, t_end) >= 0:
                break
    except OSError as e:
        code = hot.failed(e, c)
    u[_U_EXP] = exp
    u[_U_JIT] = jit
    u[_U_TICK] = tick
    u[_U_SEC] = sec
    u[_U_USEC] = usec
    u[_U_SEEN] = seen
    c[_C_BYTES] += got
    c[_C_PKTS] += count
    return code


def _misordered(i, exp, c, u):
    """A datagram that is not the expected one: a gap, a late one that fills a hole, or a duplicate.
    Returns the sequence number expected next."""
    d = (i - exp) & _ID_MASK
    if d < _ID_HALF:  # ahead: exp … i-1 are missing for now
        if d > _ID_JUMP:
            c[_C_RUNT] += 1  # no loss is that long: not a datagram of this test
            return exp
        c[_C_LOST] += d
        c[_C_SPAN] += d + 1
        k = u[_U_HOLE]
        at = _U_HOLES + 2 * k
        if ((u[at + 1] - u[at]) & _ID_MASK) < _ID_HALF:
            u[_U_LOSTH] = 1
        u[at] = exp
        u[at + 1] = (i - 1) & _ID_MASK
        u[_U_HOLE] = (k + 1) % _HOLES
        return (i + 1) & _ID_MASK
    for k in range(_HOLES):
        at = _U_HOLES + 2 * k
        a = u[at]
        b = u[at + 1]
        size = (b - a) & _ID_MASK
        off = (i - a) & _ID_MASK
        if size < _ID_HALF and off <= size:
            c[_C_OOO] += 1
            c[_C_LOST] -= 1
            if off == 0:
                u[at] = (a + 1) & _ID_MASK
            elif off == size:
                u[at + 1] = (b - 1) & _ID_MASK
            else:  # split: the front part stays here, the rest takes the next slot
                u[at + 1] = (i - 1) & _ID_MASK
                k = u[_U_HOLE]
                at = _U_HOLES + 2 * k
                if ((u[at + 1] - u[at]) & _ID_MASK) < _ID_HALF:
                    u[_U_LOSTH] = 1
                u[at] = (i + 1) & _ID_MASK
                u[at + 1] = b
                u[_U_HOLE] = (k + 1) % _HOLES
            return exp
    if u[_U_LOSTH]:
        c[_C_OOO] += 1  # its hole may have been forgotten: late, not surely a duplicate
    else:
        c[_C_DUP] += 1
    return exp
