"""WINC1500 driver: socket commands, replies and the rules of the fact sheet 5.5-5.10, byte by byte."""

from winc1500 import sockets as ws
from winc1500.errors import WincError
from winc_bus import header, module

RECV12 = bytes.fromhex("FFFFFFFF")


def raises(kind, f, *args):
    try:
        f(*args)
    except kind as e:
        return e
    raise AssertionError("nothing raised")


def u16(n):
    return n.to_bytes(2, "little")


def recv_request(i, sid, twelve=True):
    return RECV12 + bytes((i, 0)) + u16(sid) + (b"\xc0\x05\0\0" if twelve else b"")


def data_event(i, sid, data, offset=80, op=0x46, src=b"\x02\0\x1e\x61\x0a\0\0\x01"):
    head = src + u16(len(data)) + u16(offset) + bytes((i, 0)) + u16(sid)
    return head + bytes(offset - 16) + data


def send_reply(i, sid, n):
    return bytes((i, 0)) + (n & 0xFFFF).to_bytes(2, "little") + u16(sid) + b"\0\0"


def connected(fw=(19, 7, 7), **options):
    """(spi, module, Sock): TCP socket 0, session 1, with its receive request at the chip."""
    spi, m = module(fw, **options)
    k = m.stack
    s = ws.Sock(True)
    # sheet, appendix A: 127.0.0.1:7777, socket 0, session 1
    spi.send(2, 0x44, 20, 0x37000, header(2, 0x44, 20) + bytes.fromhex("02001E617F00000100000100"))
    k.connect(s, b"\x7f\0\0\x01", 7777)
    spi.event(2, 0x44, b"\x00\x00\x58\x00")
    n = 20 if fw >= (19, 6, 4) else 16
    spi.send(2, 0x46, n, 0x37000, header(2, 0x46, n) + recv_request(0, 1, n == 20))
    assert k.service()
    assert s.state == ws.OPEN and s.pending
    spi.finished()
    spi.calls = 0
    m.clear_counters()
    return spi, m, s


def tcp_message(n, sid=1, i=0):
    return header(2, 0x45, 88 + n) + bytes((i, 0)) + u16(n) + bytes(8) + u16(sid) + b"\0\0"


def send_1400(spi, data, addr=0x37000):
    spi.send(2, 0xC5, 1488, addr, tcp_message(1400), data, 80)


def test_connect_command_and_first_receive_request():
    connected()


def test_receive_request_has_8_bytes_before_firmware_19_6_4():
    connected((19, 6, 1))


def test_send_1400_is_the_shortest_legal_sequence():
    # sheet 4.3: 108C = 05D0C502, 106C = 000DC002; 6.1: 1.129 bus bytes per payload byte with the reply
    spi, m, s = connected()
    data = bytes(i & 0xFF for i in range(1400))
    send_1400(spi, data)
    assert m.stack.write(s, memoryview(data)) == 1400
    spi.event(2, 0x45, send_reply(0, 1, 1400))
    assert s.out == 1 and s.unacked == 1400
    m.stack.service()
    assert s.out == 0 and s.unacked == 0
    spi.finished()
    assert spi.calls <= 16, spi.calls
    assert m.bus.bytes <= 1400 * 1.14, m.bus.bytes
    assert spi.longest_write == 1400


def test_receive_1400_into_the_callers_buffer():
    spi, m, s = connected()
    data = bytes(i * 3 & 0xFF for i in range(1400))
    spi.event(2, 0x46, data_event(0, 1, data), reads=((80, 1400),))
    spi.send(2, 0x46, 20, 0x37000, header(2, 0x46, 20) + recv_request(0, 1))
    buf = bytearray(1400)
    assert m.stack.read(s, buf) == 1400
    assert buf == data
    spi.finished()
    assert spi.calls <= 16, spi.calls
    assert m.bus.bytes <= 1400 * 1.14, m.bus.bytes
    assert m.stack.copied == 0


