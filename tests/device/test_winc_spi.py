"""WINC1500 driver: SPI protocol against the byte examples of the fact sheet, section 2."""

from winc1500.errors import BusError
from winc1500.spi import Bus, crc7
from winc_bus import SPI, Pin


def bus(spi, **options):
    b = Bus(spi, Pin(), **options)
    b.crc = False
    return b


def raises(kind, f, *args):
    try:
        f(*args)
    except kind as e:
        return e
    raise AssertionError("nothing raised")


def test_crc7_vectors():
    # sheet 2.2
    for frame, crc in (
        ("CFFFFFFF", 0xAA), ("CA00E824", 0xBC), ("C900E82400000052", 0x5C), ("CA001014", 0xB0),
        ("CA0C000C", 0xDE), ("C4800F00", 0xC4), ("C380010000000 2", 0x22), ("CA001000", 0xCA),
        ("CA0013F4", 0xA4), ("C900E82400000050", 0x78), ("CA0207BC", 0x6A), ("C4800100", 0x00),
        ("C4800B00", 0x9C), ("C803000000000 8", 0x30),
    ):  # fmt: skip
        b = bytes.fromhex(frame.replace(" ", ""))
        assert crc7(b, len(b)) == crc, frame


def test_read_register():
    # sheet 2.8: chip id 0x001003A0, LSB first
    spi = SPI().add("CA001000 00 00 00 00 00 00 00", "00000000 CA 00 F3 A0 03 10 00")
    b = bus(spi)
    assert b.read(0x1000) == 0x001003A0
    spi.finished()
    assert spi.calls == 1 and b.calls == 1 and b.bytes == 11
    assert b.cs.log == [0, 1]


def test_write_register_msb_first():
    spi = SPI().add("C900108C13301377 0000", "0000000000000000 C900")
    bus(spi).write(0x108C, 0x13301377)
    spi.finished()
    assert spi.calls == 1


def test_clockless_registers():
    # C3/C4 with bit 15 of the address; the answer to a C3 is not believed (sheet 2.3)
    spi = SPI().add("C480 0F 00 00000000000000", "00000000 C400 F3 04000000")
    spi.add("C380 01 00000002 0000", "00000000000000 9B 77")
    b = bus(spi)
    assert b.read(0x0F) == 4
    b.write(0x01, 2)
    spi.finished()


def test_crc_mode_appends_crc7_and_swallows_crc16():
    spi = SPI().add("CA001000CA" + "00" * 9, "0000000000 CA 00 F3 A0 03 10 00 12 34")
    b = Bus(spi, None)
    assert b.read(0x1000) == 0x001003A0
    spi.finished()


def test_clockless_read_has_no_crc16():
    spi = SPI().add("C4800F00C4" + "00" * 7, "0000000000 C4 00 F3 04 00 00 00")
    assert Bus(spi).read(0x0F) == 4
    spi.finished()


def test_filler_costs_calls_once():
    spi = SPI()
    spi.read(0x1070, 5, fe=2, fx=4).read(0x1070, 5, fe=2, fx=4).read(0x1070, 6, fe=2, fx=4)
    b = bus(spi)
    assert b.read(0x1070) == 5  # read twice: filler longer than ever can be a frame that lost a byte
    first = b.calls
    assert first > 1
    assert b.read(0x1070) == 6
    assert b.calls == first + 1
    spi.finished()


def test_filler_shrinks_again():
    spi = SPI().read(0x1070, 5, fe=2, fx=4).read(0x1070, 5, fe=2, fx=4)
    extra = bytes(6)
    b = bus(spi)
    b.read(0x1070)
    k = 0
    while b._fe or b._fx:
        k += 1
        assert k < 200
        if b.ops & 63 == 63 and not b._fe_max:
            break
        spi.add(b"\xca\0\x10\x70" + bytes(7) + extra, bytes(4) + b"\xca\0\xf3" + bytes(4) + extra)
        b.read(0x1070)
    assert k >= 60
    spi.read(0x1070, 7)
    assert b.read(0x1070) == 7
    spi.finished()


