"""The command: one line for every mistake, documented exit codes, JSON on stdout and talk on stderr."""

import errno
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from upyperf import peers, plan
from upyperf.peers import programs

UPYPERF = [sys.executable, "-c", "import sys; from upyperf.cli import main; sys.exit(main())"]
BUILT_IN_SECONDS = 120


def upyperf(folder, *words, env=None):
    return subprocess.run(
        [*UPYPERF, *words], cwd=folder, capture_output=True, text=True, timeout=BUILT_IN_SECONDS,
        env={**os.environ, **(env or {})},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["bench", "unx"], 2, "no board 'unx' (did you mean unix?)"),
        (["bench", "unix", "--plan", "standrd"], 2, "no plan 'standrd'"),
        (["bench", "unix", "--tim", "3"], 2, "No such option: --tim"),
        (["bench", "unix", "--time", "x"], 2, "valid number"),
        (["bench", "unix", "-b", "12Q"], 2, "'12Q' is not a rate"),
        (["run", "unix", "-b", "-1"], 2, "--bandwidth: '-1' is not a rate: write a number"),
        (["run", "unix", "-l", "0"], 2, "length must be 1 to 1048576 bytes"),
        (["run", "unix", "-M", "999999"], 2, "mss must be 0 to 9216 bytes"),
        (["run", "unix", "-w", "999G"], 2, "window must be 0 to 536870912 bytes"),
        (["run", "unix", "-S", "999"], 2, "tos must be 0 to 255"),
        (["run", "unix", "-S", "x"], 2, "--tos: 'x' is not a number"),
        (["run", "unix", "-k", "99999999999999999999"], 2, "blocks must be"),
        (["run", "unix", "--server", ""], 2, "--server is empty"),
        (["run", "unix", "--port", " "], 2, "--port is empty"),
        (["bench", "unix", "--plan", ""], 2, "--plan is empty"),
        (["bench", ""], 2, "BOARD is empty"),
        (["report", ""], 2, "the name of a result is empty"),
        (["compare", "latest,", "latest"], 2, "no results for 'latest'"),
        (["bench", "unix", "--layer", "raw"], 2, "no layer 'raw'"),
        (["bench", "unix", "--server", "h:x"], 2, "write HOST or HOST:PORT"),
        (["bench", "unix", "--port", "/dev/none"], 3, "no such port"),
        (["bench", "unix", "--twin"], 2, "names no twin"),
        (["bench", "unix", "--virtual", "nonsense"], 2, "write KEY=VALUE"),
        (["bench", "unix", "--virtual", "speed=9"], 2, "no option 'speed'"),
        (["bench", "unix", "--gateway", "1.2.3.4"], 2, "--gateway goes with --ip"),
        (["run", "unix", "-R", "--bidir"], 2, "only one of"),
        (["run", "unix", "-d"], 2, "iPerf 3 has no dual"),
        (["run", "unix", "--iperf", "4"], 2, "'--iperf'"),
        (["report", "nothing"], 2, "no results 'nothing'"),
        (["compare", "a", "b"], 2, "no results 'a'"),
        (["compare", "a", "b", "--allow", "x"], 2, "--allow x: one of board, kind"),
        (["virtual", "nope"], 2, "no board 'nope'"),
        (["deploy", "unix"], 2, "is virtual"),
        (["frobnicate"], 2, "No such command"),
    ],
)
def test_mistakes_are_one_line_with_the_right_exit_code(tmp_path, words, code, text):
    done = upyperf(tmp_path, *words)
    assert done.returncode == code, done.stderr
    errors = [line for line in done.stderr.splitlines() if line.startswith("upyperf: error: ")]
    assert len(errors) == 1
    assert text in errors[0]
    assert "Traceback" not in done.stderr + done.stdout


def test_boards_lists_them(tmp_path):
    assert "unix" in upyperf(tmp_path, "boards").stdout
    listed = json.loads(upyperf(tmp_path, "boards", "--json").stdout)
    assert "unix" in [board["name"] for board in listed]
    assert json.loads(upyperf(tmp_path, "boards", "--schema").stdout)["title"] == "board.toml"


def test_doctor_names_the_programs(tmp_path):
    done = upyperf(tmp_path, "doctor", "--json")
    found = {finding["what"]: finding for finding in json.loads(done.stdout)}
    assert {"iperf3", "iperf", "mpremote", "mpy-cross"} <= set(found)
    missing = upyperf(tmp_path, "doctor", "--json", env={"UPYPERF_IPERF3": "none"})
    found = {finding["what"]: finding for finding in json.loads(missing.stdout)}
    assert found["iperf3"]["level"] == "note"
    assert "apt-get install iperf3" in found["iperf3"]["todo"]


@pytest.fixture(scope="module")
def benched(tmp_path_factory):
    """One bench on the unix board, all eight tests of the standard plan, a second each."""
    folder = tmp_path_factory.mktemp("bench")
    return folder, upyperf(folder, "bench", "unix", "--time", "1")