def test_cost_at_the_worst_filler():
    fe, fx = 2, 4
    spi, m, s = connected()
    m.bus._fe, m.bus._fx, m.bus._fl = fe, fx, fe  # what two windows of operations teach it
    m.bus._fe_min = m.bus._fe_min2 = fe
    data = bytes(1400)

    def store(addr, block):
        n = len(block)
        frame = b"\xc7" + addr.to_bytes(3, "big") + n.to_bytes(3, "big")
        spi.add(frame + bytes(fe + 2), bytes(7 + fe) + b"\xc7\0")
        spi.add(b"\xf3" + block + bytes(3), bytes(n + 1) + b"\x55\xc3\0")

    spi.put(0x108C, 0x05D0C502, fe).put(0x1078, 2, fe).read(0x1078, 0, fe, fx).read(0x150400, 0x37000, fe, fx)
    store(0x37000, tcp_message(1400))
    store(0x37058, data)
    spi.put(0x106C, 0x000DC002, fe)
    assert m.stack.write(s, data) == 1400
    reply = header(2, 0x45, 16) + send_reply(0, 1, 1400)
    spi.read(0x1070, 0x41, fe, fx).put(0x1070, 0x40, fe).read(0x1084, 0x38000, fe, fx)
    spi.load(0x38000, reply, fe, fx).read(0x1070, 0x40, fe, fx).put(0x1070, 0x42, fe)
    m.stack.service()
    spi.finished()
    assert spi.calls <= 16, spi.calls
    assert m.bus.bytes <= 1400 * 1.17, m.bus.bytes

    spi.calls = 0
    m.clear_counters()
    message = header(2, 0x46, 1488) + data_event(0, 1, data)
    spi.read(0x1070, 1488 << 2 | 1, fe, fx).put(0x1070, 1488 << 2, fe).read(0x1084, 0x38000, fe, fx)
    spi.load(0x38000, message[:24], fe, fx).load(0x38058, data, fe, fx)
    spi.read(0x1070, 1488 << 2, fe, fx).put(0x1070, 1488 << 2 | 2, fe)
    spi.put(0x108C, 2 | 0x46 << 8 | 20 << 16, fe).put(0x1078, 2, fe)
    spi.read(0x1078, 0, fe, fx).read(0x150400, 0x37000, fe, fx)
    store(0x37000, header(2, 0x46, 20) + recv_request(0, 1))
    spi.put(0x106C, 0x37000 << 2 | 2, fe)
    assert m.stack.read(s, bytearray(1400)) == 1400
    spi.finished()
    assert spi.calls <= 16, spi.calls
    assert m.bus.bytes <= 1400 * 1.17, m.bus.bytes


def test_nothing_is_allocated_per_packet():
    """Sends of 1400 and of 4096 bytes with their replies, receives with their requests."""
    import gc

    spi, m, s = connected()
    data = bytes(4096)
    n = 8

    def send(size):
        spi.send(2, 0xC5, 88 + size, 0x37000, tcp_message(size), data[:size], 80)
        spi.event(2, 0x45, send_reply(0, 1, size))

    for _ in range(2 * n):
        send(1400)
        for size in (1400, 1400, 1296):
            spi.send(2, 0xC5, 88 + size, 0x37000, tcp_message(size), data[:size], 80)
        for size in (1400, 1400, 1296):
            spi.event(2, 0x45, send_reply(0, 1, size))
        spi.event(2, 0x46, data_event(0, 1, data[:1400]), reads=((80, 1400),))
        spi.send(2, 0x46, 20, 0x37000, header(2, 0x46, 20) + recv_request(0, 1))
    view = memoryview(data)[:1400]
    buf = bytearray(1400)
    k = m.stack
    # The scripted bus allocates: it is swapped for one that only plays back.
    replay = Replay(spi.miso)
    m.bus.spi = replay
    m.bus.cs = level
    replay.at = spi.at

    def turn(times):
        for _ in range(times):
            assert k.write(s, view) == 1400
            k.service()
            assert k.write(s, data) == 4096
            k.service()
            k.service()
            k.service()
            assert s.out == 0
            assert k.read(s, buf) == 1400

    turn(n)
    gc.collect()
    gc.disable()
    try:
        before = gc.mem_alloc()
        turn(n)
        used = gc.mem_alloc() - before
    finally:
        gc.enable()
    assert used == 0, "%d bytes in %d packets" % (used, 5 * n)