def test_overread_off_clocks_no_byte_too_many():
    spi = SPI().read(0x1070, 5, fe=1, fx=3).read(0x1070, 5, fe=1, fx=3).read(0x1070, 6)
    b = bus(spi, overread=False)
    assert b.read(0x1070) == 5 and b.read(0x1070) == 6
    spi.finished()


def test_no_filler_limit_up_to_ten():
    for fx in range(10):  # the vendor's reader takes 0-9 (sheet 2.3)
        spi = SPI().read(0x1000, 0x1003A0, fe=fx, fx=fx).read(0x1000, 0x1003A0, fe=fx, fx=fx)
        assert bus(spi).read(0x1000) == 0x1003A0


def test_frame_that_lost_a_byte_is_noticed():
    # C8 03 80 58 00 00 00 04 without the 03: the chip answers one zero later, from another address
    spi = SPI().load(0x38058, b"zzzz", fe=1).load(0x38058, b"data")
    b = bus(spi)
    buf = bytearray(4)
    b.read_into(0x38058, buf, 4)
    assert buf == b"data"


def test_write_message_two_blocks():
    control = bytes(range(24))
    data = bytes(i & 0xFF for i in range(1400))
    spi = SPI().store(0x37000, control).store(0x37058, data)
    b = bus(spi)
    b.out[1:25] = control
    b.write_message(0x37000, 24, data, 1400, 0x37058)
    spi.finished()
    assert spi.longest_write == 1400  # in one piece, for DMA
    assert spi.calls == 5


def test_message_after_a_longer_one_sends_zeros_while_reading():
    spi = SPI().store(0x37000, bytes([7] * 22)).store(0x37000, bytes([9] * 12))
    b = bus(spi)
    for i in range(22):
        b.out[1 + i] = 7
    b.write_message(0x37000, 22)
    for i in range(12):
        b.out[1 + i] = 9
    b.write_message(0x37000, 12)
    spi.finished()


def test_read_into_callers_buffer():
    data = bytes(i * 7 & 0xFF for i in range(1400))
    spi = SPI().load(0x38058, data)
    buf = bytearray(1400)
    bus(spi).read_into(0x38058, buf, 1400)
    assert buf == data and spi.calls == 2
    spi.finished()


def test_read_into_with_a_long_guess_of_the_filler():
    data = bytes(i * 7 & 0xFF for i in range(100))
    spi = SPI().read(0x1000, 1, fe=2, fx=4).read(0x1000, 1, fe=2, fx=4).load(0x38058, data)
    b = bus(spi)
    b.read(0x1000)
    buf = bytearray(120)
    b.read_into(0x38058, buf, 100)
    assert buf[:100] == data and buf[100:] == bytes(20)
    spi.finished()


def test_state_error_is_repeated_after_resync():
    spi = SPI().add("CA00107000000000000000", "00000000CA030000000000").resync().read(0x1070, 9)
    b = bus(spi)
    assert b.read(0x1070) == 9
    assert b.resyncs == 1 and b.retries == 1
    spi.finished()


def test_stuck_miso_raises_within_bounded_calls():
    class Stuck:
        def __init__(self, level):
            self.level = level
            self.n = 0

        def write(self, buf):
            self.n += 1

        def readinto(self, buf, fill=0):
            self.n += 1
            for i in range(len(buf)):
                buf[i] = self.level

        def write_readinto(self, out, into):
            self.readinto(into)

    for level in (0x00, 0xFF):
        spi = Stuck(level)
        e = raises(BusError, bus(spi).read, 0x1000)
        assert e.args[0] == 5 and "MISO stays at %02X" % level in e.args[1]
        assert "SPI_CFG" in e.args[1]
        assert spi.n < 3000


def test_write_once_reports_doubt():
    spi = SPI().add("C900106C000DC002 0000", "0000000000000000 0041").resync()
    b = bus(spi)
    assert b.write_once(0x106C, 0x000DC002) is False
    spi.finished()


def test_block_not_taken_is_repeated():
    spi = SPI()
    spi.add("C7037000000008 0000", "00000000000000 C700")
    spi.add("F3 0102030405060708 000000", "00 0000000000000000 000000")
    spi.resync()
    spi.store(0x37000, bytes(range(1, 9)))
    b = bus(spi)
    for i in range(8):
        b.out[1 + i] = i + 1
    b.write_message(0x37000, 8)
    spi.finished()
