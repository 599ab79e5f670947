"""Each fault does on the wire or in the chip what its name says."""

import re
import socket
import time

import pytest
from upyperf.virtual.winc import Config, load
from upyperf.virtual.winc.config import set_value
from winc_refhost import NoAnswer, booted, raw_host, ready


def arm(host, name, **options):
    answer = host.chip.control({"cmd": "fault", "name": name, **options})
    assert answer == {"ok": True}


def joined(**settings):
    return ready(strict=False, **settings)


def tcp(host):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        assert host.connect(0, listener.getsockname()[1], 1) == 0
        return listener.accept()[0]


def test_every_fault_is_known_and_listed():
    names = booted().chip.control({"cmd": "faults"})["names"]
    assert names == sorted(names)
    for name in (
        "drop",
        "flip",
        "stuck",
        "boot-timeout",
        "lost-edge",
        "no-buffer",
        "event-flood",
        "stale-replies",
    ):
        assert name in names


@pytest.mark.parametrize(
    ("request_", "text"),
    [
        ({"name": "gremlin"}, "no fault 'gremlin'"),
        ({"name": "flip", "wher": "miso"}, "no option 'wher'"),
        ({"name": "flip", "where": "both"}, "not mosi or miso"),
        ({"name": "boot-timeout", "stage": "lunch"}, "not efuse, rom or firmware"),
        ({"name": "drop", "count": "many"}, "invalid literal"),
    ],
)
def test_bad_requests(request_, text):
    answer = booted().chip.control({"cmd": "fault", **request_})
    assert not answer["ok"]
    assert text in answer["error"]


@pytest.mark.parametrize("value", [0x00, 0xFF])
def test_stuck_miso(value):
    host = booted(strict=False)
    arm(host, "stuck", value=value)
    assert host.chip.transfer(bytes.fromhex("CA001000") + bytes(20)) == bytes((value,)) * 24
    host.chip.control({"cmd": "clear"})
    assert host.read(0x1000) == 0x1003A0


@pytest.mark.parametrize("where", ["mosi", "miso"])
def test_flipped_bits_and_recovery_by_reset(where):
    host = booted(strict=False, seed=2)
    arm(host, "flip", where=where, count=1, after=0 if where == "mosi" else 8)
    miso = host.chip.transfer(bytes.fromhex("CA001000") + bytes(20))
    assert bytes.fromhex("f3a0031000") not in miso
    host.spi_reset()
    assert host.read(0x1000) == 0x1003A0


def test_dropped_bytes_in_a_block_and_recovery_by_reset():
    host = booted(strict=False)
    addr = host.grant(1, 5, 8)
    arm(host, "drop", count=1, after=12)
    with pytest.raises(NoAnswer):
        host.write_block(addr, b"\1\5\x08\0\0\0\0\0")
    for _ in range(3):
        host.spi_reset()
    host.write_block(addr, b"\1\5\x08\0\0\0\0\0")
    host.write(0x106C, addr << 2 | 2)
    assert host.wait_event(1, 6)


def test_a_rate_of_errors():
    host = booted(strict=False, seed=3)
    arm(host, "flip", where="miso", count=-1, rate=0.05)
    seen = [host.chip.transfer(bytes(100)) for _ in range(10)]
    assert 20 <= sum(byte != 0 for row in seen for byte in row) <= 90


@pytest.mark.parametrize("stage", ["efuse", "rom", "firmware"])
def test_boot_time_out(stage):
    host = raw_host()
    arm(host, "boot-timeout", stage=stage)
    with pytest.raises(NoAnswer, match={"efuse": "0x1014", "rom": "0xC000C", "firmware": "0x108C"}[stage]):
        host.boot()
    host.chip.control({"cmd": "clear"})
    host.boot()