def level(value):
    pass


class Replay:
    def __init__(self, miso):
        self.miso = miso
        self.at = 0

    def write(self, buf):
        self.at += len(buf)

    def readinto(self, buf, fill=0):
        a = self.at
        m = self.miso
        for i in range(len(buf)):
            buf[i] = m[a + i]
        self.at = a + len(buf)

    def write_readinto(self, out, into):
        self.readinto(into)


ONLY = {"test_nothing_is_allocated_per_packet": "micropython"}  # CPython counts no allocations


def test_a_longer_buffer_goes_out_in_pieces():
    spi, m, s = connected()
    data = bytes(i & 0xFF for i in range(3000))
    for at, n, addr in ((0, 1400, 0x37000), (1400, 1400, 0x38800), (2800, 200, 0x37000)):
        spi.send(2, 0xC5, 88 + n, addr, tcp_message(n), data[at : at + n], 80)
    assert m.stack.write(s, data) == 3000
    spi.finished()
    assert s.out == 3 and s.unacked == 3000


def test_buffer_full_takes_part_and_then_nothing():
    spi, m, s = connected()
    data = bytes(2000)
    send_1400(spi, data[:1400])
    spi.put(0x108C, 2 | 0xC5 << 8 | 688 << 16).put(0x1078, 2).read(0x1078, 0).read(0x150400, 0).quiet()
    assert m.stack.write(s, data) == 1400
    spi.put(0x108C, 2 | 0xC5 << 8 | 1488 << 16).put(0x1078, 2).read(0x1078, 0).read(0x150400, 0).quiet()
    assert m.stack.write(s, data) is None
    assert m.stack.full == 2 and s.full
    spi.event(2, 0x45, send_reply(0, 1, 1400))
    m.stack.service()
    assert not s.full
    spi.finished()


def test_one_byte_is_never_a_block_of_one():
    spi, m, s = connected()
    spi.put(0x108C, 2 | 0xC5 << 8 | 89 << 16).put(0x1078, 2).read(0x1078, 0).read(0x150400, 0x37000)
    spi.store(0x37000, tcp_message(1)).store(0x37000 + 87, b"\0x").put(0x106C, 0x37000 << 2 | 2)
    assert m.stack.write(s, b"x") == 1
    spi.event(2, 0x46, data_event(0, 1, b"y"), reads=((79, 2),))
    spi.send(2, 0x46, 20, 0x37000, header(2, 0x46, 20) + recv_request(0, 1))
    buf = bytearray(4)
    assert m.stack.read(s, buf) == 1 and buf[0] == ord("y")
    spi.finished()


def test_leftover_stays_in_the_chip_and_the_next_request_waits_for_it():
    spi, m, s = connected()
    data = bytes(range(200))
    spi.event(2, 0x46, data_event(0, 1, data), reads=((80, 50),), done=False)
    buf = bytearray(50)
    assert m.stack.read(s, buf) == 50
    assert buf == data[:50]
    spi.finished()
    assert m.stack.ready(s, 1) == 1
    spi.load(0x38000 + 8 + 130, data[50:150])
    buf = bytearray(100)
    assert m.stack.read(s, buf) == 100
    assert buf == data[50:150]
    spi.load(0x38000 + 8 + 230, data[150:]).done(288)
    spi.send(2, 0x46, 20, 0x37000, header(2, 0x46, 20) + recv_request(0, 1))
    assert m.stack.read(s, buf) == 50
    assert buf[:50] == data[150:]
    spi.quiet()
    assert m.stack.read(s, buf) is None
    assert m.stack.copied == 0
    spi.finished()


