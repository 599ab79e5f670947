"""Bring-up, credentials and the choice of addresses; on the unix board with a fake network module."""

import ast
import errno
import os
import stat
from types import SimpleNamespace

import pytest
from upyperf import boards, link, network, virtual
from upyperf.boards.find import port_of
from upyperf.boards.model import Board
from upyperf.errors import UpyperfError
from upyperf.network import bringup, reach, wifi
from upyperf.network.interfaces import Interface
from upyperf.tomlmodel import load

LAN = Interface("eth0", "192.168.1.10", 24, True)
WLAN = Interface("wlan0", "10.0.0.5", 8, True)
BARE = Interface("eth1", None, None, True)
LOOP = Interface("lo", "127.0.0.1", 8, True)
PASSWORDS = ["p&ä\"'\n漢 ", "&+@% $(x) `y`", "x" * 63, "0123456789abcdef" * 4, "back\\slash\\n"]

FAKE = """
import sys
class _Nic:
    log = []
    def __init__(self, *args):
        self.ip = "0.0.0.0"
        self.polls = 0
        self.given = None
    def active(self, on=None):
        _Nic.log.append(("active", on))
    def status(self, what=None):
        self.polls += 1
        return {status}
    def isconnected(self):
        return bool({connected})
    def ifconfig(self, value=None):
        if value == "dhcp":
            {dhcp}
        elif value is not None:
            _Nic.log.append(("static", value))
            self.ip = value[0]
        return (self.ip, "255.255.255.0", "192.168.1.1", "192.168.1.1")
    def connect(self, ssid, key):
        self.given = (ssid, key)
        _Nic.log.append(("connect", ssid, key))
        {connect}
class network:
    LAN = _Nic
    WLAN = _Nic
    STA_IF = 0
    STAT_WRONG_PASSWORD = -3
    STAT_NO_AP_FOUND = -2
sys.modules["network"] = network
"""


def board(kind, **nic):
    fields = {
        "name": "x", "title": "X", "kind": "hardware", "tested": "none", "port": "stm32",
        "layers": ["socket"], "nic": {"kind": kind, "timeout_s": 2, **nic},
    }  # fmt: skip
    return load(Board, fields, "x")


@pytest.fixture(scope="module")
def line(tmp_path_factory):
    folder = tmp_path_factory.mktemp("board")
    with (
        virtual.start("unix") as running,
        link.connect(running.device, log=folder / "serial.log") as connected,
    ):
        connected.log_path = folder / "serial.log"
        yield connected


def fake(line, status="3", connected="True", dhcp="self.ip = '192.168.1.77'", connect="self.ip = '10.0.0.9'"):
    line.exec(FAKE.format(status=status, connected=connected, dhcp=dhcp, connect=connect))


def test_lan_by_dhcp(line):
    fake(line)
    up = network.bring_up(line, board("lan"))
    assert (up.address, up.gateway, up.mode) == ("192.168.1.77", "192.168.1.1", "dhcp")


def test_static_address(line):
    fake(line)
    up = network.bring_up(line, board("lan"), static=network.Static.parse("192.168.7.2/24"))
    assert (up.address, up.mode) == ("192.168.7.2", "static")
    assert line.eval("network.LAN.log[-1]") == (
        "static",
        ("192.168.7.2", "255.255.255.0", "0.0.0.0", "0.0.0.0"),
    )


def test_link_that_comes_late(line):
    fake(line, status="0 if self.polls < 4 else 3")
    said = []
    assert network.bring_up(line, board("lan"), on_progress=said.append).address == "192.168.1.77"
    assert any("status 0" in text for text in said)


def test_no_link_is_not_no_dhcp(line):
    """Field case B1: the cause is named, in one line."""
    fake(line, status="0")
    with pytest.raises(UpyperfError, match="no link within 2 s; is the cable in") as caught:
        network.bring_up(line, board("lan"))
    assert (caught.value.kind, caught.value.exit_code) == ("network-down", 5)
    fake(line, dhcp="raise OSError('timeout waiting for DHCP to get IP address')")
    with pytest.raises(UpyperfError, match="no DHCP answer within 2 s") as caught:
        network.bring_up(line, board("lan"))
    assert "--ip 192.168.7.2/24" in caught.value.text
    assert "\n" not in caught.value.text