def test_lost_and_spurious_edges():
    host = booted()
    edges = []
    host.chip.edge_listeners.append(lambda: edges.append(host.chip.hif.irqn))
    arm(host, "lost-edge")
    host.send(1, 3)
    assert (edges, host.chip.irqn) == ([], 0)  # the level tells, the edge was missed
    host.event()
    arm(host, "spurious-irq")
    assert edges == [1]
    assert host.event() is None
    arm(host, "irq-stuck")
    host.send(1, 3)
    assert host.chip.irqn == 1
    assert host.read(0x1070) & 1


def test_no_buffer_in_a_burst():
    host = booted()
    arm(host, "no-buffer", count=3)
    assert [host.grant(1, 5, 8) for _ in range(3)] == [0, 0, 0]
    assert host.grant(1, 5, 8)


def test_event_flood_before_a_reply():
    host = booted()
    arm(host, "event-flood", count=30, before_reply=True)
    host.send(1, 5)
    host.wait_event(1, 6)
    assert len(host.events) == 30
    arm(host, "event-flood", count=5)
    assert [host.event()[:2] for _ in range(5)] == [(1, 27), (1, 4)] * 2 + [(1, 27)]


def test_malformed_events():
    host = booted()
    arm(host, "bad-header")
    host.send(1, 3)
    assert host.event() is not None
    arm(host, "zero-length")
    host.send(1, 3)
    value = host.read(0x1070)
    assert value == 1
    host.write(0x1070, 0)
    host.write(0x1070, 2)
    assert host.event() is None


def test_stale_replies_carry_another_session():
    host = joined()
    peer = tcp(host)
    arm(host, "stale-replies", count=2)
    host.post_send(0, b"data", 1)
    assert host.sent()[2] != 1
    assert host.sent() == (0, 4, 1)
    host.recv_command(0, 1)
    peer.sendall(b"real")
    assert host.received()[2] != 1
    assert host.received() == (4, b"real", 1)


def test_stale_disconnect_before_a_good_join():
    host = booted()
    arm(host, "stale-disconnect")
    host.new_connect(b"upyperf", b"throughput")
    assert host.wait_event(1, 44)[:2] == b"\0\0"
    assert host.wait_event(1, 44)[:2] == b"\1\0"


def test_join_fails_once():
    host = booted()
    arm(host, "join-fails")
    host.new_connect(b"upyperf", b"throughput")
    assert host.wait_event(1, 44)[:2] == b"\0\2"
    host.join()


def test_dhcp_and_dns_failure():
    host = booted()
    arm(host, "dhcp-failure")
    host.chip.config.ip.dhcp_fail_us = 0
    host.new_connect(b"upyperf", b"throughput")
    assert host.wait_event(1, 61) == b""
    host = ready()
    arm(host, "dns-failure")
    host.send(2, 0x4A, b"localhost\0")
    assert host.wait_event(2, 0x4A)[64:] == bytes(4)


@pytest.mark.parametrize("report", [False, True])
def test_ap_lost_in_the_middle_of_a_send(report):
    host = joined()
    peer = tcp(host)
    host.recv_command(0, 1, timeout_ms=0xFFFFFFFF)
    arm(host, "ap-lost", detect_ms=20, report=report, back_ms=0)
    host.chip.poll()
    host.post_send(0, b"into nowhere", 1)
    assert host.wait_event(1, 44)[:2] == b"\0\0"
    assert [e for e in host.events if e[:2] == (2, 0x45)] == []  # no reply to the send
    assert len([e for e in host.events if e[:2] == (2, 0x46)]) == (1 if report else 0)
    assert host.chip.hif.free_buffers()["data"] == host.chip.config.hif.data_buffers
    host.close(0, 1)
    time.sleep(0.01)
    host.join()
    peer.close()
    tcp(host).close()


def test_slow_acknowledgement():
    host = joined()
    peer = tcp(host)
    arm(host, "slow-ack", ms=60)
    begin = time.monotonic()
    host.post_send(0, b"data", 1)
    host.sent()
    assert time.monotonic() - begin >= 0.06
    assert peer.recv(10) == b"data"