def test_leftover_is_copied_when_the_chip_is_needed():
    spi, m, s = connected()
    data = bytes(range(200))
    spi.event(2, 0x46, data_event(0, 1, data), reads=((80, 50),), done=False)
    buf = bytearray(50)
    assert m.stack.read(s, buf) == 50
    spi.load(0x38000 + 8 + 130, data[50:]).done(288)
    spi.send(2, 3, 8, 0x37000, header(2, 3, 8))
    m.hif.message(2, 3)
    buf = bytearray(100)
    assert m.stack.read(s, buf) == 100
    assert buf == data[50:150]
    spi.send(2, 0x46, 20, 0x37000, header(2, 0x46, 20) + recv_request(0, 1))
    assert m.stack.read(s, buf) == 50
    assert buf[:50] == data[150:]
    spi.finished()


def test_reading_byte_by_byte_does_not_go_over_the_bus():
    spi, m, s = connected()
    data = bytes(range(100))
    spi.event(2, 0x46, data_event(0, 1, data), reads=((80, 2),), done=False)
    buf = bytearray(2)
    got = b""
    assert m.stack.read(s, buf) == 2
    got += buf
    for k in range(4):
        spi.load(0x38000 + 8 + 82 + 2 * k, data[2 + 2 * k : 4 + 2 * k])
        assert m.stack.read(s, buf) == 2
        got += buf
    spi.load(0x38000 + 8 + 90, data[10:]).done(188)
    spi.send(2, 0x46, 20, 0x37000, header(2, 0x46, 20) + recv_request(0, 1))
    while len(got) < 100:
        assert m.stack.read(s, buf) == 2
        got += buf
    assert got == data
    spi.finished()


def test_data_is_held_while_polled_and_read_in_place():
    spi, m, s = connected()
    data = bytes(range(50))
    spi.event(2, 0x46, data_event(0, 1, data), done=False)
    assert m.stack.ready(s, 1) == 1
    assert m.stack.ready(s, 1) == 1  # still: no bus traffic
    spi.load(0x38000 + 88, data).done(138)
    spi.send(2, 0x46, 20, 0x37000, header(2, 0x46, 20) + recv_request(0, 1))
    buf = bytearray(50)
    assert m.stack.read(s, buf) == 50 and buf == data
    assert m.stack.copied == 0
    spi.finished()


def test_held_data_is_copied_when_the_chip_is_needed():
    # never leave a message un-acknowledged while waiting for something else (4.4, WiFi101 #180)
    spi, m, s = connected()
    data = bytes(range(50))
    spi.event(2, 0x46, data_event(0, 1, data), done=False)
    assert m.stack.ready(s, 1) == 1
    spi.load(0x38000 + 88, data).done(138)
    send_1400(spi, bytes(1400))
    assert m.stack.write(s, bytes(1400)) == 1400
    spi.send(2, 0x46, 20, 0x37000, header(2, 0x46, 20) + recv_request(0, 1))
    buf = bytearray(64)
    assert m.stack.read(s, buf) == 50 and buf[:50] == data
    assert m.stack.copied == 50
    spi.finished()


def test_stale_replies_are_dropped_and_acknowledged():
    spi, m, s = connected()
    spi.event(2, 0x46, data_event(0, 9, bytes(20)))
    spi.event(2, 0x45, send_reply(0, 9, 100))
    spi.event(2, 0x44, b"\x03\x00\x58\x00")
    spi.event(2, 0x44, b"\x00\xf4\x00\x00")  # a late "refused" for the id's former owner
    spi.quiet()
    while m.stack.service():
        pass
    assert m.stack.stale == 4
    assert s.state == ws.OPEN and not s.err and s.pending and not s.rx_n
    spi.finished()


