"""One wrong driver for each rule of the fact sheet's section 9.2; each fails for that rule's reason."""

import struct

import pytest
from upyperf.virtual.winc import RULES, AccessPoint, Chip, Config, RuleError
from upyperf.virtual.winc.crc import crc7
from winc_refhost import Host, NoAnswer, booted, raw_host, ready


def rules(host):
    return [v.rule for v in host.chip.violations]


def lenient(**settings):
    return booted(strict=False, **settings)


def joined(**settings):
    return ready(strict=False, **settings)


def test_every_rule_has_a_test():
    names = [name for name in globals() if name.startswith("test_rule_")]
    assert {int(name.split("_")[2]) for name in names} == set(RULES)


def test_strict_mode_raises_out_of_the_transfer():
    host = raw_host(strict=True)
    host.chip.set_pin("cs", 0)
    with pytest.raises(RuleError) as error:
        host.chip.transfer(b"\xca")
    assert error.value.rule == 1


@pytest.mark.parametrize("idle", [0x00, 0xFF])
def test_rule_1_held_in_reset_nobody_answers(idle):
    host = raw_host()
    host.chip.config.spi.idle_miso = idle
    host.chip.set_pin("cs", 0)
    host.chip.set_pin("en", 1)
    with pytest.raises(NoAnswer):
        host.read(0x1000)
    assert host.chip.transfer(bytes(4)) == bytes((idle,)) * 4
    assert set(rules(host)) == {1}


def test_rule_1_access_before_the_reset_delay_is_garbage():
    host = raw_host(seed=3)
    host.chip.config.boot.reset_us = 1e6
    host.power()
    assert host.chip.transfer(bytes(64)) != bytes(64)
    assert rules(host) == [1]


def test_rule_1_reset_too_short_after_enable():
    host = raw_host()
    host.chip.config.boot.en_to_reset_us = 5000
    host.power()
    assert rules(host) == [1]
    with pytest.raises(NoAnswer):
        host.read(0x1000)


def test_rule_2_wrong_crc_is_state_3_without_effect():
    host = raw_host()
    host.power()
    body = bytes.fromhex("C900E82400000052")
    host.chip.transfer(body + bytes((crc7(body) ^ 2,)))
    assert host.echo(0xC9) == 3
    assert host.read(0xE824) != 0x52
    assert rules(host) == [2]


def test_rule_2_no_crc_while_it_is_required():
    host = raw_host()
    host.power()
    host.crc = False
    with pytest.raises(NoAnswer):
        host.read(0x1000)
    assert 2 in rules(host)


def test_rule_2_blind_write_while_crc_is_already_off_is_legal():
    host = raw_host(strict=True)
    host.rom()
    body = bytes.fromhex("C900E82400000052")
    host.chip.transfer(body + bytes((crc7(body),)) + bytes(6))
    assert host.read(0xE824) == 0x52


def test_rule_3_crc16_left_unread():
    host = raw_host()
    host.power()
    host.command(b"\xca\x00\x10\x00")
    host.echo(0xCA)
    host.header()
    host.chip.transfer(bytes(4))
    with pytest.raises(NoAnswer):
        host.read(0x1000)
    assert 3 in rules(host)


@pytest.mark.parametrize("addr", [0x14A0, 0xC000C, 0x1078])
def test_rule_4_data_least_significant_byte_first(addr):
    host = raw_host()
    host.rom()
    value = {0x14A0: 0x102, 0xC000C: 0xEF522F61, 0x1078: 2}[addr]
    if addr == 0x1078:
        host.start()
    host.write(addr, int.from_bytes(value.to_bytes(4, "little"), "big"))
    assert rules(host) == [4]


def test_rule_4_version_word():
    host = raw_host()
    host.rom()
    host.write(0x108C, 0x61133013)
    assert rules(host) == [4]


def test_rule_5_a_host_that_expects_no_filler():
    host = raw_host(seed=5)
    host.rom()
    for _ in range(20):
        host.chip.transfer(bytes.fromhex("CA001000") + bytes(7))
    assert 5 in rules(host)


def test_rule_5_fillers_vary_and_stay_in_bounds():
    host = booted(seed=7)
    echoes, headers = set(), set()
    for _ in range(200):
        miso = host.chip.transfer(bytes.fromhex("CA001000") + bytes(20))
        echo = miso.index(0xCA)
        echoes.add(echo - 4)
        headers.add(miso.index(0xF3) - echo - 2)
    assert echoes == {0, 1, 2}
    assert headers == {0, 1, 2, 3, 4}


