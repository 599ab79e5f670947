"""A correct host gets what the fact sheet promises, for every firmware version."""

import socket
import struct
import threading

import pytest
from upyperf.virtual.winc import AccessPoint, Chip, Config
from winc_refhost import Host, booted, ready

VERSIONS = ["19.4.4", "19.5.2", "19.6.1", "19.6.4", "19.7.7"]


@pytest.fixture(params=VERSIONS)
def version(request):
    return request.param


def server():
    """A listening socket on the loopback interface."""
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(5)
    return listener, listener.getsockname()[1]


def accept_while(host, listener):
    """Accept in a thread, since the simulator only moves while the host talks to it."""
    box = []
    thread = threading.Thread(target=lambda: box.append(listener.accept()[0]))
    thread.start()
    return thread, box


def connected(host, sock=0):
    listener, port = server()
    thread, box = accept_while(host, listener)
    session = host.next_session()
    assert host.connect(sock, port, session) == 0
    thread.join(5)
    listener.close()
    box[0].settimeout(5)
    return box[0], session


def test_crc_protected_register_read_then_crc_off():
    host = Host(Chip(Config(strict=True)))
    host.power()
    assert host.read(0x1000) == 0x1003A0
    assert host.read(0xE824) & 0x0C
    host.crc_off()
    assert host.read(0x1000) == 0x1003A0
    assert host.read(0xE824) == 0x52


def test_write_answers_of_the_sheet():
    """Section 2.8, byte for byte, without fillers."""
    config = Config(strict=True, seed=1)
    config.spi.echo_zeros, config.spi.data_zeros = "0", "0"
    host = Host(Chip(config))
    host.rom()
    assert host.chip.transfer(bytes.fromhex("CA00100000000000000000")).hex() == "00000000ca00f3a0031000"
    assert host.chip.transfer(bytes.fromhex("C900108C133013770000")).hex() == "0000000000000000c900"


def test_boot_and_information(version):
    host = booted(firmware=version)
    pointer = host.read(0xC0008)
    macs, revs = struct.unpack("<II", host.read_block(pointer | 0x30000, 8))
    mac = host.read_block((macs & 0xFFFF) | 0x30000, 6)
    assert mac == bytes.fromhex("f8f005123456")
    size = 32 if version == "19.4.4" else 40
    rev = host.read_block((revs & 0xFFFF) | 0x30000, size)
    assert ".".join(map(str, rev[4:7])) == version
    assert struct.unpack_from("<I", rev)[0] == 0x1003A0
    assert host.chip.violations == []


def test_irq_falls_with_a_message_and_rises_when_bit_0_is_cleared():
    host = booted()
    assert host.chip.irqn == 1
    host.send(1, 16, b"\xff\0\0\0")
    assert host.chip.irqn == 0
    value = host.read(0x1070)
    host.write(0x1070, value & ~1)
    assert host.chip.irqn == 1
    host.read_block(host.read(0x1084), value >> 2 & 0xFFF)
    host.write(0x1070, host.read(0x1070) | 2)
    assert host.event() is None


def test_scan(version):
    aps = [
        AccessPoint(ssid=b"one", rssi=-40),
        AccessPoint(ssid=b"\xff\x00\x80" * 10 + b"ab", key=b"", security=1),
    ]
    host = booted(firmware=version, aps=aps)
    host.send(1, 16, b"\xff\0\0\0")
    assert host.wait_event(1, 17)[:2] == b"\x02\x00"
    host.send(1, 18, b"\1\0\0\0")
    result = host.wait_event(1, 19)
    assert len(result) == 44
    assert result[0] == 1
    assert result[2] == 1
    assert result[10:42] == aps[1].ssid


def test_join_dhcp_and_information(version):
    host = ready(firmware=version)
    host.send(1, 5)
    info = host.wait_event(1, 6)
    assert len(info) == 48
    assert info[:33].rstrip(b"\0") == b"upyperf"
    assert info[34:38] == bytes((192, 168, 77, 20))
    assert struct.unpack_from("b", info, 44)[0] == -60
    assert (info[45] == 6) == (host.chip.config.version >= (19, 6, 0))
    host.send(1, 3)
    assert struct.unpack_from("b", host.wait_event(1, 4))[0] == -60


