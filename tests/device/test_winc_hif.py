"""WINC1500 driver: messages (fact sheet, section 4) byte by byte."""

from winc1500.errors import WincError
from winc_bus import Pin, header, module


def raises(kind, f, *args):
    try:
        f(*args)
    except kind as e:
        return e
    raise AssertionError("nothing raised")


def test_message_and_grant_that_takes_a_while():
    spi, m = module()
    spi.send(1, 3, 8, 0x37abc, header(1, 3, 8), grants=4)
    m.hif.message(1, 3)
    spi.finished()
    assert m.hif.grant_waits == 3


def test_no_buffer_is_retried_while_messages_are_served():
    spi, m = module()
    spi.put(0x108C, 1 | 3 << 8 | 8 << 16).put(0x1078, 2).read(0x1078, 0).read(0x150400, 0)
    spi.event(1, 44, b"\x02\x00\x00\x00")
    spi.send(1, 3, 8, 0x37000, header(1, 3, 8))
    m.hif.message(1, 3)
    spi.finished()
    assert m.hif.buffer_full == 1 and m.hif.rx == 1


def test_message_never_granted_raises_in_time():
    _spi, m = module()
    m.bus.read = lambda addr: 2 if addr == 0x1078 else 0
    m.bus.write = lambda addr, v: None
    m.bus.write_once = lambda addr, v: True
    e = raises(WincError, m.hif.message, 1, 3)
    assert e.args[0] == 110


def test_pool_full_for_ever_raises_enobufs():
    _spi, m = module()
    m.bus.read = lambda addr: 0
    m.bus.write = lambda addr, v: None
    m.bus.write_once = lambda addr, v: True
    e = raises(WincError, lambda: m.hif.message(1, 3, b"", 50))
    assert e.args[0] == 105


def test_event_is_cleared_read_and_acknowledged():
    # sheet 4.4: state event, 12 bytes: 0x31, write 0x30, ..., write 0x32
    spi, m = module()
    spi.read(0x1070, 0x31).put(0x1070, 0x30).read(0x1084, 0x38000)
    spi.load(0x38000, b"\x01\x2c\x0c\x00\0\0\0\0\x02\x00\x00\x00")
    spi.read(0x1070, 0x30).put(0x1070, 0x32)
    assert m.hif.poll() is True
    spi.finished()


def test_shortcut_saves_the_read_only_when_asked():
    spi, m = module(shortcuts=True)
    spi.read(0x1070, 0x31).put(0x1070, 0x30).read(0x1084, 0x38000)
    spi.load(0x38000, b"\x01\x2c\x0c\x00\0\0\0\0\x02\x00\x00\x00")
    spi.put(0x1070, 0x32)
    m.hif.poll()
    spi.finished()


def test_padded_length_is_accepted_and_a_larger_difference_dropped():
    spi, m = module()
    spi.event(1, 44, b"\x02\x00\x00\x00", pad=4)
    m.hif.poll()
    assert m.hif.bad == 0
    spi.read(0x1070, 0x81).put(0x1070, 0x80).read(0x1084, 0x38000)
    spi.load(0x38000, b"\x01\x2c\x0c\x00\0\0\0\0\x02\x00\x00\x00" + bytes(12))
    spi.read(0x1070, 0x80).put(0x1070, 0x82)
    m.hif.poll()
    spi.finished()
    assert m.hif.bad == 1


def test_length_zero_is_acknowledged():
    spi, m = module()
    spi.read(0x1070, 1).put(0x1070, 0).read(0x1070, 0).put(0x1070, 2)
    assert m.hif.poll() is True
    spi.finished()
    assert m.hif.bad == 1


def test_false_alarm_is_ignored():
    spi, m = module()
    spi.quiet()
    assert m.hif.poll() is False
    spi.finished()


def test_irq_high_means_no_bus_traffic_until_the_recheck():
    import time

    irq = Pin(1)
    spi, m = module(irq=irq)
    m.hif._t = __import__("winc1500.compat").compat.ticks_ms()
    assert m.hif.poll() is False
    assert spi.calls == 0
    # The line fails to fall: the register is looked at all the same, a little later.
    time.sleep(0.03)
    spi.event(1, 44, b"\x02\x00\x00\x00")
    assert m.hif.poll() is True
    assert m.hif.irq_lost == 1
    irq(0)
    spi.quiet()
    assert m.hif.poll() is False
    spi.finished()


def test_lost_echo_of_commit_reads_back_before_it_repeats():
    spi, m = module()
    spi.put(0x108C, 1 | 3 << 8 | 8 << 16).put(0x1078, 2).read(0x1078, 0).read(0x150400, 0x37000)
    spi.store(0x37000, header(1, 3, 8))
    spi.add("C900106C000DC002 0000", "0000000000000000 C701").resync()
    spi.read(0x106C, 0x000DC002)  # it is there: not written again
    m.hif.message(1, 3)
    spi.finished()


def test_lost_commit_is_repeated():
    spi, m = module()
    spi.put(0x108C, 1 | 3 << 8 | 8 << 16).put(0x1078, 2).read(0x1078, 0).read(0x150400, 0x37000)
    spi.store(0x37000, header(1, 3, 8))
    spi.add("C900106C000DC002 0000", "0000000000000000 C903").resync()
    spi.read(0x106C, 0).put(0x106C, 0x000DC002)
    m.hif.message(1, 3)
    spi.finished()


def test_done_is_not_repeated_when_the_next_message_is_there():
    spi, m = module()
    spi.event(1, 44, b"\x02\x00\x00\x00", done=False)
    spi.read(0x1070, 0x30)
    spi.add("C9001070" + "00000032" + "0000", "0000000000000000 7700").resync()
    spi.read(0x1070, 0x41)  # a new message of 16 bytes: the first "done" has arrived
    m.hif.poll()
    spi.finished()


def test_switched_off_module_refuses_and_stays_silent():
    spi, m = module()
    h = m.hif
    m.stop()
    spi.calls = 0
    e = raises(WincError, h.message, 1, 3)
    assert e.args[0] == 100
    assert h.poll() is False and spi.calls == 0
    assert raises(WincError, m.need).args[0] == 100