def test_rule_6_unknown_command():
    host = lenient()
    host.chip.transfer(b"\x99")
    assert host.read(0x1000) == 0x1003A0
    host.chip.transfer(b"\xcb")
    assert host.echo(0xCB) == 1
    assert rules(host) == [6, 6]


def test_rule_6_data_header_missing():
    host = lenient()
    addr = host.grant(1, 5, 8)
    host.command(b"\xc7" + addr.to_bytes(3, "big") + b"\0\0\x08")
    host.echo(0xC7)
    miso = host.chip.transfer(struct.pack("<BBHI", 1, 5, 8, 0)) + host.chip.transfer(bytes(4))
    assert b"\xc3\x02" in miso
    assert 6 in rules(host)


@pytest.mark.parametrize("size", [0, 1])
def test_rule_7_block_sizes(size):
    host = lenient()
    addr = host.grant(1, 5, 8)
    with pytest.raises(NoAnswer, match="state 5" if size == 0 else "data response"):
        host.write_block(addr, bytes(size))
    with pytest.raises(NoAnswer, match="state 5" if size == 0 else "no data header"):
        host.read_block(0x31000, size)
    assert rules(host) == [7, 7]


def test_rule_8_packet_larger_than_configured():
    host = raw_host()
    host.power()
    host.write(0xE824, 0x02)  # CRC off, packets of 256 bytes
    host.crc = False
    host.wait(0xC000C, lambda v: v == 0x10ADD09E)
    host.start()
    addr = host.grant(1, 5, 1000)
    with pytest.raises(NoAnswer, match="05"):
        host.write_block(addr, bytes(1000))
    assert rules(host) == [8]


def test_rule_8_packet_order():
    host = lenient()
    addr = host.grant(1, 5, 8)
    with pytest.raises(NoAnswer, match="05"):
        host.write_block(addr, bytes(8), order=1)
    assert rules(host) == [8]


def test_rule_8_several_packets_in_order_are_legal():
    host = lenient()
    addr = host.grant(2, 0x45 | 0x80, 1000)
    host.write(0xE824, 0x02)
    host.command(b"\xc7" + addr.to_bytes(3, "big") + b"\0\x03\xe8")
    assert host.echo(0xC7) == 0
    for order, size in ((1, 256), (2, 256), (2, 256), (3, 232)):
        host.chip.transfer(bytes((0xF0 | order,)) + bytes((order,)) * size)
        assert host.chip.transfer(bytes(3))[1:] == bytes((0xC0 | order, 0))
    assert host.chip.hif.grants.current.data[:513] == b"\1" * 256 + b"\2" * 257
    assert rules(host) == []


def test_rule_9_unmapped_address():
    host = lenient()
    assert host.read(0x4444) == 0
    host.write(0x4444, 1)
    assert host.read_block(0x90000, 4) == bytes(4)
    assert rules(host) == [9, 9, 9]


@pytest.mark.parametrize(
    "steps",
    [
        [(0xC000C, 0xEF522F61)],
        [(0x108C, 0x13301361), (0xC000C, 0xEF522F61)],
        [(0x14A0, 0x102), (0x108C, 0x13301361), (0xC000C, 0xEF522F61)],
        [(0x108C, 0x13301361), (0x14A0, 0x002), (0xC000C, 0xEF522F61)],
    ],
    ids=["start only", "no configuration", "wrong order", "bit 8 missing"],
)
def test_rule_10_boot_out_of_order(steps):
    host = raw_host()
    host.rom()
    for addr, value in steps:
        host.write(addr, value)
    assert set(rules(host)) == {10}
    assert host.chip.boot.stage.value == "boot ROM waits for the host"


def test_rule_10_start_before_the_mailbox():
    host = raw_host()
    host.chip.config.boot.rom_us = 1e6
    host.power()
    host.crc_off()
    assert host.read(0xC000C) == 0
    host.write(0xC000C, 0xEF522F61)
    assert rules(host) == [10]


def test_rule_10_message_before_the_firmware_runs():
    host = raw_host()
    host.rom()
    host.write(0x1078, 2)
    assert host.read(0x1078) == 2
    assert rules(host) == [10]


def test_rule_11_information_before_the_start():
    host = raw_host()
    host.rom()
    assert host.read(0xC0008) == 0
    assert host.read_block(0x31000, 8) == bytes(8)
    assert rules(host) == [11, 11]


