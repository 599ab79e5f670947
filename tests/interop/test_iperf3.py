"""iPerf 3 against every real iperf3 here, in both roles."""

from __future__ import annotations

import json
from typing import Any

import pytest
from harness import ours, programs
from peers import Peer

# how a case is called: (id, our options, iperf3's own flags)
CASES: list[tuple[str, dict[str, Any], list[str]]] = [
    ("tcp", {"time": 1}, ["-t", "1"]),
    ("tcp-R", {"time": 1, "reverse": True}, ["-t", "1", "-R"]),
    ("tcp-bidir", {"time": 1, "bidir": True}, ["-t", "1", "--bidir"]),
    ("tcp-P3", {"time": 1, "parallel": 3}, ["-t", "1", "-P", "3"]),
    ("tcp-P2-R", {"time": 1, "parallel": 2, "reverse": True}, ["-t", "1", "-P", "2", "-R"]),
    ("tcp-b", {"time": 1, "bandwidth": "40M"}, ["-t", "1", "-b", "40M"]),
    ("tcp-O", {"time": 1, "omit": 1}, ["-t", "1", "-O", "1"]),
    ("tcp-wMN", {"time": 1, "window": "64K", "mss": 1000, "nodelay": True},
     ["-t", "1", "-w", "64K", "-M", "1000", "-N"]),
    ("tcp-l", {"time": 1, "length": 3000}, ["-t", "1", "-l", "3000"]),
    ("udp", {"time": 1, "udp": True}, ["-t", "1", "-u"]),
    (
        "udp-R",
        {"time": 1, "udp": True, "reverse": True, "bandwidth": "8M"},
        ["-t", "1", "-u", "-R", "-b", "8M"],
    ),
    ("udp-bidir", {"time": 1, "udp": True, "bidir": True}, ["-t", "1", "-u", "--bidir"]),
    ("udp-P2-64bit", {"time": 1, "udp": True, "parallel": 2, "udp_counters_64bit": True, "bandwidth": "4M"},
     ["-t", "1", "-u", "-P", "2", "--udp-counters-64bit", "-b", "4M"]),
    ("udp-P2-R", {"time": 1, "udp": True, "parallel": 2, "reverse": True, "bandwidth": "4M"},
     ["-t", "1", "-u", "-P", "2", "-R", "-b", "4M"]),
    ("udp-l-b", {"time": 1, "udp": True, "length": 200, "bandwidth": "2M"},
     ["-t", "1", "-u", "-l", "200", "-b", "2M"]),
    ("udp-b0", {"time": 1, "udp": True, "bandwidth": 0}, ["-t", "1", "-u", "-b", "0"]),
]  # fmt: skip
BY_AMOUNT: list[tuple[str, dict[str, Any], list[str]]] = [
    ("n", {"num_bytes": "3M"}, ["-n", "3M"]),
    ("n-R", {"num_bytes": "3M", "reverse": True}, ["-n", "3M", "-R"]),
    ("k", {"blocks": 40}, ["-k", "40"]),
    ("n-udp", {"num_bytes": "50K", "udp": True, "bandwidth": "2M"}, ["-u", "-n", "50K", "-b", "2M"]),
]
SUBSET = ("tcp", "tcp-R", "udp", "udp-R", "tcp-bidir", "n")


def near(a: dict[str, Any] | None, b: dict[str, Any] | None, udp: bool) -> None:
    """Both ends of one direction agree as far as the real programs do."""
    assert a is not None
    assert b is not None
    if udp:
        assert a["packets"] == pytest.approx(b["packets"], rel=0.1, abs=6)
    else:
        # what is still in the socket buffers at the end is missing at the receiver (4 MiB a stream at most)
        assert abs(a["bytes"] - b["bytes"]) <= 0.05 * a["bytes"] + 24e6


def cases(interpreter: str) -> list[tuple[str, dict[str, Any], list[str]]]:
    return [c for c in CASES + BY_AMOUNT if interpreter == "micropython" or c[0] in SUBSET]


params = [pytest.param(i, *c, id=f"{i}-{c[0]}") for i in ours.INTERPRETERS for c in cases(i)]
each = pytest.mark.parametrize(("interpreter", "name", "options", "flags"), params)