def test_waiting_time_is_bounded_and_can_be_set(line):
    """Field case B3."""
    import time

    fake(line, status="0")
    start = time.monotonic()
    with pytest.raises(UpyperfError, match="within 1 s"):
        network.bring_up(line, board("lan"), timeout_s=1)
    assert time.monotonic() - start < 10


def test_firmware_without_the_interface(line):
    line.exec("import sys\nsys.modules['network'] = type('network', (), {})")
    with pytest.raises(UpyperfError, match="AttributeError"):
        network.bring_up(line, board("lan"))


@pytest.mark.parametrize("key", PASSWORDS)
def test_any_password_arrives_and_none_is_logged(line, key):
    """Field case B4."""
    fake(line)
    fake(line, connected="self.given")
    line.secret("net ä")
    line.secret(key)
    up = network.bring_up(line, board("wlan"), network.WifiCredentials("net ä", key))
    assert up.address == "10.0.0.9"
    assert line.eval("network.WLAN.log[-1]") == ("connect", "net ä", key)
    log = line.log_path.read_text()
    for form in (key, repr(key)[1:-1], ascii(key)[1:-1]):
        assert form not in log


@pytest.mark.parametrize(
    ("status", "text"),
    [("-3", "the Wi-Fi key is wrong"), ("-2", "no Wi-Fi of that name"), ("1", "no connection within 2 s")],
)
def test_wifi_failures_are_told_apart(line, status, text):
    fake(line, status=status, connected="False", connect="pass")
    with pytest.raises(UpyperfError, match=text):
        network.bring_up(line, board("wlan"), network.WifiCredentials("net", "secret-key"))


def test_program_holds_credentials_only_as_literals():
    wlan = network.WifiCredentials("net", "p&ä\"'\n漢 ")
    code = bringup.program(board("wlan"), wlan, None, 5)
    assert code.isascii()
    call = next(node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call) and
                getattr(node.func, "id", "") == "_up")  # fmt: skip
    assert ast.literal_eval(call.args[3]) == "p&ä\"'\n漢 "
    assert "secret" not in repr(network.WifiCredentials("net", "secret"))


def test_credentials_from_the_environment_win():
    env = {wifi.SSID: "net", wifi.KEY: "12345678"}
    assert wifi.credentials(env) == network.WifiCredentials("net", "12345678")


def test_private_file(tmp_path):
    path = tmp_path / "wifi.toml"
    path.write_text('ssid = "net"\nkey = "geheim&ß1"\n')
    path.chmod(0o600)
    assert wifi.credentials({wifi.FILE: str(path)}).key == "geheim&ß1"
    path.chmod(stat.S_IRUSR | stat.S_IRGRP)
    with pytest.raises(UpyperfError, match="chmod 600") as caught:
        wifi.credentials({wifi.FILE: str(path)})
    assert "geheim" not in caught.value.text
    path.chmod(0o600)
    path.write_text('ssid = "net"\nkey = "geheim\n')
    with pytest.raises(UpyperfError, match="is not TOML") as caught:
        wifi.credentials({wifi.FILE: str(path)})
    assert "geheim" not in caught.value.text


@pytest.mark.parametrize("key", ["short", "x" * 64, "é" * 40])
def test_impossible_keys(key):
    with pytest.raises(UpyperfError, match="8 to 63 characters") as caught:
        wifi.credentials({wifi.SSID: "n", wifi.KEY: key})
    assert key not in caught.value.text


def test_no_credentials_says_where_to_put_them(tmp_path):
    with pytest.raises(UpyperfError, match="UPYPERF_WIFI_SSID and UPYPERF_WIFI_KEY"):
        wifi.credentials({wifi.FILE: str(tmp_path / "none")})


