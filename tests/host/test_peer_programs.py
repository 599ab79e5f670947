"""The PC's end of a test: real programs are started, read live and ended; odd ones do no harm."""

import os
import socket
import subprocess
import sys
import threading
import time

import pytest
from upyperf import peers, plan
from upyperf.errors import UpyperfError
from upyperf.hints import identify, improve
from upyperf.peers import arguments, base, programs
from upyperf.peers.process import Process
from upyperf.records import ErrorInfo, Test

LOOPBACK = "127.0.0.1"


def planned(version=3, proto="tcp", mode="send", **options):
    return plan.make(version, proto, mode, "socket", {"time": 1.0, **options})


def script(tmp_path, body, name="program"):
    path = tmp_path / name
    path.write_text(f"#!{sys.executable}\n{body}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize("version", [3, 2])
@pytest.mark.parametrize("proto", ["tcp", "udp"])
def test_real_server_is_read_live_and_ended(version, proto):
    test = planned(version, proto, bandwidth=8_000_000)
    seen = []
    served = peers.serve(test, LOOPBACK, 0.5, lambda kind, fields: seen.append((kind, fields)))
    with served.peer as peer:
        client = programs.find(version).path
        command = [client, "-c", LOOPBACK, "-p", str(served.port), "-t", "1", "-b", "8000000", "-l", "1000"]
        subprocess.run(
            command + (["-u"] if proto == "udp" else []), capture_output=True, timeout=30, check=True
        )
        result = peer.finish()
    assert peer._process.poll() is not None
    assert result.program.startswith({3: "iperf3 3.", 2: "iperf 2."}[version])
    assert result.error is None
    assert result.received.bits_per_second == pytest.approx(8e6, rel=0.25)
    assert result.received.us == pytest.approx(1e6, rel=0.3)
    assert result.sent is None
    assert (result.received.packets is not None) == (proto == "udp")
    rows = [fields for kind, fields in seen if kind == "interval"]
    assert len(rows) >= 2
    assert all(row["sender"] for row in rows)
    assert "Server listening" in result.text


def test_ending_a_server_that_nobody_used_is_no_error():
    with peers.serve(planned(), LOOPBACK, 1.0, lambda *_: None).peer as peer:
        result = peer.finish()
    assert result.error is None
    assert (result.sent, result.received) == (None, None)


def test_other_server_at_the_same_port_is_told():
    with socket.create_server((LOOPBACK, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UpyperfError, match="in use") as caught:
            peers.serve(planned(), LOOPBACK, 1.0, lambda *_: None, port)
    assert caught.value.exit_code == 5


def test_address_that_is_not_ours_is_told():
    with pytest.raises(UpyperfError, match=r"cannot listen at 192\.0\.2\.1"):
        peers.free_port("192.0.2.1")


def test_program_that_dies_at_the_start(tmp_path, monkeypatch):
    body = "import sys\nif '--version' in sys.argv: print('iperf 3.99')\nelse: sys.exit('no such luck')"
    monkeypatch.setenv("UPYPERF_IPERF3", script(tmp_path, body))
    with pytest.raises(UpyperfError, match=r"iperf3 3\.99 did not start: no such luck"):
        peers.serve(planned(), LOOPBACK, 1.0, lambda *_: None)


def test_program_that_never_listens(tmp_path, monkeypatch):
    body = "import sys, time\nprint('iperf 3.99', flush=True)\nif '--version' not in sys.argv: time.sleep(60)"
    monkeypatch.setenv("UPYPERF_IPERF3", script(tmp_path, body))
    monkeypatch.setattr(base, "READY_S", 0.5)
    with pytest.raises(UpyperfError, match="does not listen"):
        peers.serve(planned(), LOOPBACK, 1.0, lambda *_: None)


def test_server_that_dies_in_the_middle_is_named(tmp_path, monkeypatch):
    body = (
        "import sys, os, signal\nif '--version' in sys.argv: print('iperf 3.99'); sys.exit()\n"
        "print('Server listening on 1', flush=True)\nsys.stdin.read()\nos.kill(os.getpid(), signal.SIGSEGV)"
    )
    monkeypatch.setenv("UPYPERF_IPERF3", script(tmp_path, body))
    with peers.serve(planned(), LOOPBACK, 1.0, lambda *_: None).peer as peer:
        deadline = time.monotonic() + 5
        while peer.failed() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        assert "killed by signal 11" in peer.finish().error.text


def test_pipe_is_drained_however_much_is_printed():
    """Field case P15: a run whose output fills the pipe stalls the program."""
    lines = []
    body = "for n in range(40000): print('row', n, 'x' * 40)"
    process = Process([sys.executable, "-c", body], lines.append)
    assert process.wait(30) == 0
    assert len(lines) == 40000
    assert lines[-1].startswith("row 39999")
    assert len(process.text) <= 64 * 1024 + 100
    assert process.text.endswith(lines[-1])


def test_wifi_key_is_not_handed_on(monkeypatch):
    monkeypatch.setenv("UPYPERF_WIFI_KEY", "geheim99")
    process = Process([sys.executable, "-c", "import os; print(dict(os.environ))"], lambda line: None)
    assert process.wait(20) == 0
    assert "LC_ALL" in process.text
    assert "geheim99" not in process.text


def test_program_that_ignores_term_is_ended_all_the_same():
    body = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    body += "print('up', flush=True)\ntime.sleep(99)"
    up = threading.Event()
    process = Process([sys.executable, "-c", body], lambda line: up.set())
    assert up.wait(10)
    start = time.monotonic()
    process.stop()
    assert process.poll() is not None
    assert time.monotonic() - start < 5


def test_version_of_the_installed_programs():
    for version, first in ((3, 3), (2, 2)):
        program = programs.find(version)
        assert program.numbers[0] == first
        assert os.access(program.path, os.X_OK)


def test_iperf3_by_the_name_of_iperf_is_not_iperf_2(tmp_path, monkeypatch):
    os.symlink(programs.find(3).path, tmp_path / "iperf")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert programs.find(2) is None
    assert programs.find(3) is None


def test_program_named_wrongly_is_a_configuration_error(tmp_path, monkeypatch):
    monkeypatch.setenv("UPYPERF_IPERF3", script(tmp_path, "print('hello')"))
    with pytest.raises(UpyperfError, match="UPYPERF_IPERF3=.* is not an iPerf 3 program"):
        programs.find(3)


@pytest.mark.parametrize("version", [3, 2])
def test_own_package_serves_where_there_is_no_program(version, monkeypatch):
    client = programs.find(version).path
    monkeypatch.setenv(programs.VARIABLES[version], "none")
    seen = []
    test = planned(version, bandwidth=8_000_000)
    served = peers.serve(test, LOOPBACK, 0.5, lambda kind, fields: seen.append(kind))
    with served.peer as peer:
        subprocess.run(
            [client, "-c", LOOPBACK, "-p", str(served.port), "-t", "1", "-b", "8000000", "-l", "4000"],
            capture_output=True, timeout=30, check=True,
        )  # fmt: skip
        result = peer.finish()
    assert result.program.startswith("upyperf's own iperf (CPython")
    assert result.error is None
    assert result.received.bits_per_second == pytest.approx(8e6, rel=0.25)
    assert "interval" in seen


@pytest.mark.parametrize(
    ("version", "mode", "words"),
    [
        (3, "receive", []),
        (3, "send", ["-R"]),
        (3, "bidir", ["--bidir"]),
        (2, "send", ["-R"]),
        (2, "bidir", ["--full-duplex"]),
        (2, "dual", ["-d", "-L", "5009"]),
        (2, "tradeoff", ["-r", "-L", "5009"]),
    ],
)
def test_client_does_the_other_half_of_what_the_board_does(version, mode, words):
    test = plan.make(version, "tcp", mode, "socket", {"time": 2.0, "parallel": 2, "nodelay": True}, "server")
    line = arguments.client(test, "192.0.2.1", 5555, 0.5, 5009)
    joined = " ".join(line)
    assert line[:6] == ["-c", "192.0.2.1", "-p", "5555", "-i", "0.5"]
    assert all(word in line for word in words)
    assert "-t 2" in joined
    assert "-P 2" in joined
    assert line.count("-N") == 1


def test_omit_is_refused_for_an_iperf_2_client():
    test = Test(name="x", version=2, mode="receive", options={"omit": 1})
    with pytest.raises(UpyperfError, match="no -O"):
        arguments.client(test, "h", 1, 1.0)


@pytest.mark.parametrize("version", [3, 2])
def test_a_server_tells_which_iperf_it_is(version):
    with peers.serve(planned(version), LOOPBACK, 1.0, lambda *_: None).peer as peer:
        port = int(peer.argv[peer.argv.index("-p") + 1])
        assert identify(LOOPBACK, port, timeout=1.0) == version
        assert peer.failed() is None
    assert identify(LOOPBACK, port, timeout=1.0) is None


def test_wrong_server_is_named_after_a_failure_that_could_mean_anything():
    error = ErrorInfo(kind="timeout", text="no answer")
    with peers.serve(planned(3), LOOPBACK, 1.0, lambda *_: None).peer as peer:
        port = int(peer.argv[peer.argv.index("-p") + 1])
        better = improve(error, planned(2, "udp"), LOOPBACK, port, remote=True)
    assert better.kind == "wrong-peer"
    assert "served by iperf3, but the test is iPerf 2" in better.text


def test_three_causes_three_hints():
    test = planned()
    hints = {
        kind: improve(ErrorInfo(kind=kind, text="x"), test, LOOPBACK, 1, remote=kind == "refused").text
        for kind in ("refused", "timeout", "unreachable")
    }
    assert "running" in hints["refused"]
    assert "firewall" in hints["timeout"]
    assert "network" in hints["unreachable"]
    assert len(set(hints.values())) == 3
    name = ErrorInfo(kind="unreachable", text="cannot resolve 'x': [addrinfo error -2]")
    assert "spelling" in improve(name, test, "x", 1, remote=True).text
    assert "needs -6" in improve(name, test, "::1", 1, remote=True).text