def test_peer_close_is_end_of_stream_and_close_is_sent():
    spi, m, s = connected()
    spi.event(2, 0x46, data_event(0, 1, b"", 16))
    buf = bytearray(10)
    assert m.stack.read(s, buf) == 0
    assert m.stack.read(s, buf) == 0
    spi.send(2, 0x49, 12, 0x37000, header(2, 0x49, 12) + b"\x00\x00\x01\x00")
    m.stack.close(s)
    spi.finished()
    assert m.stack.table[0] is None


def status_event(i, sid, status):
    return bytes(8) + (status & 0xFFFF).to_bytes(2, "little") + u16(0) + bytes((i, 0)) + u16(sid)


def test_reset_raises_econnreset_once_data_is_read():
    spi, m, s = connected()
    spi.event(2, 0x46, status_event(0, 1, -12))
    e = raises(WincError, m.stack.read, s, bytearray(5))
    assert e.args[0] == 104
    assert raises(WincError, m.stack.write, s, b"abc").args[0] == 104
    assert m.stack.ready(s, 5) & 8
    spi.finished()


def test_receive_timeout_of_the_chip_only_repeats_the_request():
    # openmv #587: -13 keeps the socket
    spi, m, s = connected()
    spi.event(2, 0x46, status_event(0, 1, -13))
    spi.send(2, 0x46, 20, 0x37000, header(2, 0x46, 20) + recv_request(0, 1))
    m.stack.service()
    spi.finished()
    assert not s.err and s.pending


def test_refused_connection():
    spi, m = module()
    s = ws.Sock(True)
    spi.send(2, 0x44, 20, 0x37000, header(2, 0x44, 20) + bytes.fromhex("02001E617F00000100000100"))
    m.stack.connect(s, b"\x7f\0\0\x01", 7777)
    spi.event(2, 0x44, b"\x00\xf4\x00\x00")
    m.stack.service()
    assert raises(WincError, m.stack.check, s).args[0] == 111
    spi.send(2, 0x49, 12, 0x37000, header(2, 0x49, 12) + b"\x00\x00\x01\x00")
    m.stack.close(s)
    spi.finished()


def test_short_send_reply_breaks_the_stream_openly():
    spi, m, s = connected()
    send_1400(spi, bytes(1400))
    m.stack.write(s, bytes(1400))
    spi.event(2, 0x45, send_reply(0, 1, 1000))
    m.stack.service()
    assert raises(WincError, m.stack.write, s, b"x").args[0] == 5
    spi.finished()


def test_link_loss_fails_every_socket():
    spi, m, s = connected()
    spi.event(1, 44, b"\0\0\0\0")
    m.stack.service()
    e = raises(WincError, m.stack.write, s, b"x")
    assert e.args[0] == 107 and "access point" in e.args[1]
    assert raises(WincError, m.stack.connect, ws.Sock(True), b"\1\2\3\4", 5).args[0] == 100
    spi.finished()


def test_ids_rotate_and_run_out():
    _spi, m = module()
    k = m.stack
    socks = []
    for i in range(7):
        s = ws.Sock(True)
        k._take_id(s)
        socks.append(s)
        assert s.id == i and s.sid == i + 1
    e = raises(WincError, k._take_id, ws.Sock(True))
    assert e.args[0] == 24 and "7 TCP" in e.args[1]
    for i in range(7, 11):
        s = ws.Sock(False)
        k._take_id(s)
        assert s.id == i
    assert raises(WincError, k._take_id, ws.Sock(False)).args[0] == 24
    k.table[3] = k.table[5] = None
    s = ws.Sock(True)
    k._take_id(s)
    assert s.id == 3
    k.table[3] = None
    s = ws.Sock(True)
    k._take_id(s)
    assert s.id == 5  # not 3 again at once


def test_session_is_never_zero():
    _spi, m = module()
    m.stack._sid = 0xFFFE
    assert m.stack.session() == 0xFFFF
    assert m.stack.session() == 1


