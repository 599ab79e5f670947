"""The hot loops: one call is one slice of a few milliseconds on one stream.

Nothing in here allocates: counters live in arrays ('i', so that they stay small integers), sequence
numbers and time stamps are written into the datagram byte by byte (a 32-bit word above 2**30 would be
a heap object on a 32-bit port). Callers fold the counters after each slice, long before they overflow.
The same file is deployed as bytecode or, where the board has one, through the native emitter.
"""

from iperf import clock

try:
    from micropython import const
except ImportError:

    def const(x):
        return x


# why a call returned
SLICE = const(0)  # the slice's time is over
BLOCK = const(1)  # the socket takes or has nothing more now
EOF = const(2)  # the peer closed its side
FIN = const(3)  # iperf 2: the final datagram came (it is in the buffer)
QUOTA = const(4)  # the byte or datagram limit of this call is reached
WAIT = const(5)  # paced: the next block is due later, p[P_WAIT] microseconds from now
NOMEM = const(6)  # ENOMEM or ENOBUFS
REFUSED = const(7)  # an earlier datagram found no listener (ICMP); this one was not sent
FAIL = const(8)  # the socket failed: errno in C_ERRNO, what moved until then is counted

# c: counters since the last fold
C_BYTES = const(0)
C_PKTS = const(1)
C_LOST = const(2)
C_OOO = const(3)
C_DUP = const(4)
C_RETRY = const(5)
C_NOMEM = const(6)
C_STALL = const(7)  # us that pacing gave up on
C_SPAN = const(8)  # sequence numbers passed over (datagrams the sender is known to have sent)
C_RUNT = const(9)  # datagrams too short for a header, or with an impossible number
C_ERRNO = const(10)
C_LEN = const(11)

# o: where things stand in the datagram
O_ID = const(0)  # last (least significant) byte of the low sequence word
O_HI = const(1)  # last byte of the high sequence word, -1 without one
O_SEC = const(2)  # first byte of the seconds word
O_USEC = const(3)  # first byte of the microseconds word
O_FIN = const(4)  # byte whose top bit marks the final datagram, -1 without one
O_LEN = const(5)  # shortest datagram that holds the header

# p: state of a sender (pacing and time stamp)
P_NEXT = const(0)  # tick at which the next block is due
P_GAP = const(1)  # whole microseconds from block to block
P_REM = const(2)  # remainder of the gap: P_REM / P_DEN microseconds
P_DEN = const(3)
P_ERR = const(4)  # sum of remainders
P_WAIT = const(5)
P_TICK = const(6)  # tick of the last time stamp
P_USEC = const(7)  # microseconds part of the last time stamp
P_LEN = const(8)

# u: state of a datagram receiver
U_EXP = const(0)  # sequence number expected next, modulo 2**29
U_JIT = const(1)  # jitter in 1/16 us (RFC 3550, A.8)
U_TICK = const(2)
U_SEC = const(3)  # low 10 bits of the last sender's seconds
U_USEC = const(4)
U_SEEN = const(5)  # 1 after the first datagram
U_HOLE = const(6)  # next slot of the list of holes
U_LOSTH = const(7)  # 1 when a hole was pushed out of the list before it was filled
U_HOLES = const(8)  # pairs (first, last) of missing sequence numbers, last < first: empty
HOLES = const(8)
U_LEN = const(24)

_ID_MASK = const(0x1FFFFFFF)
_ID_HALF = const(0x10000000)
_ID_JUMP = const(0x01000000)
_D_MAX = const(0x00FFFFFF)  # longest transit difference taken into the jitter, 16.7 s


def tcp_send(write, buf, c, t_end, limit):
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
                c[C_RETRY] += 1
                code = BLOCK
                break
            sent += n
            if sent >= limit:
                code = QUOTA
                break
            if n != size:
                c[C_RETRY] += 1
                code = BLOCK
                break
            if td(tu(), t_end) >= 0:
                code = SLICE
                break
    except OSError as e:
        code = _failed(e, c)
    c[C_BYTES] += sent
    return code


def tcp_recv(readinto, buf, c, t_end, limit):
    """Read and drop until t_end, until `limit` bytes came, EOF, or nothing is there."""
    tu = clock.ticks_us
    td = clock.ticks_diff
    got = 0
    code = SLICE
    try:
        while True:
            n = readinto(buf)
            if n is None:
                code = BLOCK
                break
            if n == 0:
                code = EOF
                break
            got += n
            if got >= limit:
                code = QUOTA
                break
            if td(tu(), t_end) >= 0:
                break
    except OSError as e:
        code = _failed(e, c)
    c[C_BYTES] += got
    return code


