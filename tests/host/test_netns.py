"""In a network namespace of the test: the PC's address that is chosen, the peer bound to it, and the
three ways in which a server cannot be reached."""

import json
import os
import shlex
import subprocess
import sys

import pytest

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