@pytest.mark.parametrize(
    ("firmware", "size", "mask_at"), [("19.4.4", 16, 12), ("19.5.2", 20, 12), ("19.7.7", 24, 16)]
)
def test_address_structure_by_version(firmware, size, mask_at):
    host = booted(firmware=firmware)
    lease = host.join()
    assert len(lease) == size
    assert lease[mask_at : mask_at + 4] == b"\xff\xff\xff\0"


def test_old_connect_is_understood_by_new_firmware():
    host = booted(firmware="19.7.7")
    host.old_connect(b"upyperf", b"throughput")
    assert host.wait_event(1, 44)[:2] == b"\1\0"


def test_psk_as_64_hex_digits():
    import hashlib

    raw = hashlib.pbkdf2_hmac("sha1", b"throughput", b"upyperf", 4096, 32)
    host = booted()
    host.join(key=raw.hex().encode())


@pytest.mark.parametrize(
    ("ssid", "key", "error"), [(b"upyperf", b"wrong password", 3), (b"elsewhere", b"throughput", 1)]
)
def test_join_failures(ssid, key, error):
    host = booted()
    host.new_connect(ssid, key)
    assert host.wait_event(1, 44)[:2] == bytes((0, error))


def test_full_length_ssid_and_key_of_any_bytes():
    ssid, key = bytes(range(224, 256)), bytes(range(128, 191))
    host = booted(aps=[AccessPoint(ssid=ssid, key=key)])
    host.join(ssid, key)


def test_static_address():
    host = booted(firmware="19.7.7")
    host.send(2, 12)
    host.new_connect(b"upyperf", b"throughput")
    host.wait_event(1, 44)
    host.send(2, 10, bytes((10, 0, 0, 5)) + bytes((10, 0, 0, 1)) * 3 + b"\xff\xff\xff\0" + bytes(4))
    host.send(1, 5)
    assert host.wait_event(1, 6)[34:38] == bytes((10, 0, 0, 5))
    assert host.events == []


def test_dhcp_failure_event():
    host = booted(firmware="19.6.1")
    host.chip.config.ip.dhcp = "fail"
    host.chip.config.ip.dhcp_fail_us = 0
    host.new_connect(b"upyperf", b"throughput")
    host.wait_event(1, 44)
    assert host.wait_event(1, 61) == b""


def test_tcp_client_both_ways(version):
    host = ready(firmware=version)
    peer, session = connected(host)
    data = bytes(range(256)) * 5 + b"end"
    host.post_send(0, data, session)
    assert host.sent() == (0, len(data), session)
    assert peer.recv(4000) == data
    peer.sendall(b"x" * 3000)
    got = b""
    while len(got) < 3000:
        host.recv_command(0, session)
        status, part, echoed = host.received()
        assert status > 0
        assert echoed == session
        got += part
    assert got == b"x" * 3000
    peer.close()
    host.recv_command(0, session)
    assert host.received()[0] == 0
    host.close(0, session)
    assert host.chip.violations == []


def test_short_receive_keeps_the_rest_from_19_6_4():
    host = ready(firmware="19.6.4")
    peer, session = connected(host)
    peer.sendall(b"abcdefghij")
    host.recv_command(0, session, size=4)
    assert host.received()[1] == b"abcd"
    host.recv_command(0, session, size=100)
    assert host.received()[1] == b"efghij"


def test_receive_timeout_keeps_the_socket():
    host = ready()
    peer, session = connected(host)
    host.recv_command(0, session, timeout_ms=20)
    assert host.received()[0] == -13
    host.recv_command(0, session)
    peer.sendall(b"late")
    assert host.received()[1] == b"late"


def test_refused_connection_and_its_19_7_details():
    for firmware, tail in (("19.6.1", b"\0\0"), ("19.7.7", b"\x01\xf4")):
        host = ready(firmware=firmware)
        listener, port = server()
        listener.close()
        host.send(2, 0x44, host.addr("127.0.0.1", port) + struct.pack("<bBH", 0, 0, 1))
        reply = host.wait_event(2, 0x44)
        assert struct.unpack("<bb", reply[:2]) == (0, -12)
        assert reply[2:] == tail