def test_address_in_the_boards_network_is_chosen():
    choice = network.choose("192.168.1.77", [LOOP, WLAN, LAN])
    assert (choice.address, choice.interface) == ("192.168.1.10", "eth0")
    inner = Interface("br0", "10.0.0.6", 24, True)
    assert network.choose("10.0.0.9", [WLAN, inner]).interface == "br0"


def test_wanted_address_or_interface():
    assert network.choose("192.168.1.77", [LAN, WLAN], "wlan0").address == "10.0.0.5"
    with pytest.raises(UpyperfError, match=r"eth7 is no address .* has 192\.168\.1\.10 \(eth0\)"):
        network.choose("192.168.1.77", [LAN], "eth7")


def test_direct_cable_without_an_address_is_explained():
    with pytest.raises(UpyperfError, match="sudo ip address add 192.168.7.1/24 dev eth1") as caught:
        network.choose("192.168.7.2", [LOOP, BARE])
    assert caught.value.kind == "network-down"


@pytest.mark.parametrize("text", ["192.168.7.2", "192.168.7.300/24", "x/24", "192.168.7.2/40"])
def test_static_address_that_is_none(text):
    with pytest.raises(UpyperfError, match="write it like"):
        network.Static.parse(text)


def test_probe_measures_the_round_trip(line):
    line.soft_reset()
    rtt = network.probe(line, "127.0.0.1", "127.0.0.1")
    assert 0 < rtt < 1e6


@pytest.mark.parametrize(
    ("number", "gateway", "kind", "text"),
    [
        (errno.ECONNREFUSED, None, "refused", "is that address this PC's"),
        (errno.EHOSTUNREACH, None, "unreachable", "no route"),
        (errno.ETIMEDOUT, True, "timeout", "the gateway answers, so a firewall"),
        (errno.ETIMEDOUT, False, "timeout", "the gateway does not answer either"),
        (errno.ETIMEDOUT, None, "timeout", "firewall"),
    ],
)
def test_probe_failures_have_three_causes(number, gateway, kind, text):
    error = reach.failure({"errno": number, "text": "x"}, "192.0.2.1", lambda: gateway)
    assert error.kind == kind
    assert text in error.text


def usb_port(device, vid=0xF055, pid=0x9800, serial="123", product="Pyboard"):
    return SimpleNamespace(
        device=device, vid=vid, pid=pid, serial_number=serial, product=product, description=product
    )


def test_port_of_a_hardware_board():
    chosen = board("lan").model_copy(update={"serial": load_serial()})
    assert port_of(chosen, [usb_port("/dev/ttyACM0"), usb_port("/dev/ttyUSB0", 1, 2)]) == "/dev/ttyACM0"
    with pytest.raises(UpyperfError, match="2 ports look like x") as caught:
        port_of(chosen, [usb_port("/dev/ttyACM0"), usb_port("/dev/ttyACM1")])
    assert caught.value.exit_code == 3


def test_board_that_is_not_connected_says_what_was_looked_for():
    chosen = board("lan").model_copy(update={"serial": load_serial(), "twin": "unix"})
    with pytest.raises(UpyperfError, match="looked for USB f055:9800") as caught:
        port_of(chosen, [usb_port("/dev/ttyUSB0", 1, 2, product="Thing")])
    assert "/dev/ttyUSB0 (0001:0002 Thing)" in caught.value.text
    assert "make bench BOARD=x TWIN=1" in caught.value.text
    assert caught.value.exit_code == 3


def load_serial():
    from upyperf.boards.model import Serial, UsbId

    return Serial(usb=[UsbId(vid=0xF055, pid=0x9800)])


def test_interfaces_of_this_pc():
    known = network.interfaces()
    assert any(i.loopback and i.prefix == 8 for i in known)
    assert os.path.isdir("/sys/class/net/lo")
    assert boards.load("unix").nic.kind == "host"
