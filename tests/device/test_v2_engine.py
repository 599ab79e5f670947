"""What iPerf 2 asks of the engine: streams that join and leave, two on one socket, a quota of their own."""

from iperf import hot
from iperf.engine import POLLIN, POLLOUT, Engine
from iperf.flow import Flow, Header


class Poller:
    """Keeps what each socket waits for."""

    def __init__(self):
        self.flags = {}

    def register(self, sock, flags):
        self.flags[id(sock)] = flags

    def unregister(self, sock):
        self.flags.pop(id(sock), None)

    def wait(self, ms):
        pass


class Sock:
    """Takes and gives what the lists say: a number of bytes, None for EAGAIN."""

    def __init__(self, takes=(), gives=()):
        self.takes = list(takes)
        self.gives = list(gives)
        self.sizes = []
        self.ready = 0

    def write(self, buf):
        self.sizes.append(len(buf))
        n = self.takes.pop(0) if self.takes else len(buf)
        return n if n is None else min(n, len(buf))

    def readinto(self, buf):
        return self.gives.pop(0) if self.gives else None


def test_quota_of_a_stream_is_kept_to_the_byte():
    a = Sock(takes=[100, 40, None, 100])
    b = Sock()
    flows = [Flow(1, a, True, bytearray(100)), Flow(2, b, True, bytearray(100))]
    for f in flows:
        f.quota = 350
    e = Engine(Poller(), flows)
    e.run()
    assert [f.total(hot.C_BYTES) for f in flows] == [350, 350]
    assert b.sizes == [100, 100, 100, 50]
    assert all(f.done and f.end_us >= 0 for f in flows)


def test_quota_holds_for_a_paced_stream():
    s = Sock()
    f = Flow(1, s, True, bytearray(100), rate=100000000)
    f.quota = 250
    Engine(Poller(), [f]).run()
    assert f.total(hot.C_BYTES) == 250 and s.sizes == [100, 100, 50]


def test_two_streams_share_a_socket():
    p = Poller()
    s = Sock(takes=[None] * 3, gives=[10, None, None, 0])
    tx, rx = Flow(1, s, True, bytearray(50)), Flow(2, s, False, bytearray(50))
    e = Engine(p, [tx, rx])
    e.start()
    assert p.flags == {id(s): POLLIN}
    e.slice()
    assert p.flags == {id(s): POLLIN | POLLOUT}
    e.slice()
    e.end(tx)
    assert p.flags == {id(s): POLLIN}
    while not e.slice():
        pass
    assert rx.done and p.flags == {}
    assert rx.total(hot.C_BYTES) == 10


def test_a_stream_joins_and_has_a_time_of_its_own():
    p = Poller()
    first, second = Sock(gives=[5] * 50 + [0]), Sock(gives=[7, 0])
    e = Engine(p, [Flow(1, first, False, bytearray(9))])
    e.start()
    e.clock.s = 3  # 3 s later
    f = Flow(2, second, False, bytearray(9))
    e.add(f)
    assert f.start_us >= 3000000
    while not e.slice():
        pass
    e.finish()
    assert 0 <= f.end_us - f.start_us < 3000000
    assert f.total(hot.C_BYTES) == 7


def test_a_file_that_ends_while_the_socket_is_full_is_no_error():
    blocks = [4, 4, 0]
    f = Flow(1, Sock(takes=[4, None, 4]), True, bytearray(4), source=lambda buf: blocks.pop(0))
    Engine(Poller(), [f]).run()
    assert f.total(hot.C_BYTES) == 8


def test_a_stream_that_ended_gets_no_more_rows():
    a, b = Flow(1, Sock(gives=[5, 0]), False, bytearray(9)), Flow(2, Sock(gives=[6] * 9), False, bytearray(9))
    e = Engine(Poller(), [a, b], interval_us=1000000)
    e.start()
    e.slice()
    for s in (1, 2, 3):
        e.clock.s = s
        e._rows()
    assert [(r["id"], r["start_us"] // 1000000) for r in e.rows()] == [(1, 0), (2, 0), (2, 1), (2, 2)]


def test_the_stream_whose_socket_failed_is_known():
    class Broken(Sock):
        def readinto(self, buf):
            raise OSError(104)

    bad = Flow(2, Broken(), False, bytearray(9))
    e = Engine(Poller(), [Flow(1, Sock(), False, bytearray(9)), bad])
    e.start()
    try:
        e.slice()
        raise AssertionError("no error")
    except OSError:
        assert e.at is bad


def test_what_moved_before_an_error_is_counted():
    class Breaks(Sock):
        def readinto(self, buf):
            if not self.gives:
                raise OSError(104)
            return self.gives.pop(0)

        def write(self, buf):
            if not self.takes:
                raise OSError(104)
            return self.takes.pop(0)

    for f in (
        Flow(1, Breaks(gives=[5, 6, 7]), False, bytearray(9)),
        Flow(1, Breaks(takes=[9, 9]), True, bytearray(9)),
    ):
        e = Engine(Poller(), [f])
        try:
            e.run()
            raise AssertionError("no error")
        except OSError as err:
            assert err.args[0] == 104
        assert f.total(hot.C_BYTES) == 18


def refused(each):
    """A stream of datagrams of which every `each`-th is refused; (the stream, the error)."""

    class Icmp(Sock):
        calls = 0

        def write(self, buf):
            self.calls += 1
            if self.calls % each == 0:
                raise OSError(111)
            return len(buf)

    f = Flow(1, Icmp(), True, bytearray(20), Header(0, -1, 4, 8, 0, 16, 0))
    f.quota = 20 * 60
    try:
        Engine(Poller(), [f]).run()
    except OSError as err:
        return f, err.args[0]
    return f, 0


def test_a_refused_datagram_now_and_then_is_sent_again():
    """An iperf 2 server has no socket for a moment between two streams of a -P test."""
    f, error = refused(20)
    assert error == 0
    assert f.total(hot.C_PKTS) == 60
    assert f.total(hot.C_RETRY) == 3


def test_a_server_that_is_not_there_ends_the_test():
    f, error = refused(2)
    assert error == 111
    assert f.total(hot.C_PKTS) < 30