@each
def test_our_client(iperf3_peer: Peer, interpreter: str, name: str, options: dict[str, Any],
                    flags: list[str]) -> None:  # fmt: skip
    with programs.server(iperf3_peer, "-1") as real:
        result = ours.client(interpreter, real.port, **options).ok
        real.wait()
    udp = bool(options.get("udp"))
    assert result["version"] == 3
    assert result["error"] is None
    if result["mode"] in ("send", "bidir"):
        near(result["sent"], result["peer_received"], udp)
    if result["mode"] in ("receive", "bidir"):
        near(result["received"], result["peer_sent"], udp)
    streams = options.get("parallel", 1) * (2 if options.get("bidir") else 1)
    assert [s["id"] for s in result["streams"]] == [1, 3, 4, 5][:streams]
    figures = result["sent"] or result["received"]
    if "time" in options:
        assert figures["us"] == pytest.approx(1e6, rel=0.1)
    rate = options.get("bandwidth")
    if rate:
        per_stream = int(rate[:-1]) * 1e6
        for s in result["streams"]:
            if s["sender"]:
                assert s["bytes"] * 8e6 / s["us"] == pytest.approx(per_stream, rel=0.1)
    if udp and rate:
        assert (result["received"] or result["sent"])["lost"] <= 20
    if name == "n":
        assert 3 << 20 <= result["sent"]["bytes"] < (3 << 20) + 2 * 131072
    if name == "k":
        assert result["sent"]["bytes"] >= 40 * result["options"]["length"]


@each
def test_our_server(iperf3_peer: Peer, interpreter: str, name: str, options: dict[str, Any],
                    flags: list[str]) -> None:  # fmt: skip
    with ours.server(interpreter) as server:
        done = programs.client(iperf3_peer, server.port, "-J", *flags)
        report = json.loads(done.stdout)
        assert done.returncode == 0, report.get("error", done.stdout)
        test = server.wait_for("test")
        # and it serves the next one
        again = programs.client(iperf3_peer, server.port, "-n", "100K")
        assert again.returncode == 0, again.stdout + again.stderr
    result = test["result"]
    assert result["role"] == "server"
    assert result["error"] is None
    end = report["end"]
    udp = bool(options.get("udp"))
    if udp:
        total = sum(s["udp"]["packets"] for s in end["streams"])
        ours_total = sum(s["packets"] for s in result["streams"])
        assert ours_total == pytest.approx(total, rel=0.1, abs=8)
    else:
        key = "sum_received" if options.get("reverse") else "sum_sent"
        mine = result["sent"] if options.get("reverse") else result["received"]
        assert abs(end[key]["bytes"] - mine["bytes"]) <= 0.1 * end[key]["bytes"] + 24e6
    if name == "tcp-O":
        assert mine["us"] < 1.5e6


def test_server_output_reaches_the_client(iperf3_peer: Peer) -> None:
    with programs.server(iperf3_peer, "-1") as real:
        run = ours.client("micropython", real.port, time=1, bandwidth="10M", get_server_output=True)
    assert "receiver" in run.ok["peer_text"]
    assert "Server output" in run.text


def test_our_output_reaches_the_real_client(iperf3_peer: Peer) -> None:
    with ours.server("micropython") as server:
        done = programs.client(iperf3_peer, server.port, "-t", "1", "-b", "10M", "--get-server-output")
    assert done.returncode == 0, done.stdout
    assert "Server output" in done.stdout
    assert "receiver" in done.stdout.split("Server output")[1]


def test_file_is_the_payload(iperf3_peer: Peer, tmp_path: Any) -> None:
    path = tmp_path / "payload"
    path.write_bytes(bytes(range(256)) * 4000)
    with programs.server(iperf3_peer, "-1") as real:
        result = ours.client("micropython", real.port, time=5, file=str(path)).ok
    assert result["sent"]["bytes"] == 1024000
    assert result["sent"]["us"] < 4e6


def test_text_is_what_iperf3_prints(iperf3_peer: Peer) -> None:
    with programs.server(iperf3_peer, "-1") as real:
        run = ours.client("micropython", real.port, time=2, bandwidth="8M", parallel=2)
    lines = run.text.splitlines()
    assert any(line.startswith("[  1]   0.00-1.00") and "Mbits/sec" in line for line in lines), run.text
    assert sum(line.startswith("[SUM]") for line in lines) >= 4
    assert lines[-1] == "iperf Done."
