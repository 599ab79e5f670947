"""iPerf 2's headers, acks, final datagrams and reports, against bytes seen from real programs."""

from struct import pack, pack_into, unpack_from

from iperf.v2 import inflow, report, request, wire


def tcp(*words):
    return pack(">%dI" % len(words), *words)


def amount(us):
    return (-us // 10000) & 0xFFFFFFFF


def test_header_length_of_every_version():
    for flags, n in (
        (0, 0),  # 2.0.6, and our own
        (0x70313233, 36),  # 2.0.9 -t
        (0xF0313233, 36),  # 2.0.9 -d, -r
        (0x30313233, 0),  # 2.0.9 -n
        (0x08000000, 0),  # 2.0.13
        (0x80000001, 24),  # 2.0.x -d
        (0x80000000, 24),
        (0x88000001, 24),  # 2.0.13 -d
        (0x40010078, 60),  # 2.1
        (0x46010078, 60),  # 2.1 -X
        (0xC0010079, 60),  # 2.1 -d
        (0x44010078, 60),  # 2.1 -R
        (0x44000000, 60),  # the same without its length
        (0x460100A0, 80),  # 2.1 --trip-times -X
        (0x40010080, 64),  # 2.2
        (0x00800000, 0),  # bounce-back
        (0x7A7A7A7A, 0),  # zzzz
        (0x34353637, 0),  # 4567
        (0x61626364, 0),
    ):
        assert request.header_len(flags) == n, hex(flags)


def test_ack_is_sent_to_those_who_wait_for_it():
    for flags, ack in ((0, False), (0x40010078, True), (0x46010078, True), (0x44010078, False),
                       (0x80000001, False), (0xC0010079, True), (0x70313233, True)):  # fmt: skip
        assert request.wants_ack(flags) == ack, hex(flags)
    buf = bytearray(64)
    assert request.put_ack(buf) == 28
    assert report.is_ack(buf, 28)
    assert not report.is_ack(buf, 29)


def test_plain_and_reverse_requests_of_2_1_8():
    v1 = (1, 5001, 0, 0, amount(1000000))
    r = request.Request(tcp(0x40010078, *v1) + bytes(36), 0, 60)
    assert (r.mode, r.streams, r.port, r.time_us, r.num_bytes) == ("receive", 1, 5001, 1000000, 0)
    ext = (0, 0, 0x04000000, 0x00020001, 0x00080003, 0, 20000000, 0, 0)
    r = request.Request(tcp(0x44010078, 2, 5001, 3000, 0, amount(2500000), *ext), 0, 60)
    assert (r.mode, r.streams, r.length, r.rate, r.time_us) == ("reverse", 2, 3000, 20000000, 2500000)
    ext = (0, 0, 0x08000000, 0, 0, 0, 1, 3 << 8, 0)
    r = request.Request(tcp(0x44010078, 1, 5001, 0, 0, 1310720, *ext), 0, 60)
    assert (r.mode, r.rate, r.num_bytes, r.time_us) == ("full_duplex", (3 << 32) | 1, 1310720, 0)


def test_requests_to_connect_back():
    for flags, mode in ((0x80000001, "dual"), (0x80000000, "tradeoff"), (0xC0010079, "dual"),
                        (0xC0010078, "tradeoff"), (0xF0313233, "dual")):  # fmt: skip
        r = request.Request(tcp(flags, 1, 5002, 0, 0, amount(500000)) + bytes(36), 0, 60)
        assert (r.mode, r.port, r.time_us) == (mode, 5002, 500000), hex(flags)


def test_payload_and_short_headers_ask_for_nothing():
    for data in (b"0123456789" * 7, bytes(60), b"z" * 60, b"A" * 60, b"", b"\x44\x01\x00\x78"):
        r = request.Request(data, 0, len(data))
        assert not request.wants_ack(r.flags), data
        assert (r.mode, r.streams, r.port, r.time_us, r.num_bytes) == ("receive", 1, 0, 0, 0), data


def test_our_requests_are_read_back():
    buf = bytearray(76)
    flags = wire.V2 | wire.EXTEND | wire.UDPTESTS | wire.SEQNO64
    wire.put_v1(buf, 16, flags, 3, 5001, 1470, 5000000000, -250)
    wire.put_extension(buf, 40, wire.FULL_DUPLEX | wire.NO_FIN, 5000000000, 0x10)
    r = request.Request(buf, 16, 76)
    assert (r.mode, r.streams, r.length, r.rate, r.time_us) == ("full_duplex", 3, 1470, 5000000000, 2500000)
    assert not r.wants_report
    assert request.layout(buf, 76) == (wire.NEW, True)


def test_layout_of_the_first_datagram():
    def words(*w):
        return pack(">%dI" % len(w), *w)

    stamp = (0x6B0D77A5, 0x9FECE)
    for data, layout in (
        (words(1, *stamp, 0, 0x48010098, 1, 5001, 0, 0, 0), (wire.NEW, True)),  # 2.1.8
        (words(0, *stamp, 0, 0x08000000, 0, 0, 0, 0, 0), (wire.NEW, True)),  # ours
        (words(0, *stamp, 0, 0x88000001, 1, 5001, 0, 0, 0), (wire.NEW, True)),  # 2.0.13 -d
        (words(0, *stamp, 0x32333435, 0, 1, 5001, 0, 0, 0), (wire.NEW, False)),  # 2.0.10-12
        (words(0, *stamp, 0x7A7A7A7A, 0, 1, 5001, 0, 0, 0), (wire.NEW, False)),  # zperf
        (words(0, *stamp, 0, 1, 5001, 0, 0, 0, 0), (wire.OLD, False)),  # 2.0.6: flags, streams, port
        (words(0, *stamp, 0x80000001, 2, 5001, 0, 0, 0, 0), (wire.OLD, False)),
        (words(0, *stamp, 0x32333435, 0x36373839, 1, 1, 1, 1, 1), (wire.NEW, False)),  # connects back: digits
        (b"z" * 60, (wire.NEW, False)),
        (words(7) + bytes(4), (wire.BARE, False)),
        (words(7) + bytes(8), (wire.OLD, False)),
    ):
        assert request.layout(data, len(data)) == layout, data


def test_final_number_in_both_notations():
    wide = wire.header(wire.NEW, True, 0).o
    narrow = wire.header(wire.NEW, False, 0).o
    for n in (1, 87, 1 << 20, (1 << 31) - 5):
        for o, signed in ((wide, False), (narrow, False), (narrow, True)):
            buf = bytearray(20)
            pack_into(">I", buf, 0, n)
            report.put_fin(buf, o, signed)
            assert buf[0] & 128
            assert inflow.fin_number(buf, o, n + 3) == n, (n, signed)
    for n in ((1 << 32) - 1, (5 << 32) | 0xFFFFFFFE, (1 << 32)):
        buf = bytearray(20)
        pack_into(">I", buf, 0, n & 0xFFFFFFFF)
        pack_into(">I", buf, 12, n >> 32)
        assert not buf[12] & 128
        report.put_fin(buf, wide, False)
        assert buf[12] & 128
        assert inflow.fin_number(buf, wide, 0) == n


def test_report_round_trip_in_every_layout():
    for layout, size, at in ((wire.NEW, 128, 16), (wire.OLD, 52, 12), (wire.BARE, 128, 16)):
        buf = bytearray(128)
        n = report.put_report(buf, layout, (7 << 32) | 5, 10123456, 3, 2, 99, 1234567)
        assert n == size
        assert report.get_report(buf, n) == ((7 << 32) | 5, 10123456, 3, 2, 99, 1234567)
        assert unpack_from(">I", buf, at)[0] & 0x80000000
    buf = bytearray(128)
    report.put_report(buf, wire.NEW, 1, 1, (1 << 33) + 1, 1 << 34, 1 << 35, 0)
    assert report.get_report(buf, 128)[2:5] == ((1 << 33) + 1, 1 << 34, 1 << 35)


def test_what_is_no_report():
    ack = bytearray(64)
    request.put_ack(ack)
    for data in (bytes(ack[:28]), bytes(128), b"0123456789" * 20, b"", b"\xff" * 128, b"\x80" * 128):
        assert report.get_report(data, len(data)) is None


def test_a_cookie_is_known_and_digits_are_not():
    cookie = b"k2jpwsxzqbaydtrfhmoeilcnvgu34567zyxw\0"
    assert len(cookie) == request.COOKIE_LEN
    for n in (4, 20, 37):
        assert request.may_be_cookie(cookie, n)
    assert not request.may_be_cookie(b"0123", 4)
    assert request.may_be_cookie(b"2345", 4)
    assert not request.may_be_cookie(b"2345678901", 10)
    assert not request.may_be_cookie(b"a" * 37, 37)
