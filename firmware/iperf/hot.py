"""The hot loops: one call is one slice of a few milliseconds on one stream.

Nothing in here allocates: counters live in arrays ('i', so that they stay small integers), sequence
numbers and time stamps are written into the datagram byte by byte (a 32-bit word above 2**30 would be
a heap object on a 32-bit port). Callers fold the counters after each slice, long before they overflow.
The loops, each in a file of its own (hot_tcp, hot_blast, hot_paced, hot_recv: a test has one or two of
them), are deployed as bytecode or, where the board has one, through the native emitter. Here is what
they share.
"""

try:
    from micropython import const
except ImportError:

    def const(x):
        return x


# The numbers stand in each loop's file again (a test compares): there they are constants, from here they
# would be looked up. Those with an underscore only the loops use.

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
_O_HI = const(1)  # last byte of the high sequence word, -1 without one
O_SEC = const(2)  # first byte of the seconds word
_O_USEC = const(3)  # first byte of the microseconds word
_O_FIN = const(4)  # byte whose top bit marks the final datagram, -1 without one
O_LEN = const(5)  # shortest datagram that holds the header

# p: state of a sender (pacing and time stamp)
P_NEXT = const(0)  # tick at which the next block is due
P_GAP = const(1)  # whole microseconds from block to block
P_REM = const(2)  # remainder of the gap: P_REM / P_DEN microseconds
P_DEN = const(3)
_P_ERR = const(4)  # sum of remainders
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
_U_HOLE = const(6)  # next slot of the list of holes
_U_LOSTH = const(7)  # 1 when a hole was pushed out of the list before it was filled
U_HOLES = const(8)  # pairs (first, last) of missing sequence numbers, last < first: empty
HOLES = const(8)
U_LEN = const(24)


def failed(e, c):
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


def count_up(buf, i):
    """Add one to the big-endian 32-bit word whose last byte is at i."""
    for _ in range(4):
        k = buf[i] + 1
        if k < 256:
            buf[i] = k
            return
        buf[i] = 0
        i -= 1


def next_id(buf, o):
    """Add one to the sequence number, into the high word where there is one."""
    i = o[O_ID]
    for _ in range(4):
        k = buf[i] + 1
        if k < 256:
            buf[i] = k
            return
        buf[i] = 0
        i -= 1
    if o[_O_HI] >= 0:
        count_up(buf, o[_O_HI])
