"""Wi-Fi of the driver against the simulator: joining, failing to join, addresses, access point, the rest."""

from __future__ import annotations

import pytest
from upyperf.virtual.winc.config import AccessPoint

VERSIONS = ["19.4.4", "19.5.2", "19.6.1", "19.7.7"]


@pytest.mark.parametrize("firmware", VERSIONS)
def test_scan_connect_and_information(make_world, firmware):
    aps = [AccessPoint(), AccessPoint(ssid=b"open one", key=b"", security=1, channel=11, rssi=-80)]
    out = make_world(firmware, aps=aps).board(
        """
        n = network.WLAN(network.STA_IF)
        assert not n.active() and n.status() == network.STAT_IDLE and not n.isconnected()
        assert n.ifconfig()[0] == "0.0.0.0"
        n.active(True)
        assert n.active() and not n.isconnected()
        found = n.scan()
        assert [f[0] for f in found] == [b"upyperf", b"open one"], found
        assert found[1][2:5] == (11, -80, 1) and found[0][4] == 2 and len(found[0][1]) == 6
        assert n.config("mac") == b"\\xf8\\xf0\\x05\\x12\\x34\\x56"
        n.connect(SSID, KEY)
        assert n.status() in (network.STAT_CONNECTING, network.STAT_GOT_IP)
        t0 = ms()
        while not n.isconnected() and ms() - t0 < 10000:
            pass
        assert n.status() == network.STAT_GOT_IP
        want = ("192.168.77.20", "255.255.255.0", "192.168.77.1", "192.168.77.1")
        assert n.ifconfig() == want, n.ifconfig()
        assert n.ipconfig("addr4") == ("192.168.77.20", "255.255.255.0")
        assert n.ipconfig("gw4") == "192.168.77.1"
        assert n.ipconfig("dhcp4") and n.ipconfig("has_dhcp4")
        assert n.status("rssi") == n.rssi() == RSSI
        info = n.netinfo()
        assert info[:3] == (RSSI, 2, "upyperf") and info[4] == "192.168.77.20", info
        assert info[3] == "02:aa:bb:cc:dd:01", info
        n.disconnect()
        assert not n.isconnected() and n.ifconfig()[0] == "0.0.0.0"
        n.connect("open one")
        t0 = ms()
        while not n.isconnected() and ms() - t0 < 10000:
            pass
        assert n.isconnected() and n.config("ssid") == "open one"
        print(n.fw_version()[:3])
        n.active(False)
        assert not n.active()
        """
    )
    assert out.strip() == str(tuple(int(p) for p in firmware.split(".")))


@pytest.mark.parametrize("firmware", VERSIONS)
def test_static_address(make_world, echo, firmware):
    make_world(firmware).board(
        f"""
        nic.ifconfig(("192.168.77.99", "255.255.255.0", "192.168.77.1", "192.168.77.2"))
        nic.connect(SSID, KEY)
        assert nic.ifconfig() == ("192.168.77.99", "255.255.255.0", "192.168.77.1", "192.168.77.2")
        assert not nic.ipconfig("dhcp4")
        s = socket.socket()
        s.connect((HOST, {echo.port}))
        s.send(b"x")
        assert s.recv(1) == b"x"
        s.close()
        nic.disconnect()
        nic.ifconfig("dhcp")
        nic.connect(SSID, KEY)
        assert nic.ifconfig()[0] == "192.168.77.20"
        """
    )


@pytest.mark.parametrize("firmware", ["19.5.2", "19.7.7"])
def test_wrong_key_and_unknown_network_then_the_right_one(make_world, firmware):
    make_world(firmware).board(
        """
        n, text, _ = error(nic.connect, SSID, "wrongwrong")
        assert "key" in text, text
        assert nic.status() == network.STAT_WRONG_PASSWORD
        n, text, took = error(nic.connect, SSID, "wrongagain")   # the same failure twice is believed too
        assert nic.status() == network.STAT_WRONG_PASSWORD and took < 5000
        n, text, _ = error(nic.connect, "nowhere", "throughput")
        assert n == 113 and nic.status() == network.STAT_NO_AP_FOUND, (n, text)
        assert not nic.isconnected()
        nic.connect(SSID, KEY)
        assert nic.isconnected()
        """
    )


def test_stale_disconnect_does_not_count(make_world):
    # openmv #3271
    world = make_world("19.6.1", wifi__join_us=300_000.0, wifi__auth_fail_us=100_000.0)
    world.board(
        """
        error(nic.connect, SSID, "wrongwrong")
        sim.control(cmd="fault", name="disconnect-event", error=3)
        nic.start(SSID, KEY)
        sim.control(cmd="fault", name="disconnect-event", error=3)
        sim.control(cmd="fault", name="disconnect-event", error=0)
        nic._m.wifi.wait(10000)
        assert nic.isconnected()
        """
    )


@pytest.mark.parametrize("firmware", VERSIONS)
def test_dhcp_failure(make_world, firmware):
    world = make_world(firmware, ip__dhcp="fail", ip__dhcp_fail_us=100_000.0)
    world.board(
        """
        n, text, took = error(nic.connect, SSID, KEY, timeout_ms=2000)
        assert "DHCP" in text and took < 4000, (n, text, took)
        assert not nic.isconnected()
        """
    )