def run_folder(folder):
    found = sorted(p for p in (folder / "results").iterdir() if p.is_dir())
    return found[-1]


def test_bench_of_the_standard_plan(benched):
    folder, done = benched
    assert done.returncode == 0, done.stderr
    bench = json.loads((run_folder(folder) / "results.json").read_text())
    assert [run["status"] for run in bench["runs"]] == ["ok"] * 8
    for run in bench["runs"]:
        direction = run["directions"][0]
        assert direction["way"] == run["test"]["mode"]
        assert direction["board"]["bytes"] > 0
        assert direction["peer"]["bytes"] > 0
        assert run["peer"]["program"].startswith({3: "iperf3 3.", 2: "iperf 2."}[run["test"]["version"]])
        assert run["board"]["heap"]["free_before"] > 0
        assert "counters" in run["board"]
        assert run["peer"]["intervals"]
    assert bench["config"]["modules"] == "mpy+native"
    assert bench["info"]["layers"] == ["socket"]
    assert bench["network"]["rtt_us"] > 0
    assert bench["host"]["tools"]["iperf3"]


def test_everything_is_in_the_folder(benched):
    folder, _ = benched
    names = {path.name for path in run_folder(folder).iterdir()}
    assert {"results.json", "records.jsonl", "report.html", "summary.md", "junit.xml", "results.csv",
            "intervals.csv", "serial.log", "iperf3"} <= names  # fmt: skip
    assert len(list((run_folder(folder) / "iperf3").iterdir())) == 8


def test_progress_is_on_stderr_with_the_peers_rows(benched):
    _, done = benched
    assert re.search(r"\[1/8\] iPerf 3 TCP send", done.stderr)
    assert re.search(r"0\.00-1\.00 s  board sends\s+[\d.]+ [kMG]?bit/s", done.stderr)
    assert "[1/8]" not in done.stdout
    assert "report.html" in done.stdout
    assert "\x1b" not in done.stderr + done.stdout


def test_every_event_is_an_event(benched):
    from upyperf.events import parse_events

    folder, _ = benched
    events = parse_events((run_folder(folder) / "records.jsonl").read_text().splitlines())
    assert sum(e.kind == "run-end" for e in events) == 8
    assert {e.source for e in events} == {"board", "peer", "host"}


def test_report_and_compare_find_it(benched):
    folder, _ = benched
    assert "iPerf 3 TCP send" in upyperf(folder, "report").stdout
    assert upyperf(folder, "report", "latest:unix", "--markdown").stdout.count("|") > 20
    assert json.loads(upyperf(folder, "report", "--json").stdout)["schema_version"] == 1
    done = upyperf(folder, "compare", "latest", "latest", "--fail-if", "-5%")
    assert done.returncode == 0, done.stderr
    assert "iPerf 3 TCP send" in done.stdout


def test_json_is_one_document_and_stream_is_lines(tmp_path):
    words = ["run", "unix", "-t", "1", "-b", "10M"]
    done = upyperf(tmp_path, *words, "-J", "--result-dir", "one")
    assert json.loads(done.stdout)["runs"][0]["status"] == "ok"
    assert (tmp_path / "one/report.html").is_file()
    done = upyperf(tmp_path, *words, "--json-stream")
    kinds = [json.loads(line)["kind"] for line in done.stdout.splitlines()]
    assert kinds[-1] == "run-end"
    assert "interval" in kinds
    done = upyperf(tmp_path, *words, "--result-dir", "one")
    assert done.returncode == 2
    assert "holds results already" in done.stderr