@pytest.mark.parametrize("done", [[], [(0x1408, 0x100)], [(0x1A00, 0x10000)]])
def test_rule_12_interrupt_never_enabled(done):
    host = raw_host()
    host.rom()
    host.start()
    for addr, value in done:
        host.write(addr, value)
    host.send(1, 16, b"\xff\0\0\0")
    assert not host.chip.wait_irq(0.01)
    assert host.read(0x1070) & 1
    assert rules(host) == [12]


@pytest.mark.parametrize("step", ["beyond", "not granted", "commit elsewhere", "read early", "unwritten"])
def test_rule_13_granted_buffers(step):
    host = lenient()
    if step == "read early":
        host.chip.config.hif.grant_us = 1e6
        host.write(0x108C, 1 | 5 << 8 | 8 << 16)
        host.write(0x1078, 2)
        assert host.read(0x150400) == 0
    elif step == "not granted":
        addr = host.grant(1, 5, 8)
        host.write_block(addr, struct.pack("<BBHI", 1, 5, 8, 0))
        host.write(0x106C, addr << 2 | 2)
        host.write_block(addr, bytes(8))
    elif step == "unwritten":
        host.send(2, 0x41, bytes(8))  # declares 16 bytes, as it should be for bind: no
        host.chip.book.clear()
        addr = host.grant(2, 0x41, 20)
        host.write_block(addr, struct.pack("<BBHI", 2, 0x41, 20, 0))
        host.write(0x106C, addr << 2 | 2)
    else:
        addr = host.grant(1, 5, 8)
        host.write_block(addr, struct.pack("<BBHI", 1, 5, 8, 0))
        if step == "beyond":
            host.write_block(addr + 8, bytes(4))
        else:
            host.write(0x106C, (addr + 4) << 2 | 2)
            assert host.event() is None
    assert rules(host) == [13]


@pytest.mark.parametrize(
    "step", ["op", "length", "group", "data bit missing", "data bit too much", "bit 7 in header"]
)
def test_rule_14_header_and_data_bit(step):
    host = lenient()
    gid, op, size = (2, 0x45, 8 + 80 + 4) if step == "data bit missing" else (1, 5, 8)
    bit = 0x80 if step == "data bit too much" else 0
    head = {"op": (1, 3, 8), "length": (1, 5, 12), "group": (2, 5, 8), "bit 7 in header": (1, 5 | 0x80, 8)}
    addr = host.grant(gid, op | bit, size)
    host.write_block(addr, struct.pack("<BBHI", *head.get(step, (gid, op, size)), 0))
    host.write(0x106C, addr << 2 | 2)
    assert rules(host) == [14]
    assert host.event() is None


def test_rule_15_the_address_of_an_earlier_grant():
    host = lenient()
    first = host.grant(1, 5, 8)
    host.write_block(first, struct.pack("<BBHI", 1, 5, 8, 0))
    host.write(0x106C, first << 2 | 2)
    host.event()
    second = host.grant(1, 5, 8)
    assert first != second
    host.write_block(first, struct.pack("<BBHI", 1, 5, 8, 0))
    assert rules(host) == [15]


def test_rule_15_received_messages_alternate_too():
    host = lenient()
    seen = set()
    for _ in range(8):
        host.send(1, 3)
        seen.add(host.read(0x1084))
        host.event()
    assert len(seen) >= 2


def test_rule_16_going_on_without_a_buffer():
    host = lenient()
    host.chip.control({"cmd": "fault", "name": "no-buffer", "count": 1})
    assert host.grant(1, 5, 8) == 0
    host.write_block(0, bytes(8))
    host.write(0x106C, 2)
    assert rules(host) == [16, 16]


@pytest.mark.parametrize(
    "step", ["beyond", "bit 0 kept", "done early", "done twice", "wrong length", "no message"]
)
def test_rule_17_received_messages(step):
    host = lenient()
    if step == "no message":
        assert host.read_block(0x34000, 8) == bytes(8)
        assert rules(host) == [17]
        return
    host.send(1, 3)
    host.send(1, 5)
    value = host.read(0x1070)
    size, addr = value >> 2 & 0xFFF, host.read(0x1084)
    if step == "beyond":
        assert host.read_block(addr, size + 4)[size:] == bytes(4)
    elif step == "bit 0 kept":
        host.write(0x1070, value | 1)
        assert host.read(0x1070) & 1
    elif step == "done early":
        host.write(0x1070, size << 2 | 2)
        assert host.read(0x1084) == addr
    elif step == "wrong length":
        host.write(0x1070, value & ~1)
        host.write(0x1070, 2)
        assert host.read(0x1084) == addr
    else:
        host.event()
        host.event()
        host.write(0x1070, 2)
    assert rules(host) == [17]