def test_ssid_and_key_of_full_length_and_any_bytes(make_world):
    ssid = bytes(range(0xE0, 0x100))
    key = bytes(range(0x40, 0x7F))
    assert len(ssid) == 32
    assert len(key) == 63
    for firmware in ("19.5.2", "19.7.7"):
        aps = [AccessPoint(ssid=ssid, key=key), AccessPoint(ssid=b"hex", key=b"0123456789abcdef" * 4)]
        make_world(firmware, aps=aps).board(
            f"""
            nic.connect({ssid!r}, {key!r})
            assert nic.scan()[0][0] == {ssid!r}
            assert nic.config("ssid") == nic.netinfo()[2] == {ssid!r}
            nic.connect(b"hex", "0123456789abcdef" * 4)
            for bad in (
                (b"x" * 33, KEY), ("", KEY), (SSID, "short"), (SSID, "x" * 64), (SSID, "x" * 65),
                (SSID, KEY, 9),
            ):
                n, text, _ = error(nic.start, *bad)
                assert n in (22, 95), (bad, n, text)
            """
        )
    make_world("19.6.1", aps=[AccessPoint(ssid=b"a\0b\xff" * 8)]).board(
        """
        nic.connect(b"a\\0b\\xff" * 8, KEY)
        assert nic.isconnected()
        """
    )


@pytest.mark.parametrize("firmware", ["19.4.4", "19.6.1"])
def test_wep(make_world, firmware):
    make_world(firmware, aps=[AccessPoint(ssid=b"old", key=b"abcde", security=3)]).board(
        """
        nic.connect("old", "abcde", security=nic.WEP)
        assert nic.isconnected()
        """
    )


@pytest.mark.parametrize("firmware", VERSIONS)
def test_access_point(make_world, firmware):
    make_world(firmware).board(
        f"""
        ap = network.WINC(mode=network.WINC.MODE_AP)
        if {firmware!r} == "19.4.4":
            assert error(ap.start_ap, "mine", "secret123")[0] == 95
            ap.start_ap("mine")
        else:
            ap.connect("mine", "secret123", channel=3)
        assert ap.ifconfig()[:2] == ("192.168.1.1", "255.255.255.0")
        assert error(ap.scan)[0] == 16
        ap.wait_for_sta(300)
        ap.disconnect()
        """
    )


def test_ping_names_time_and_settings(make_world):
    world = make_world("19.7.7", ip__hosts={"bench.example": "127.0.0.9"})
    world.board(
        """
        nic.active(True)
        nic.config(hostname="bench", txpower=1, power=1)
        assert nic.config("hostname") == "bench"
        nic.connect(SSID, KEY)
        assert nic.ping("127.0.0.1")[1:] == (1, 0)
        assert nic.ping("bench.example", 3)[1:] == (3, 0)
        assert socket.getaddrinfo("bench.example", 80)[0][4] == ("127.0.0.9", 80)
        t = nic.time()
        assert t[0] >= 2024 and 1 <= t[1] <= 12, t
        nic.config(sntp=False)
        assert nic.config("channel") == 6
        sim.control(cmd="fault", name="dns-failure")
        assert error(socket.getaddrinfo, "bench.example", 80)[0] == -2
        sim.control(cmd="set", key="ip.ping", value="unreachable")
        assert nic.ping("127.0.0.1")[1:] == (0, 1)
        """
    )


def test_power_save(make_world, echo):
    world = make_world("19.6.1", wifi__sleep_us=5000.0)
    world.board(
        f"""
        nic.connect(SSID, KEY)
        nic.config(pm=1)
        s = socket.socket()
        for k in range(5):
            time.sleep(0.02)
            if not k:
                s.connect((HOST, {echo.port}))
            d = pattern(3000, k)
            s.sendall(d)
            time.sleep(0.02)
            assert s.read(3000) == d
        time.sleep(0.02)
        assert nic.rssi() == RSSI
        nic.config(pm=0)
        s.close()
        """
    )


def test_client_of_the_access_point(make_world):
    make_world("19.6.1").board(
        """
        ap = network.WLAN(network.AP_IF)
        ap.config(ssid="mine", key="secret123", channel=3)
        assert ap.connected_sta() == [] and not ap.isconnected()
        sim.control(cmd="sta-join")
        assert ap.wait_for_sta(2000) == ["192.168.1.100"]
        assert ap.isconnected() and ap.status("stations") == ["192.168.1.100"]
        assert ap.ifconfig()[0] == "192.168.1.1"     # the client's lease is not our address
        """
    )


def test_renewed_lease_keeps_sockets(make_world, echo):
    make_world("19.6.1").board(
        f"""
        nic.connect(SSID, KEY)
        s = socket.socket()
        s.connect((HOST, {echo.port}))
        sim.control(cmd="renew")
        assert nic.isconnected()
        s.send(b"abc")
        assert s.recv(3) == b"abc"
        s.close()
        """
    )


def test_socket_options(make_world):
    make_world("19.7.7").board(
        """
        nic.connect(SSID, KEY)
        u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        group = bytes((239, 1, 1, 1, 0, 0, 0, 0))
        assert error(u.setsockopt, socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, group)[0] == 22
        u.bind(("", 0))
        u.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, group)
        u.setsockopt(socket.IPPROTO_IP, socket.IP_DROP_MEMBERSHIP, group)
        u.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        u.setsockopt(socket.SOL_WINC, socket.SO_SEND_REPLY, 1)
        for k in range(20):
            u.sendto(b"x" * 100, (HOST, 9))
        t0 = ms()
        while u._o.out and ms() - t0 < 3000:
            nic.module.stack.service()
        assert u._o.out == 0 and u._o.unacked == 0, u._o.out
        assert error(u.setsockopt, 6, 99, 1)[0] == 95
        u.close()
        """
    )