def udp(spi, m, port=9000):
    s = ws.Sock(False)
    # sheet, appendix A: bind port 9000, socket 7, session 1
    spi.send(2, 0x41, 20, 0x37000, header(2, 0x41, 20) + bytes.fromhex("020023280000000007000100"))
    spi.event(2, 0x41, b"\x07\x00\x01\x00")
    spi.send(2, 0x4F, 16, 0x37000, header(2, 0x4F, 16) + b"\0\0\0\0\x07\0\x01\0")
    spi.send(2, 0x48, 20, 0x37000, header(2, 0x48, 20) + recv_request(7, 1))
    m.stack.bind(s, port)
    spi.finished()
    return s


def test_udp_bind_sendto_recvfrom():
    spi, m = module()
    s = udp(spi, m)
    # sheet, appendix A: 9 bytes to 10.0.0.1:9000, length 77 = 68 + 9
    control = bytes.fromhex("07000900020023280A00000101000000")
    spi.send(2, 0xC7, 8 + 77, 0x37000, header(2, 0x47, 85) + control, b"ninebytes", 68)
    assert m.stack.sendto(s, b"ninebytes", b"\x0a\0\0\x01", 9000) == 9
    assert s.out == 0  # no reply was asked for
    spi.event(2, 0x48, data_event(7, 1, b"answer", 68, src=b"\x02\0\x23\x28\x0a\0\0\x01"), reads=((68, 6),))
    spi.send(2, 0x48, 20, 0x37000, header(2, 0x48, 20) + recv_request(7, 1))
    buf = bytearray(100)
    assert m.stack.read(s, buf) == 6 and buf[:6] == b"answer"
    assert s.src == b"\x23\x28\x0a\0\0\x01"
    spi.finished()


def test_udp_connected_socket_hears_its_peer_alone():
    spi, m = module()
    s = udp(spi, m)
    m.stack.connect(s, b"\x0a\0\0\x01", 9000)
    spi.event(2, 0x48, data_event(7, 1, b"other", 68, src=b"\x02\0\x23\x29\x0a\0\0\x01"))
    spi.send(2, 0x48, 20, 0x37000, header(2, 0x48, 20) + recv_request(7, 1))
    m.stack.service()
    assert not m.stack.readable(s)
    spi.finished()


def test_udp_datagram_longer_than_the_buffer_is_cut():
    spi, m = module()
    s = udp(spi, m)
    spi.event(2, 0x48, data_event(7, 1, bytes(range(20)), 68), reads=((68, 5),))
    spi.send(2, 0x48, 20, 0x37000, header(2, 0x48, 20) + recv_request(7, 1))
    buf = bytearray(5)
    assert m.stack.read(s, buf) == 5 and buf == bytes(range(5))
    spi.quiet()
    assert m.stack.read(s, buf) is None
    spi.finished()


def test_datagram_above_the_limit_is_refused():
    spi, m = module()
    s = udp(spi, m)
    e = raises(WincError, m.stack.sendto, s, bytes(1401), b"\1\2\3\4", 5)
    assert e.args[0] == 90 and "1400" in e.args[1]


def listening(spi, m):
    s = ws.Sock(True)
    spi.send(2, 0x41, 20, 0x37000, header(2, 0x41, 20) + bytes.fromhex("020023280000000000000100"))
    spi.event(2, 0x41, b"\x00\x00\x01\x00")
    m.stack.bind(s, 9000)
    spi.send(2, 0x42, 12, 0x37000, header(2, 0x42, 12) + b"\x00\x02\x01\x00")
    spi.event(2, 0x42, b"\x00\x00\x01\x00")
    m.stack.listen(s, 2)
    spi.finished()
    return s


def test_accept_gives_a_session_and_a_receive_request():
    # sheet 5.7 and appendix A: accepted socket 5 gets the next session of the host
    spi, m = module()
    s = listening(spi, m)
    spi.event(2, 0x43, bytes.fromhex("0200C0010A000009") + b"\x00\x05\x50\x00")
    spi.send(2, 0x46, 20, 0x37000, header(2, 0x46, 20) + recv_request(5, 2))
    assert m.stack.accept(s) is None
    m.stack.service()
    c = m.stack.accept(s)
    assert c.id == 5 and c.sid == 2 and c.peer == (b"\x0a\0\0\x09", 0xC001)
    assert m.stack.accept(s) is None and s.state == ws.LISTEN
    spi.finished()