def test_rule_17_a_reply_waits_until_rx_done():
    host = lenient()
    host.send(1, 3)
    value = host.read(0x1070)
    host.write(0x1070, value & ~1)
    host.send(1, 5)  # answered at once, but not offered yet
    assert host.read(0x1070) & 1 == 0
    host.write(0x1070, host.read(0x1070) | 2)
    assert host.event()[:2] == (1, 6)


@pytest.mark.parametrize(
    ("firmware", "gid", "op", "size"),
    [
        ("19.4.4", 2, 10, 20),
        ("19.5.2", 2, 10, 24),
        ("19.7.7", 2, 10, 20),
        ("19.6.1", 2, 0x46, 12),
        ("19.7.7", 2, 0x46, 16),
        ("19.5.2", 1, 59, 48),
        ("19.7.7", 1, 40, 104),
        ("19.4.4", 1, 70, 136),
        ("19.7.7", 2, 0x41, 8),
        ("19.7.7", 1, 16, 3),
        ("19.6.1", 1, 99, 4),
    ],
)
def test_rule_18_lengths_of_another_version(firmware, gid, op, size):
    host = lenient(firmware=firmware)
    host.send(gid, op, bytes(size))
    assert rules(host) == [18]
    assert host.event() is None


@pytest.mark.parametrize("firmware", ["19.6.4", "19.7.7"])
def test_rule_18_both_recv_lengths_are_legal_from_19_6_4(firmware):
    host = joined(firmware=firmware)
    host.bind(7, 0, 1)
    for size in (8, 12):
        host.send(2, 0x48, struct.pack("<IbBH", 5, 7, 0, 1) + bytes(size - 8))
        assert host.received(0x48)[0] == -13
    assert rules(host) == []


def bound(host, sock=0, session=1):
    assert host.bind(sock, 0, session) == 0


@pytest.mark.parametrize(
    "step",
    ["bind twice", "listen unbound", "connect twice", "send unconnected", "two recvs", "1401 bytes", "id 11",
     "udp listen", "tcp recvfrom", "stale session", "recv on a listener", "two DNS requests"],
)  # fmt: skip
def test_rule_19_socket_order(step):
    host = joined(firmware="19.6.1")
    if step == "bind twice":
        bound(host)
        assert host.bind(0, 0, 1) == -9
    elif step == "listen unbound":
        assert host.listen(0, 1) == -9
    elif step == "connect twice":
        host.chip.config.ip.nat["10.0.0.9"] = "127.0.0.1"
        import socket

        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            assert host.connect(0, port, 1, "10.0.0.9") == 0
            assert host.connect(0, port, 1) == -9
    elif step == "send unconnected":
        host.post_send(0, b"x", 1)
        assert host.sent()[1] == -9
    elif step == "two recvs":
        bound(host, 7)
        host.recv_command(7, 1)
        host.recv_command(7, 1)
    elif step == "1401 bytes":
        bound(host, 7)
        host.post_send(7, bytes(1401), 1, host.addr("127.0.0.1", 9))
        assert host.sent(0x47)[1] == -6
    elif step == "id 11":
        host.send(2, 0x41, host.addr("0.0.0.0", 0) + struct.pack("<bBH", 11, 0, 1))
    elif step == "udp listen":
        bound(host, 7)
        host.send(2, 0x42, struct.pack("<bBH", 7, 1, 1))
    elif step == "tcp recvfrom":
        host.send(2, 0x48, struct.pack("<IbBH", 5, 0, 0, 1))
    elif step == "stale session":
        bound(host, 7, 5)
        host.send(2, 0x48, struct.pack("<IbBH", 5, 7, 0, 4))
    elif step == "recv on a listener":
        bound(host)
        host.listen(0, 1)
        host.send(2, 0x46, struct.pack("<IbBH", 5, 0, 0, 1))
        assert host.received()[0] == -9
    else:
        host.chip.config.ip.dns_us = 1e6
        host.send(2, 0x4A, b"a\0")
        host.send(2, 0x4A, b"b\0")
    assert rules(host) == [19]


def test_rule_19_no_reply_to_close():
    host = joined()
    bound(host, 7)
    host.close(7, 1)
    host.send(1, 3)
    host.wait_event(1, 4)
    assert host.events == []


def test_rule_20_recvfrom_without_bind():
    host = joined()
    host.send(2, 0x48, struct.pack("<IbBH", 5, 7, 0, 1))
    assert host.received(0x48)[0] == -9
    assert rules(host) == [20]


