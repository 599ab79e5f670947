"""In a network namespace of the test: the PC's address that is chosen, the peer bound to it, and the
three ways in which a server cannot be reached."""

import json
import os
import shlex
import subprocess
import sys

import pytest
from upyperf.paths import root

UPYPERF = [sys.executable, "-c", "import sys; from upyperf.cli import main; sys.exit(main())"]
# A cable with both ends here: the PC is 192.168.77.1, a second network is on the loopback.
SETUP = """set -e
ip link set lo up
ip link add desk0 type veth peer name desk1
ip address add 192.168.77.1/24 dev desk0
ip address add 192.168.78.1/24 dev lo
ip link set desk0 up; ip link set desk1 up
ip route add unreachable 192.0.2.0/24
"""


def inside(tmp_path, script):
    """Run a shell script in a new namespace (of a user namespace, so that no root is needed)."""
    flags = ["-n"] if os.geteuid() == 0 else ["-rn"]
    return subprocess.run(
        ["unshare", *flags, "sh", "-c", SETUP + script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )


def python(code):
    return shlex.join([sys.executable, "-c", code])


def upyperf(*words):
    return shlex.join([*UPYPERF, *words])


@pytest.mark.parametrize(
    ("board", "expected"), [("192.168.77.50", "192.168.77.1 desk0"), ("192.168.78.50", "192.168.78.1 lo")]
)
def test_the_address_in_the_boards_network_is_chosen(tmp_path, board, expected):
    code = f"from upyperf.network import choose; c = choose({board!r}); print(c.address, c.interface)"
    done = inside(tmp_path, python(code))
    assert done.stdout.strip() == expected, done.stderr


def test_no_way_to_the_board_names_the_addresses_and_the_command(tmp_path):
    code = (
        "from upyperf.network import choose\nfrom upyperf.errors import UpyperfError\n"
        "try: choose('203.0.113.5')\nexcept UpyperfError as e: print(e.kind, e.text)"
    )
    done = inside(tmp_path, python(code))
    assert done.stdout.startswith("network-down this PC has no way to the board at 203.0.113.5"), done.stderr
    assert "192.168.77.1 (desk0)" in done.stdout
    assert "sudo ip address add 203.0.113.1/24 dev" in done.stdout


def test_peer_is_bound_to_the_address_that_was_asked_for(tmp_path):
    done = inside(tmp_path, upyperf("run", "unix", "-t", "1", "-b", "5M", "-J", "--peer-address", "desk0"))
    bench = json.loads(done.stdout)
    assert done.returncode == 0, done.stderr
    assert bench["network"]["pc_address"] == "192.168.77.1"
    assert bench["network"]["interface"] == "desk0"
    assert bench["runs"][0]["board"]["host"] == "192.168.77.1"
    assert bench["runs"][0]["directions"][0]["peer"]["bytes"] > 0
    assert "local 192.168.77.1 port" in bench["runs"][0]["peer"]["text"]


def test_address_that_is_not_ours(tmp_path):
    done = inside(tmp_path, upyperf("run", "unix", "-t", "1", "--peer-address", "192.168.99.1"))
    assert done.returncode == 2
    assert "192.168.99.1 is no address or interface of this PC; it has" in done.stderr
    assert "192.168.77.1 (desk0)" in done.stderr


# A board on a cable: to upyperf hardware with Wi-Fi, in truth the unix board with a fake network module.
BOARD = """
name = "desk"
title = "A board on the desk"
kind = "hardware"
tested = "virtual"
port = "unix"
layers = ["socket"]

[serial]
machine = "{machine}"

[lwip]
TCP_MSS = 1460
TCP_WND = 11680

[nic]
kind = "wlan"
chip = "FAKE1"
timeout_s = 5
setup = ['''
import sys
class Nic:
    ip = "0.0.0.0"
    def __init__(self, *args): pass
    def active(self, on): pass
    def status(self, what=None): return 0
    def isconnected(self): return Nic.ip != "0.0.0.0"
    def ifconfig(self, new=None): return (Nic.ip, "255.255.255.0", "192.168.77.254", "")
    def connect(self, ssid, key):
        if (ssid, key) == ("lab", "p&\\u00e4\\"'%$ x"):
            Nic.ip = "192.168.77.1"
class network:
    WLAN = Nic
    STA_IF = 0
sys.modules["network"] = network
''']
"""
KEY = "p&ä\"'%$ x"


def on_desk(tmp_path, machine, words, key=KEY):
    """upyperf with board `desk`, which a unix board in the namespace plays."""
    real = root()
    (tmp_path / "root/boards/desk").mkdir(parents=True)
    (tmp_path / "root/firmware").symlink_to(real / "firmware")
    (tmp_path / "root/boards/desk/board.toml").write_text(BOARD.format(machine=machine))
    script = f"""
        {upyperf("virtual", "unix", "--log-dir", ".")} > device & board=$!
        for i in $(seq 100); do [ -s device ] && break; sleep 0.1; done
        export UPYPERF_ROOT="$PWD/root" UPYPERF_WIFI_SSID=lab UPYPERF_WIFI_KEY={shlex.quote(key)}
        set +e
        {upyperf(*words)} --port "$(cat device)"; code=$?
        kill $board; wait $board; exit $code
    """
    return inside(tmp_path, script)


def test_hardware_from_wifi_to_result(tmp_path):
    done = on_desk(tmp_path, "linux", ["run", "desk", "-t", "1", "-b", "5M", "-J", "--result-dir", "out"])
    assert done.returncode == 0, done.stderr
    bench = json.loads(done.stdout)
    assert bench["network"]["mode"] == "dhcp"
    assert bench["network"]["board_address"] == "192.168.77.1"
    assert (bench["network"]["pc_address"], bench["network"]["interface"]) == ("192.168.77.1", "desk0")
    assert "in the board's network 192.168.77.0/24" in bench["network"]["notes"][0]
    assert bench["network"]["rtt_us"] > 0
    assert bench["board"]["connection"] == "FAKE1"
    # Field case R1: what shapes the figures is in the result.
    assert bench["info"]["lwip"] == {"TCP_MSS": 1460, "TCP_WND": 11680}
    assert bench["config"]["lwip_source"] == "board.toml"
    assert bench["runs"][0]["board"]["host"] == "192.168.77.1"
    told = done.stderr + "".join(
        path.read_text(errors="replace") for path in (tmp_path / "out").rglob("*") if path.is_file()
    )
    for form in (KEY, repr(KEY)[1:-1], ascii(KEY)[1:-1], json.dumps(KEY)[1:-1]):
        assert form not in told + done.stdout


def test_wrong_key_ends_with_one_line(tmp_path):
    done = on_desk(tmp_path, "linux", ["run", "desk", "-t", "1"], "wrong-key-99")
    assert done.returncode == 5
    errors = [line for line in done.stderr.splitlines() if line.startswith("upyperf: error:")]
    assert len(errors) == 1
    assert "WLAN of desk: no connection within 5 s" in errors[0]
    assert "wrong-key-99" not in done.stderr + done.stdout


def test_wrong_board_is_refused(tmp_path):
    """Field case S10."""
    done = on_desk(tmp_path, "STM32F407", ["bench", "desk"])
    assert done.returncode == 3
    assert "wrong board on /dev/pts/" in done.stderr


# A listener whose queue is full drops what comes, as a firewall does.
FULL = """import socket, subprocess, sys
s = socket.create_server(("192.168.77.1", 0), backlog=0)
port = s.getsockname()[1]
held = [socket.socket() for _ in range(4)]
for h in held:
    h.setblocking(False)
    h.connect_ex(("192.168.77.1", port))
sys.exit(subprocess.run(sys.argv[1:] + ["-c", f"192.168.77.1:{port}"]).returncode)
"""


@pytest.mark.parametrize("version", ["3", "2"])
@pytest.mark.parametrize(
    ("server", "kind", "words"),
    [
        ("192.168.77.1:9", "refused", "refused the connection"),
        ("192.0.2.1:9", "unreachable", "route"),
        (None, "timeout", "firewall"),
    ],
)
def test_three_ways_of_not_reaching_a_server(tmp_path, version, server, kind, words):
    """Field case P17."""
    run = ["run", "unix", "-t", "1", "-J", "--iperf", version]
    command = (
        upyperf(*run, "-c", server) if server else shlex.join([sys.executable, "-c", FULL, *UPYPERF, *run])
    )
    done = inside(tmp_path, command)
    assert done.returncode == 5, done.stderr
    error = json.loads(done.stdout)["runs"][0]["error"]
    assert error["kind"] == kind, error
    assert words in error["text"]
    assert "\n" not in error["text"]
