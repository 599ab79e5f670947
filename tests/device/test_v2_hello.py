"""The begin of a TCP connection at the iPerf 2 server."""

from struct import pack

from iperf import clock
from iperf.v2 import hello


class Poller:
    def register(self, sock, flags):
        pass


class Sock:
    """Gives its bytes piece by piece; None between the pieces; 0 or an error at the end."""

    def __init__(self, pieces, end=None):
        self.pieces = list(pieces)
        self.end = end

    def readinto(self, buf):
        if not self.pieces:
            if isinstance(self.end, int) and self.end > 0:
                raise OSError(self.end)
            return self.end
        p = self.pieces[0]
        if p is None:
            self.pieces.pop(0)
            return None
        n = min(len(p), len(buf))
        buf[:n] = p[:n]
        if n == len(p):
            self.pieces.pop(0)
        else:
            self.pieces[0] = p[n:]
        return n


def greet(pieces, end=None, late=False):
    h = hello.Hello(Sock(pieces, end), ("1.2.3.4", 5), Poller())
    for _ in range(200):
        state = h.step()
        if state != hello.WAIT:
            return h, state
        if late and not h.sock.pieces:
            h.began = clock.ticks_add(clock.ticks_us(), -h.bound - 1000)
    return h, state


HEAD = pack(">6I", 0x44010078, 1, 5001, 0, 0, 0xFFFFFF9C) + pack(">9I", 0, 0, 0x04000000, 0, 0, 0, 0, 0, 0)


def test_payload_needs_four_bytes():
    h, state = greet([bytes(4)])
    assert state == hello.READY and h.have == 4 and h.request.mode == "receive"
    h, state = greet([b"01", None, b"23"])
    assert state == hello.READY and h.have == 4


def test_header_byte_by_byte():
    pieces = []
    for k in range(len(HEAD)):
        pieces += [HEAD[k : k + 1], None]
    h, state = greet(pieces)
    assert state == hello.READY and h.have == 60
    assert h.request.mode == "reverse" and h.request.time_us == 1000000


def test_no_byte_of_the_payload_is_taken():
    h, state = greet([HEAD + b"payload"])
    assert state == hello.READY and h.have == 60
    assert h.sock.pieces == [b"payload"]


def test_silence_and_an_early_end():
    for pieces in ([], [b"\x40"], [b"\x40\x01\x00"]):
        h, state = greet(pieces, late=True)
        assert state == hello.GONE and "nothing" in h.why
        h, state = greet(pieces, end=0)
        assert state == hello.GONE and "closed" in h.why
        h, state = greet(pieces, end=104)
        assert state == hello.GONE and "104" in h.why


def test_half_a_header_is_payload():
    for end, late in ((None, True), (0, False)):
        h, state = greet([HEAD[:30]], end=end, late=late)
        assert state == hello.READY and h.have == 30
        assert h.request.mode == "receive" and h.request.time_us == 0


def test_a_header_longer_than_usual():
    head = pack(">I", 0x40010000 | 200 << 1) + bytes(196)
    h, state = greet([head])
    assert state == hello.READY and h.have == 200


def test_an_iperf3_client():
    h, state = greet([b"k2jpwsxzqbaydtrfhmoeilcnvgu34567zyxw\0"])
    assert state == hello.STRAY and "iPerf 3" in h.why
    # letters that only look like one
    h, state = greet([b"abcdefgh" * 10])
    assert state == hello.READY and h.have == 37 and h.request.mode == "receive"
    h, state = greet([b"abcdef"], late=True)
    assert state == hello.READY and h.have == 6