def test_rule_20_callback_option_is_lost_on_bind():
    host = joined()
    host.send(2, 0x4F, struct.pack("<IbBH", 0, 7, 0, 1))
    bound(host, 7)
    host.post_send(7, b"x", 1, host.addr("127.0.0.1", 9))
    assert host.sent(0x47)[1] == 1


def test_rule_21_end_of_stream_is_told_once():
    import socket

    host = joined()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        assert host.connect(0, listener.getsockname()[1], 1) == 0
        listener.accept()[0].close()
        host.recv_command(0, 1)
        assert host.received()[0] == 0
        host.recv_command(0, 1)
        assert host.received()[0] == -12
        assert host.connect(0, listener.getsockname()[1], 1) == -9  # the id is used until close
        assert rules(host) == [21, 21]
        host.close(0, 1)
        assert host.connect(0, listener.getsockname()[1], 2) == 0


@pytest.mark.parametrize("step", ["scan twice", "scan while joining", "result early", "result beyond"])
def test_rule_22_scanning(step):
    host = lenient()
    host.chip.config.wifi.scan_us = host.chip.config.wifi.join_us = 1e6
    if step == "scan while joining":
        host.new_connect(b"upyperf", b"throughput")
        host.send(1, 16, b"\xff\0\0\0")
    elif step == "result beyond":
        host.chip.config.wifi.scan_us = 0
        host.send(1, 16, b"\xff\0\0\0")
        host.wait_event(1, 17)
        host.send(1, 18, b"\1\0\0\0")
        assert host.event() is None
    else:
        host.send(1, 16, b"\xff\0\0\0")
        if step == "scan twice":
            host.send(1, 16, b"\xff\0\0\0")
        else:
            host.send(1, 18, b"\0\0\0\0")
            assert host.event() is None
    assert rules(host) == [22]
    if step.startswith("scan"):
        assert struct.unpack_from("<Bb", host.wait_event(1, 17)) == (0, -1)


def test_rule_23_connect_while_connecting():
    host = lenient()
    host.chip.config.wifi.join_us = 1e6
    host.new_connect(b"upyperf", b"throughput")
    host.new_connect(b"upyperf", b"throughput")
    assert host.wait_event(1, 44)[:2] == b"\0\5"
    assert rules(host) == [23]


def test_rule_23_sockets_without_an_address():
    host = lenient()
    assert host.connect(0, 9, 1) == -12
    assert rules(host) == [23]


def test_rule_24_clocked_access_to_a_sleeping_chip():
    host = lenient()
    host.chip.config.wifi.sleep_us = 0
    host.send(1, 45, b"\1\0\0\0")
    with pytest.raises(NoAnswer):
        host.read(0x1000)
    assert host.read(0x0F) == 0  # the clockless registers work
    assert set(rules(host)) == {24}


def test_rule_24_no_spi_reset_after_waking():
    host = lenient()
    host.chip.config.wifi.sleep_us = 0
    host.send(1, 45, b"\1\0\0\0")
    host.write(0x0B, 1)
    host.write(0x01, 2)
    with pytest.raises(NoAnswer):
        host.read(0x1000)
    assert host.read(0x1000) == 0x1003A0
    assert rules(host) == [24]


def test_rule_25_global_reset():
    host = lenient()
    with pytest.raises(NoAnswer):
        host.write(0x1400, 0)
    assert host.chip.violations == []
    with pytest.raises(NoAnswer):
        host.read(0x1000)  # CRC is on again
    assert rules(host)[0] == 2
    host.chip.book.clear()
    host.crc = True
    host.spi_reset()
    host.crc_off()
    host.wait(0xC000C, lambda v: v == 0x10ADD09E)
    host.write(0x1078, 2)
    assert rules(host) == [10]  # the firmware is gone
    host.start()
    host.irq_on()
    host.send(1, 3)
    host.wait_event(1, 4)


def test_a_different_network_needs_its_own_key():
    host = lenient(aps=[AccessPoint(ssid=b"open", key=b"", security=1)])
    host.new_connect(b"open", b"a key that is not needed")
    assert host.wait_event(1, 44)[:2] == b"\0\4"


def test_impossible_configurations():
    with pytest.raises(ValueError, match=r"19\.8\.0 is not simulated"):
        Chip(Config(firmware="19.8.0"))
    with pytest.raises(ValueError, match="MAC"):
        Chip(Config(mac="00:11"))
    assert Host(Chip(Config(firmware="19.7.11"))).chip.config.version == (19, 7, 11)