def udp_blast(write, buf, c, t_end, limit, o, p):
    """Send `buf` with running sequence number and time stamp as fast as the socket takes it,
    until t_end or `limit` datagrams."""
    tu = clock.ticks_us
    td = clock.ticks_diff
    size = len(buf)
    sid = o[O_ID]
    u1 = o[O_USEC] + 1
    u2 = u1 + 1
    u3 = u1 + 2
    last = p[P_TICK]
    us = p[P_USEC]
    done = 0
    code = SLICE
    try:
        while True:
            t = tu()
            us += td(t, last)
            last = t
            while us >= 1000000:
                us -= 1000000
                _count_up(buf, o[O_SEC] + 3)
            buf[u1] = us >> 16
            buf[u2] = (us >> 8) & 255
            buf[u3] = us & 255
            if write(buf) is None:
                c[C_RETRY] += 1
                code = BLOCK
                break
            done += 1
            k = buf[sid] + 1
            if k < 256:
                buf[sid] = k
            else:
                _next_id(buf, o)
            if done >= limit:
                code = QUOTA
                break
            if td(t, t_end) >= 0:
                break
    except OSError as e:
        code = _failed(e, c)
    p[P_TICK] = last
    p[P_USEC] = us
    c[C_PKTS] += done
    c[C_BYTES] += done * size
    return code


def paced(write, buf, c, t_end, limit, o, p, spin):
    """Send blocks at the rate of `p`, datagrams when `o` is given, TCP blocks when it is None.

    Waits up to `spin` microseconds for a block by itself, longer waits are the caller's (WAIT).
    The schedule does not depend on when a block really left, so it does not drift; a delay of more than
    two gaps is given up (counted as stall), so that at most two blocks follow one another without a gap.
    `limit` counts datagrams (UDP) or bytes (TCP).
    """
    tu = clock.ticks_us
    td = clock.ticks_diff
    size = len(buf)
    gap = p[P_GAP]
    if o is not None:
        sid = o[O_ID]
        u1 = o[O_USEC] + 1
        u2 = u1 + 1
        u3 = u1 + 2
        last = p[P_TICK]
        us = p[P_USEC]
    count = 0
    sent = 0
    code = SLICE
    try:
        while True:
            t = tu()
            late = td(t, p[P_NEXT])
            if late < 0:
                if td(t, t_end) >= 0:
                    break
                if late < -spin or td(p[P_NEXT], t_end) > 0:
                    p[P_WAIT] = -late
                    code = WAIT
                    break
                if late < -300:
                    clock.sleep_us(-late - 150)
                continue
            if late > gap + gap:
                c[C_STALL] += late - gap
                p[P_NEXT] = clock.ticks_add(t, -gap)
            if o is not None:
                us += td(t, last)
                last = t
                while us >= 1000000:
                    us -= 1000000
                    _count_up(buf, o[O_SEC] + 3)
                buf[u1] = us >> 16
                buf[u2] = (us >> 8) & 255
                buf[u3] = us & 255
            n = write(buf)
            if n is None:
                c[C_RETRY] += 1
                code = BLOCK
                break
            sent += n
            # Advance in exact fractions; a TCP block taken in part is due again only for that part.
            if n == size:
                e = p[P_ERR] + p[P_REM]
                g = gap
                if e >= p[P_DEN]:
                    e -= p[P_DEN]
                    g += 1
                p[P_ERR] = e
            else:
                c[C_RETRY] += 1
                g = _share(gap, n, size)
            p[P_NEXT] = clock.ticks_add(p[P_NEXT], g)
            if o is not None:
                count += 1
                k = buf[sid] + 1
                if k < 256:
                    buf[sid] = k
                else:
                    _next_id(buf, o)
                if count >= limit:
                    code = QUOTA
                    break
            elif sent >= limit:
                code = QUOTA
                break
            if td(t, t_end) >= 0:
                break
    except OSError as e:
        code = _failed(e, c)
    if o is not None:
        p[P_TICK] = last
        p[P_USEC] = us
        c[C_PKTS] += count
    c[C_BYTES] += sent
    return code