def test_tcp_server():
    host = ready()
    listening, session = 1, host.next_session()
    assert host.bind(listening, 0, session) == 0
    port = host.chip.sockets.socks[1].listener.port
    assert host.listen(listening, session) == 0
    peer = socket.create_connection(("127.0.0.1", port), 5)
    event = host.wait_event(2, 0x43)
    assert len(event) == 12
    assert event[8] == 1
    sock = event[9]
    assert sock != 1
    new = host.next_session()
    host.recv_command(sock, new)  # the chip sees the new session for the first time here
    peer.sendall(b"hello")
    assert host.received() == (5, b"hello", new)
    host.post_send(sock, b"back", new)
    assert host.sent() == (sock, 4, new)
    assert peer.recv(10) == b"back"
    host.close(sock, new)
    assert peer.recv(10) == b""


def test_peer_reset_is_aborted():
    host = ready()
    peer, session = connected(host)
    host.recv_command(0, session)
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()
    assert host.received()[0] == -12
    host.post_send(0, b"into the void", session)
    assert host.sent()[1] == -12


def test_udp_both_ways(version):
    host = ready(firmware=version)
    peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    peer.bind(("127.0.0.1", 0))
    peer.settimeout(5)
    session = host.next_session()
    assert host.bind(7, 0, session) == 0
    host.post_send(7, b"question", session, host.addr("127.0.0.1", peer.getsockname()[1]))
    assert host.sent(0x47) == (7, 8, session)
    data, where = peer.recvfrom(100)
    assert data == b"question"
    host.recv_command(7, session)
    peer.sendto(b"answer" * 100, where)
    assert host.received(0x48) == (600, b"answer" * 100, session)


def test_udp_callback_option():
    host = ready()
    session = host.next_session()
    host.bind(7, 0, session)
    host.send(2, 0x4F, struct.pack("<IbBH", 0, 7, 0, session))
    host.post_send(7, b"quiet", session, host.addr("127.0.0.1", 9))
    host.send(1, 3)
    host.wait_event(1, 4)
    assert host.events == []


def test_dns_and_ping():
    host = ready()
    host.chip.config.ip.hosts = {"echo.test": "10.1.2.3"}
    host.send(2, 0x4A, b"echo.test\0")
    reply = host.wait_event(2, 0x4A)
    assert reply[:64].rstrip(b"\0") == b"echo.test"
    assert reply[64:] == bytes((10, 1, 2, 3))
    host.send(2, 0x4A, b"localhost\0")
    assert host.wait_event(2, 0x4A)[64:] == bytes((127, 0, 0, 1))
    host.chip.config.ip.dns_fail = True
    host.send(2, 0x4A, b"echo.test\0")
    assert host.wait_event(2, 0x4A)[64:] == bytes(4)
    host.send(2, 0x52, bytes((10, 1, 2, 3)) + struct.pack("<IHBB", 1, 1, 0, 0))
    reply = host.wait_event(2, 0x52)
    assert struct.unpack_from("<IIHHB", reply, 4) == (1, 2, 1, 0, 0)


def test_access_point_mode(version):
    host = booted(firmware=version)
    size = {"19.4.4": 72, "19.5.2": 136}.get(version, 148)
    config = (
        b"bench".ljust(33, b"\0") + bytes((1, 0, 0)) + bytes(27) + bytes((1, 0)) + bytes((192, 168, 5, 1))
    )
    if size == 148:
        host.send(1, 70 | 0x80, b"", config.ljust(size, b"\0"), 0)
    else:
        host.send(1, 70, config.ljust(size, b"\0"))
    assert host.chip.control({"cmd": "sta-join"})["ok"]
    assert host.wait_event(1, 50)[:4] == bytes((192, 168, 5, 100))