def test_a_peer_that_does_not_read_stops_the_acknowledgements():
    host = joined()
    host.chip.config.sockets.unacked = 0
    peer = tcp(host)
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sent = 0
    while host.chip.hif.free_buffers()["data"]:
        host.post_send(0, bytes(1400), 1)
        sent += 1
        while host.event() is not None:
            pass
        assert sent < 20_000
    peer.setblocking(True)
    got = 0
    while got < sent * 1400:
        got += len(peer.recv(65_536))
        host.chip.poll()
    deadline = time.monotonic() + 5
    while host.chip.hif.free_buffers()["data"] < host.chip.config.hif.data_buffers:
        host.event()
        assert time.monotonic() < deadline


def test_all_ids_used_keeps_a_connection_waiting():
    host = joined()
    host.bind(0, 0, 1)
    port = host.chip.sockets.socks[0].listener.port
    host.listen(0, 1)
    peers = [socket.create_connection(("127.0.0.1", port), 5) for _ in range(6)]
    ids = [host.wait_event(2, 0x43)[9] for _ in peers]
    assert sorted(ids) == [1, 2, 3, 4, 5, 6]
    peers.append(socket.create_connection(("127.0.0.1", port), 5))
    with pytest.raises(NoAnswer):
        host.wait_event(2, 0x43, timeout=0.1)
    host.close(3, 9)
    assert host.wait_event(2, 0x43)[9] == 3
    for peer in peers:
        peer.close()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("profile = 'lunar'", "no profile 'lunar'"),
        ("[air]\nrssi = 'strong'", "air.rssi: 'strong' is not a whole number"),
        ("[air]\nrsi = 1", "no setting 'air.rsi'"),
        ("firmware = '20.1.1'", "not simulated"),
        ("[[aps]]\nssid = ''", "SSID of 0 bytes"),
        ("[[aps]]\ncolour = 'red'", "no 'colour'"),
        ("[air", "Expected ']'"),
    ],
)
def test_configuration_files(tmp_path, text, message):
    path = tmp_path / "winc.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        load("instant", path)
    assert "\n" not in str(error.value)


def test_a_good_configuration_file(tmp_path):
    path = tmp_path / "winc.toml"
    path.write_text(
        'profile = "field"\nfirmware = "19.7.7"\n[air]\nrssi = -70\n[ip.hosts]\n"a.test" = "10.0.0.1"\n'
        '[[aps]]\nssid_hex = "ff00"\nkey = ""\nbssid = "02:00:00:00:00:09"\n'
    )
    config = load("instant", path, {"spi.host": "dma"})
    assert (config.firmware, config.air.rssi, config.air.enabled, config.spi.host) == (
        "19.7.7",
        -70,
        True,
        "dma",
    )
    assert (config.aps[0].ssid, config.aps[0].security) == (b"\xff\x00", 1)
    assert config.ip.hosts == {"a.test": "10.0.0.1"}


def test_values_of_the_wrong_kind():
    for key, value in (("air.enabled", "perhaps"), ("hif", 1), ("ip.hosts", 3), ("seed", "x")):
        with pytest.raises(ValueError, match=key.split(".")[0]):
            set_value(Config(), key, value)


def test_every_setting_is_documented():
    from dataclasses import fields, is_dataclass
    from pathlib import Path

    text = (Path(__file__).resolve().parents[3] / "docs" / "winc-sim.md").read_text(encoding="utf-8")
    config = Config()
    keys = []
    for one in fields(config):
        value = getattr(config, one.name)
        keys += [f"{one.name}.{f.name}" for f in fields(value)] if is_dataclass(value) else [one.name]
    assert [key for key in keys if f"`{key}`" not in text] == []
    names = booted().chip.control({"cmd": "faults"})["names"]
    assert [name for name in names if f"`{name}`" not in text] == []