def test_accepted_id_that_we_had_given_away():
    # WiFi101 #150
    spi, m = module()
    s = listening(spi, m)
    mine = ws.Sock(True)
    m.stack._take_id(mine)
    assert mine.id == 1
    spi.event(2, 0x43, bytes.fromhex("0200C0010A000009") + b"\x00\x01\x50\x00")
    spi.send(2, 0x46, 20, 0x37000, header(2, 0x46, 20) + recv_request(1, 3))
    m.stack.service()
    c = m.stack.accept(s)
    assert c.id == 1 and c.sid == 3
    assert raises(WincError, m.stack.write, mine, b"x").args[0] == 103
    m.stack.close(mine)  # says nothing: the id is no longer its own
    spi.finished()


def test_connection_for_nobody_is_closed():
    spi, m = module()
    spi.event(2, 0x43, bytes.fromhex("0200C0010A000009") + b"\x00\x05\x50\x00")
    spi.send(2, 0x49, 12, 0x37000, header(2, 0x49, 12) + b"\x05\x00\x01\x00")
    m.stack.service()
    assert m.stack.table[5] is None
    spi.finished()


def test_bind_refused_by_the_module():
    spi, m = module()
    s = ws.Sock(True)
    spi.send(2, 0x41, 20, 0x37000, header(2, 0x41, 20) + bytes.fromhex("020023280000000000000100"))
    spi.event(2, 0x41, b"\x00\xfe\x01\x00")
    assert raises(WincError, m.stack.bind, s, 9000).args[0] == 98
    spi.finished()


def test_resolve():
    spi, m = module()
    assert m.stack.resolve("10.1.2.3") == b"\x0a\1\2\3"
    # sheet, appendix A: 108C = 00124A02 for "echo.test"
    spi.send(2, 0x4A, 18, 0x37000, header(2, 0x4A, 18) + b"echo.test\0")
    spi.event(2, 0x4A, b"late.test" + bytes(55) + b"\x09\x09\x09\x09", reads=((0, 68),))
    spi.event(2, 0x4A, b"echo.test" + bytes(55) + b"\x0a\0\0\x07", reads=((0, 68),))
    assert m.stack.resolve("echo.test") == b"\x0a\0\0\x07"
    spi.send(2, 0x4A, 18, 0x37000, header(2, 0x4A, 18) + b"none.test\0")
    spi.event(2, 0x4A, b"none.test" + bytes(59), reads=((0, 68),))
    assert raises(WincError, m.stack.resolve, "none.test").args[0] == -2
    spi.finished()


def test_ping():
    spi, m = module()
    # sheet, appendix A
    spi.send(2, 0x52, 20, 0x37000, header(2, 0x52, 20) + bytes.fromhex("0A000001010000000100") + b"\x40\0")
    reply = bytes.fromhex("0A0000010100000007000000010000 0000000000".replace(" ", ""))
    spi.event(2, 0x52, reply, reads=((0, 20),))
    assert m.stack.ping("10.0.0.1") == (7, 1, 0)
    spi.finished()


def test_close_waits_for_outstanding_sends():
    spi, m, s = connected()
    send_1400(spi, bytes(1400))
    m.stack.write(s, bytes(1400))
    spi.event(2, 0x45, send_reply(0, 1, 1400))
    spi.send(2, 0x49, 12, 0x37000, header(2, 0x49, 12) + b"\x00\x00\x01\x00")
    m.stack.close(s)
    spi.finished()


def test_damaged_receive_event_ends_the_socket_not_the_driver():
    spi, m, s = connected()
    spi.event(2, 0x46, bytes(8) + u16(500) + u16(80) + b"\0\0\1\0" + bytes(20))
    e = raises(WincError, m.stack.read, s, bytearray(10))
    assert e.args[0] == 5
    spi.finished()

