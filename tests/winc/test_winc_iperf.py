"""Layer `winc1500` under iperf: our client and server against the real programs, through the simulator."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


@contextmanager
def server(*command: str, port: int, udp: bool = False) -> Iterator[None]:
    program = shutil.which(command[0])
    if program is None:
        pytest.fail(f"{command[0]} is not installed: run `make setup`")
    with subprocess.Popen(
        [program, *command[1:]], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            for _ in range(100):
                if udp:
                    time.sleep(0.3)
                    break
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    time.sleep(0.05)
            yield
        finally:
            process.kill()


CLIENT = """
import iperf, json
nic.connect(SSID, KEY)
r = iperf.client(HOST, port={port}, layer="winc1500", interval=0, **{options})
d = r.to_dict()
d["counters"] = {{k: v for k, v in d["counters"].items() if isinstance(v, int)}}
print(json.dumps(d))
"""


@pytest.mark.parametrize("options", [
    {"time": 2}, {"time": 2, "reverse": True}, {"time": 2, "bidir": True}, {"time": 2, "parallel": 3},
    {"time": 2, "udp": True, "bandwidth": "1M"},
    {"time": 2, "udp": True, "bandwidth": "1M", "reverse": True},
])  # fmt: skip
@pytest.mark.parametrize("firmware", ["19.6.1", "19.7.7"])
def test_client_against_iperf3(make_world, options, firmware):
    port = free_port()
    with server("iperf3", "-s", "-1", "-p", str(port), port=port, udp=True):
        out = make_world(firmware).board(CLIENT.format(port=port, options=options))
    d = json.loads(out.splitlines()[-1])
    assert d["error"] is None
    down = options.get("reverse")
    mine, peer = (d["received"], d["peer_sent"]) if down else (d["sent"], d["peer_received"])
    assert mine["bytes"] > 100_000
    if options.get("udp"):
        # what the server sent at the very end may still be under way
        assert mine["bytes"] == peer["bytes"] if not down else mine["bytes"] >= 0.8 * peer["bytes"]
        assert (mine["packets"] - mine["lost"]) * 1400 == mine["bytes"]
        assert any("1400" in line for line in d["adapted"])
    elif not down:
        assert mine["bytes"] == peer["bytes"]
    c = d["counters"]
    assert c["spi_bytes"] > mine["bytes"]
    assert c["hif_bad"] == c["spi_resyncs"] == 0


@pytest.mark.parametrize("options", [{"time": 2}, {"time": 2, "udp": True, "bandwidth": "1M"}])
def test_client_against_iperf2(make_world, options):
    port = free_port()
    udp = ["-u"] if options.get("udp") else []
    with server("iperf", "-s", "-p", str(port), *udp, port=port, udp=bool(udp)):
        out = make_world().board(CLIENT.format(port=port, options={"version": 2, **options}))
    d = json.loads(out.splitlines()[-1])
    assert d["error"] is None
    assert d["sent"]["bytes"] > 100_000


@pytest.mark.parametrize("arguments", [
    [], ["-R"], ["-u", "-b", "1M", "-l", "1400"], ["-u", "-b", "1M", "-R", "-l", "1400"],
])  # fmt: skip
def test_server_for_iperf3(make_world, arguments):
    port = free_port()
    world = make_world()
    # The board's server is up when a connection succeeds; iperf3 itself tries only once.
    script = f"""
import iperf, json
nic.connect(SSID, KEY)
print("up")
r = iperf.server(port={port}, layer="winc1500", one_off=True, interval=0)
print(len(r))
"""
    results: list[subprocess.CompletedProcess[str]] = []

    def client() -> None:
        for _ in range(60):
            time.sleep(0.5)
            result = subprocess.run(
                ["iperf3", "-c", "127.0.0.1", "-p", str(port), "-t", "2", "-J", *arguments],
                capture_output=True, text=True, timeout=60,
            )  # fmt: skip
            if "refused" not in result.stdout:
                results.append(result)
                return

    t = threading.Thread(target=client)
    t.start()
    out = world.board(script)
    t.join(60)
    assert out.split() == ["up", "1"]
    answer = json.loads(results[0].stdout)
    assert "error" not in answer, answer.get("error")
    end = answer["end"]
    total = end["sum_received"] if "sum_received" in end else end["sum"]
    assert total["bytes"] > 50_000


def test_errors_have_kinds(make_world):
    port = free_port()
    world = make_world()
    out = world.board(
        f"""
        import iperf
        from iperf.errors import IperfError
        def kind(**kw):
            try:
                iperf.client(kw.pop("host", HOST), port={port}, layer="winc1500", time=1, **kw)
            except IperfError as e:
                return e.kind
        nic.active(True)
        print(kind())
        nic.connect(SSID, KEY)
        print(kind(), kind(ipv6=True), kind(window=8192), kind(udp=True, length=8192), kind(bind="10.9.8.7"))
        print(kind(host="no.such.host.invalid"))
        """
    )
    assert out.split() == [
        "network-down", "refused", "unsupported", "unsupported", "unsupported", "usage", "unreachable",
    ]  # fmt: skip