def test_json_of_a_failure_is_a_document_too(tmp_path):
    done = upyperf(tmp_path, "bench", "unx", "--json")
    assert json.loads(done.stdout)["error"]["kind"] == "usage"
    done = upyperf(tmp_path, "run", "unix", "-t", "1", "-J", "-c", "127.0.0.1:9")
    document = json.loads(done.stdout)
    assert done.returncode == document["exit_code"] == 5
    assert document["runs"][0]["error"]["kind"] == "refused"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_keeps_what_was_measured(tmp_path, number):
    process = subprocess.Popen(
        [*UPYPERF, "bench", "unix", "--time", "30", "--result-dir", "r"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    records = Path(tmp_path, "r", "records.jsonl")
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if records.is_file() and '"kind":"interval"' in records.read_text():
            break
        time.sleep(0.1)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    bench = json.loads((tmp_path / "r/results.json").read_text())
    first, *rest = bench["runs"]
    assert first["status"] == "interrupted"
    assert first["board"]["sent"]["bytes"] > 0
    with socket.socket() as nobody:  # the peer was ended, too
        assert nobody.connect_ex(("127.0.0.1", first["board"]["port"])) == errno.ECONNREFUSED
    assert not any(d["flagged"] for d in first["directions"])
    assert {run["status"] for run in rest} == {"skipped"}
    assert (tmp_path / "r/report.html").is_file()
    assert "Traceback" not in err + out


def test_own_server_without_programs_is_named(tmp_path):
    done = upyperf(tmp_path, "run", "unix", "-t", "1", "-b", "5M", "-J", env={"UPYPERF_IPERF3": "none"})
    bench = json.loads(done.stdout)
    assert bench["runs"][0]["peer"]["program"].startswith("upyperf's own iperf")
    assert bench["host"]["tools"]["iperf3"] is None


@pytest.mark.parametrize("words", [["-s"], ["-s", "-R"], ["-s", "-u", "-b", "2M"]])
@pytest.mark.parametrize("version", ["3", "2"])
def test_board_as_server(tmp_path, version, words):
    done = upyperf(tmp_path, "run", "unix", "--iperf", version, "-t", "1", "-J", *words)
    run = json.loads(done.stdout)["runs"][0]
    assert run["status"] == "ok", run["error"]
    assert run["board"]["role"] == "server"
    way = "send" if "-R" in words else "receive"
    assert run["directions"][0]["way"] == way
    assert run["directions"][0]["board"]["bytes"] > 0
    assert run["directions"][0]["peer"]["bytes"] > 0


def test_broken_pipe_is_no_error(tmp_path):
    process = subprocess.Popen(
        [*UPYPERF, "boards", "--json"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdout.close()
    assert b"Traceback" not in process.stderr.read()
    process.wait(30)


def test_lost_board_keeps_what_came_and_ends_with_3(tmp_path):
    """Field case H1: the port vanishes in the middle."""
    board = subprocess.Popen(
        [*UPYPERF, "virtual", "unix", "--log-dir", "."], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    device = board.stdout.readline().strip()
    words = ["bench", "unix", "--port", device, "--time", "30", "--result-dir", "r"]
    process = subprocess.Popen(
        [*UPYPERF, *words], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    records = Path(tmp_path, "r", "records.jsonl")
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        if records.is_file() and '"kind":"interval"' in records.read_text():
            break
        time.sleep(0.1)
    board.send_signal(signal.SIGINT)
    board.wait(20)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 3, err
    assert "Traceback" not in err + out
    bench = json.loads((tmp_path / "r/results.json").read_text())
    assert bench["error"]["kind"] == "serial-lost"
    assert bench["runs"][0]["status"] == "error"
    assert bench["runs"][0]["peer"]["intervals"] or '"kind":"interval"' in records.read_text()
    assert {run["status"] for run in bench["runs"][1:]} == {"skipped"}
    assert (tmp_path / "r/junit.xml").is_file()


@pytest.mark.parametrize("version", ["3", "2"])
def test_serve_serves_the_real_client(tmp_path, version):
    port = peers.free_port("127.0.0.1")
    words = ["serve", "--iperf", version, "-1", "-B", "127.0.0.1", "-p", str(port)]
    process = subprocess.Popen(
        [*UPYPERF, *words], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert f"listening on port {port}" in process.stderr.readline()
        client = programs.find(int(version)).path
        subprocess.run(
            [client, "-c", "127.0.0.1", "-p", str(port), "-t", "1", "-b", "8000000", "-l", "8000"],
            capture_output=True, timeout=30, check=True,
        )  # fmt: skip
        out, _ = process.communicate(timeout=20)
    finally:
        process.kill()
    assert process.returncode == 0
    assert re.search(r"\[ *1\] +0\.00", out)


def served(version):
    """A real server of this generation, elsewhere as far as upyperf knows."""
    test = plan.make(version, "tcp", "send", "socket", {})
    return peers.serve(test, "127.0.0.1", 1.0, lambda *_: None)


@pytest.mark.parametrize("version", [3, 2])
def test_server_of_the_other_iperf_is_named(tmp_path, version):
    """Field case P9."""
    other = served(5 - version)
    with other.peer:
        words = ["run", "unix", "--iperf", str(version), "-t", "1", "-c", f"127.0.0.1:{other.port}", "-J"]
        done = upyperf(tmp_path, *words)
    assert done.returncode == 5
    error = json.loads(done.stdout)["runs"][0]["error"]
    assert error["kind"] == "wrong-peer"
    assert f"iPerf {5 - version}" in error["text"]


def test_board_says_its_rows_where_the_server_is_silent(tmp_path):
    server = served(3)
    with server.peer:
        done = upyperf(
            tmp_path, "run", "unix", "-t", "1", "-b", "5M", "-c", f"127.0.0.1:{server.port}", "--live"
        )
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r"0\.00-1\.00 s  board sends", done.stderr)) == 1


def test_busy_server_is_told_after_retries(tmp_path):
    """Field case P1."""
    server = served(3)
    with server.peer:
        client = [programs.find(3).path, "-c", "127.0.0.1", "-p", str(server.port), "-t", "60", "-b", "1M"]
        other = subprocess.Popen(client, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            time.sleep(1)
            done = upyperf(tmp_path, "run", "unix", "-t", "1", "-c", f"127.0.0.1:{server.port}", "-J")
        finally:
            other.kill()
            other.wait()
    assert done.returncode == 5
    assert json.loads(done.stdout)["runs"][0]["error"]["kind"] == "busy"
