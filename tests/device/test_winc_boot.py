"""WINC1500 driver: bring-up against the sequence of the fact sheet, section 3 and appendix A."""

from winc1500.chip import Chip
from winc1500.errors import BusError, WincError
from winc1500.spi import Bus
from winc_bus import SPI, Pin, boot_script, module


def chip(spi):
    return Chip(Bus(spi, Pin()), Pin(), Pin())


def raises(kind, f, *args):
    try:
        f(*args)
    except kind as e:
        return e
    raise AssertionError("nothing raised")


def test_boot_sequence_and_identity():
    spi = boot_script(SPI(), efuse_polls=3)
    c = chip(spi)
    c.boot()
    spi.finished()
    assert c.fw == (19, 7, 7) and c.fw_min == (19, 3, 0)
    assert c.mac == b"\xf8\xf0\x05\x12\x34\x56"
    assert c.id == 0x1503A0
    assert not c.bus.crc
    # power off, power on, then out of reset
    assert c.en.log == [0, 1] and c.rst.log == [0, 1]


def test_boot_of_the_older_revision():
    c = chip(boot_script(SPI(), chip=0x001002B0))
    c.boot()
    c.bus.spi.finished()
    assert c.id == 0x1502B0


def test_chip_left_without_crc():
    # Not reset since the last session: the frame with a CRC byte fails, the one without works (sheet 2.5)
    spi = SPI()
    spi.add("C900E82400000052 5C 0000", "00000000000000000000 00")
    spi.add("00" * 16, "00" * 16)  # the driver looks for a late echo
    spi.resync()
    spi.put(0xE824, 0x52)
    spi.read(0x1000, 0x001003A0)
    c = chip(spi)
    c.reset()
    c._link()
    spi.finished()


def test_no_module():
    class Nothing(SPI):
        def _step(self, out, into):
            self.calls += 1
            if into is not None:
                for i in range(len(into)):
                    into[i] = 0

    e = raises(BusError, chip(Nothing()).boot)
    assert "no answer from the module" in e.args[1] and "SPI_CFG" in e.args[1]


def test_wrong_chip_id():
    spi = SPI()
    spi.add("C900E82400000052 5C 0000", "000000000000000000 C900")
    for _ in range(4):
        spi.read(0x1000, 0x00080750)
    e = raises(WincError, chip(spi).boot)
    assert e.args[0] == 19 and "00080750" in e.args[1]


def test_config_register_that_never_reads_back_is_bounded():
    # community.atmel 2588346 (sheet 3.2 step 7): wrote 0x102, read 0x182
    spi = SPI()
    spi.add("C900E82400000052 5C 0000", "000000000000000000 C900")
    spi.read(0x1000, 0x1003A0).read(0x1000, 0x1003A0).read(0x1014, 0x80000000)
    spi.read(0x207BC, 1)  # the ROM does not wait for a host
    spi.put(0x108C, 0x13301361)
    for _ in range(5):
        spi.put(0x14A0, 0x102).read(0x14A0, 0x182)
    e = raises(WincError, chip(spi).boot)
    assert "182" in e.args[1] and "clock" in e.args[1]
    spi.finished()


def test_firmware_too_old():
    e = raises(WincError, chip(boot_script(SPI(), fw=(19, 4, 3))).boot)
    assert "19.4.3" in e.args[1]


def test_module_sets_a_host_name_at_start():
    m = module()[1]
    assert m.running and m.name == "winc-123456"


def test_failed_boot_powers_down():
    from winc1500.driver import Module

    spi = boot_script(SPI(), fw=(19, 2, 0))
    m = Module(spi, Pin(), Pin(), Pin())
    raises(WincError, m.start)
    assert not m.running and m.chip.en() == 0 and m.chip.rst() == 0