def test_buffers_run_out_and_come_back():
    host = ready()
    host.chip.config.sockets.idle_ack_us = 50_000
    peer, session = connected(host)
    for _ in range(host.chip.config.hif.data_buffers):
        host.post_send(0, b"z" * 100, session)
    assert host.grant(2, 0x45 | 0x80, 8 + 80 + 100) == 0
    for _ in range(host.chip.config.hif.data_buffers):
        assert host.sent()[1] == 100
    assert host.grant(2, 0x45 | 0x80, 8 + 80 + 100) != 0
    assert len(peer.recv(10_000)) == 800


def test_power_save_wake_and_sleep():
    host = booted()
    host.chip.config.wifi.sleep_us = 0
    host.send(1, 45, b"\1\0\0\0")
    for _ in range(2):
        host.write(0x0B, 1)
        host.write(0x01, 2)
        host.wait(0x0F, lambda v: v & 4)
        host.spi_reset()
        assert host.read(0x1000) == 0x1003A0
        host.write(0x01, 0)
        host.write(0x0B, 0)
    assert host.chip.violations == []


def test_restart_by_pins_forgets_everything():
    host = ready()
    host.boot()
    host.send(1, 5)
    assert host.wait_event(1, 6) == bytes(48)


def test_rx_done_without_reading_the_register_again():
    """A shortcut that the sheet marks [?]: accepted when the value is right."""
    host = booted()
    host.send(1, 3)
    value = host.read(0x1070)
    host.write(0x1070, value & ~1)
    host.write(0x1070, value & ~1 | 2)
    assert host.read(0x1070) == 0


def test_ethernet_mode_refuses_sockets():
    host = Host(Chip(Config()))
    host.rom()
    host.write(0x108C, 0x13301361)
    host.write(0x14A0, 0x182)
    host.write(0xC000C, 0xEF522F61)
    host.wait(0x108C, lambda v: v == 0x02532636)
    host.write(0x108C, 0)
    host.send(2, 0x41, host.addr("0.0.0.0", 0) + struct.pack("<bBH", 0, 0, 1))
    assert host.event() is None
    assert [v.rule for v in host.chip.violations] == [19]


def test_hidden_networks_are_joined_but_not_found():
    host = booted(aps=[AccessPoint(ssid=b"quiet", hidden=True)])
    host.send(1, 16, b"\xff\0\0\0")
    assert host.wait_event(1, 17)[0] == 0
    host.join(b"quiet")


def test_the_strongest_of_two_access_points_of_one_name():
    aps = [AccessPoint(rssi=-80, bssid=b"\2\0\0\0\0\1"), AccessPoint(rssi=-40, bssid=b"\2\0\0\0\0\2")]
    host = ready(aps=aps)
    host.send(1, 5)
    assert host.wait_event(1, 6)[38:44] == b"\2\0\0\0\0\2"


def test_session_0_is_echoed():
    """A small driver of the field sends 0 everywhere."""
    host = ready()
    assert host.bind(7, 0, 0) == 0
    host.post_send(7, b"x", 0, host.addr("127.0.0.1", 9))
    assert host.sent(0x47) == (7, 1, 0)


def test_name_translation_reaches_another_address():
    host = ready()
    host.chip.config.ip.nat = {"10.9.8.7": "127.0.0.1"}
    listener, port = server()
    thread, box = accept_while(host, listener)
    assert host.connect(0, port, 1, "10.9.8.7") == 0
    thread.join(5)
    listener.close()
    box[0].close()


def test_time_is_known_once_joined():
    host = ready()
    host.send(1, 26)
    year = struct.unpack_from("<H", host.wait_event(1, 27))[0]
    assert year >= 2024


def test_a_port_in_use_is_reported():
    taken, port = server()
    host = ready()
    assert host.bind(1, port, 2) == -2
    taken.close()


def test_another_join_leaves_the_first_network():
    host = ready(aps=[AccessPoint(), AccessPoint(ssid=b"other", key=b"", security=1)])
    host.new_connect(b"other", b"")
    assert host.wait_event(1, 44)[:2] == b"\0\0"
    assert host.wait_event(1, 44)[:2] == b"\1\0"
    host.wait_event(1, 50)