def udp_recv(readinto, buf, c, t_end, limit, o, u):
    """Take datagrams in: bytes, loss, order and jitter, until t_end, `limit` datagrams, the final
    datagram, or nothing is there."""
    tu = clock.ticks_us
    td = clock.ticks_diff
    i3 = o[O_ID]
    i2 = i3 - 1
    i1 = i3 - 2
    i0 = i3 - 3
    s2 = o[O_SEC] + 2
    s3 = s2 + 1
    u1 = o[O_USEC] + 1
    u2 = u1 + 1
    u3 = u1 + 2
    fin = o[O_FIN]
    head = o[O_LEN]
    exp = u[U_EXP]
    jit = u[U_JIT]
    tick = u[U_TICK]
    sec = u[U_SEC]
    usec = u[U_USEC]
    seen = u[U_SEEN]
    got = 0
    count = 0
    code = SLICE
    try:
        while True:
            n = readinto(buf)
            if n is None:
                code = BLOCK
                break
            t = tu()
            if n < head:
                c[C_RUNT] += 1
                if td(t, t_end) >= 0:
                    break
                continue
            if fin >= 0 and buf[fin] & 128:
                got += n
                code = FIN
                break
            got += n
            count += 1
            i = ((buf[i0] & 31) << 24) | (buf[i1] << 16) | (buf[i2] << 8) | buf[i3]
            if i == exp:
                exp = (i + 1) & _ID_MASK
                c[C_SPAN] += 1
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
                code = QUOTA
                break
            if td(t, t_end) >= 0:
                break
    except OSError as e:
        code = _failed(e, c)
    u[U_EXP] = exp
    u[U_JIT] = jit
    u[U_TICK] = tick
    u[U_SEC] = sec
    u[U_USEC] = usec
    u[U_SEEN] = seen
    c[C_BYTES] += got
    c[C_PKTS] += count
    return code


def _failed(e, c):
    """Counts ENOMEM (12), ENOBUFS (105) and ECONNREFUSED (111); EAGAIN (11) is a full socket; anything
    else ends the stream."""
    n = e.args[0] if e.args and isinstance(e.args[0], int) else 5
    if n == 12 or n == 105:
        c[C_NOMEM] += 1
        return NOMEM
    if n == 11:
        c[C_RETRY] += 1
        return BLOCK
    if n == 111:
        c[C_RETRY] += 1
        return REFUSED
    c[C_ERRNO] = n
    return FAIL


def _share(gap, n, size):
    """gap * n // size without leaving small integers for any block up to 16 MiB."""
    if gap < 0x10000 and n < 0x4000:
        return gap * n // size
    return int(gap * (n / size))


def _count_up(buf, i):
    """Add one to the big-endian 32-bit word whose last byte is at i."""
    for _ in range(4):
        k = buf[i] + 1
        if k < 256:
            buf[i] = k
            return
        buf[i] = 0
        i -= 1


def _next_id(buf, o):
    """Add one to the sequence number, into the high word where there is one."""
    i = o[O_ID]
    for _ in range(4):
        k = buf[i] + 1
        if k < 256:
            buf[i] = k
            return
        buf[i] = 0
        i -= 1
    if o[O_HI] >= 0:
        _count_up(buf, o[O_HI])


def _misordered(i, exp, c, u):
    """A datagram that is not the expected one: a gap, a late one that fills a hole, or a duplicate.
    Returns the sequence number expected next."""
    d = (i - exp) & _ID_MASK
    if d < _ID_HALF:  # ahead: exp … i-1 are missing for now
        if d > _ID_JUMP:
            c[C_RUNT] += 1  # no loss is that long: not a datagram of this test
            return exp
        c[C_LOST] += d
        c[C_SPAN] += d + 1
        k = u[U_HOLE]
        at = U_HOLES + 2 * k
        if ((u[at + 1] - u[at]) & _ID_MASK) < _ID_HALF:
            u[U_LOSTH] = 1
        u[at] = exp
        u[at + 1] = (i - 1) & _ID_MASK
        u[U_HOLE] = (k + 1) % HOLES
        return (i + 1) & _ID_MASK
    for k in range(HOLES):
        at = U_HOLES + 2 * k
        a = u[at]
        b = u[at + 1]
        size = (b - a) & _ID_MASK
        off = (i - a) & _ID_MASK
        if size < _ID_HALF and off <= size:
            c[C_OOO] += 1
            c[C_LOST] -= 1
            if off == 0:
                u[at] = (a + 1) & _ID_MASK
            elif off == size:
                u[at + 1] = (b - 1) & _ID_MASK
            else:  # split: the front part stays here, the rest takes the next slot
                u[at + 1] = (i - 1) & _ID_MASK
                k = u[U_HOLE]
                at = U_HOLES + 2 * k
                if ((u[at + 1] - u[at]) & _ID_MASK) < _ID_HALF:
                    u[U_LOSTH] = 1
                u[at] = (i + 1) & _ID_MASK
                u[at + 1] = b
                u[U_HOLE] = (k + 1) % HOLES
            return exp
    if u[U_LOSTH]:
        c[C_OOO] += 1  # its hole may have been forgotten: late, not surely a duplicate
    else:
        c[C_DUP] += 1
    return exp
