"""junit.xml, iperf3's JSON, the schemas, and the whole folder."""

import json
import xml.etree.ElementTree as ET
from datetime import datetime
from pathlib import Path

import pytest
from bench_builder import bench, failed, hostile_bench, intervals, mixed, run, virtual_bench
from upyperf import records, report
from upyperf.errors import UpyperfError
from upyperf.records import Bench, BoardResult, ErrorInfo, PeerStream, RunResult, Sum
from upyperf.report import iperf3json, junit, schema

SCHEMAS = Path(__file__).parents[3] / "docs" / "schema"

# --- JUnit -----------------------------------------------------------------------------------------


def check_junit(content: str) -> ET.Element:
    """The rules of the JUnit schema that Jenkins, GitLab and GitHub read; returns the one testsuite."""
    root = ET.fromstring(content)
    assert root.tag == "testsuites"
    (suite,) = root
    assert suite.tag == "testsuite"
    order = [c.tag for c in suite]
    allowed = ["properties", "testcase", "system-out", "system-err"]
    assert [allowed.index(t) for t in order] == sorted(allowed.index(t) for t in order)
    assert order.count("properties") <= 1
    cases = suite.findall("testcase")
    for holder in (root, suite):
        assert int(holder.get("tests")) == len(cases)
        assert int(holder.get("failures")) == len(suite.findall("testcase/failure"))
        assert int(holder.get("errors")) == len(suite.findall("testcase/error"))
        assert int(holder.get("skipped")) == len(suite.findall("testcase/skipped"))
    datetime.strptime(suite.get("timestamp"), "%Y-%m-%dT%H:%M:%S")
    assert suite.get("hostname")
    assert float(suite.get("time")) >= 0
    assert len({(c.get("classname"), c.get("name")) for c in cases}) == len(cases)
    for case in cases:
        assert set(case.attrib) == {"name", "classname", "time"}
        assert float(case.get("time")) >= 0
        tags = [c.tag for c in case]
        inner = ["properties", "skipped", "error", "failure", "system-out", "system-err"]
        assert [inner.index(t) for t in tags] == sorted(inner.index(t) for t in tags)
        assert sum(t in ("skipped", "error", "failure") for t in tags) <= 1
        for bad in (*case.findall("error"), *case.findall("failure")):
            assert bad.get("message")
            assert bad.get("type")
    for prop in suite.iter("property"):
        assert set(prop.attrib) == {"name", "value"}
        assert prop.get("name")
    return suite


def properties(case: ET.Element) -> dict[str, str]:
    return {p.get("name"): p.get("value") for p in case.iter("property")}


def test_junit_names_and_figures():
    suite = check_junit(junit.render(mixed()))
    assert suite.get("name") == "stm32f407"
    assert suite.get("time") == "120.000"
    names = [c.get("name") for c in suite.iter("testcase")]
    assert names == ["3.tcp.send", "3.udp.receive", "2.tcp.send", "2.udp.send", "3.tcp.bidir"]
    first, udp, *_, bidir = suite.iter("testcase")
    assert first.get("time") == "10.100"
    figures = properties(first)
    assert figures["board [Mbit/s]"] == "94.099866"
    assert figures["retries"] == "31"
    assert figures["enomem"] == "2"
    assert figures["bound of"] == "100BASE-TX, TCP"
    assert properties(udp)["loss [%]"] == "5.1840"
    assert properties(udp)["jitter [ms]"] == "0.088000"
    assert properties(bidir)["receive board [Mbit/s]"].startswith("39.99")


def test_junit_outcomes():
    runs = [
        run(1),
        failed(2, "threshold", "60.0 Mbit/s is below 80 Mbit/s", version=3),
        failed(3, "timeout", "the peer does not answer", proto="udp"),
        failed(4, "interrupted", "interrupted", "interrupted", version=2),
        failed(5, "board", "no board", "skipped", mode="receive"),
    ]
    suite = check_junit(junit.render(bench(runs)))
    outcome = {
        c.get("name"): [e.tag for e in c if e.tag in ("failure", "error", "skipped")]
        for c in suite.iter("testcase")
    }
    assert outcome == {
        "3.tcp.send": [],
        "3.tcp.send iperf3-tcp-send": ["failure"],
        "3.udp.send": ["error"],
        "2.tcp.send": ["error"],
        "3.tcp.receive": ["skipped"],
    }
    assert suite.find("testcase/error").get("type") == "timeout"


def test_junit_without_a_board_is_skipped_and_a_failed_flash_an_error():
    no_board = ErrorInfo(kind="board", text="no board at /dev/ttyACM0")
    suite = check_junit(junit.render(bench([], info=None, error=no_board)))
    assert [e.tag for c in suite.iter("testcase") for e in c] == ["skipped"]
    skipped = [failed(n, "board", no_board.text, "skipped", proto=p) for n, p in enumerate(("tcp", "udp"))]
    suite = check_junit(junit.render(bench(skipped, info=None, error=no_board)))
    assert (suite.get("tests"), suite.get("skipped"), suite.get("errors")) == ("2", "2", "0")
    suite = check_junit(junit.render(bench([], error=ErrorInfo(kind="flash", text="verify failed"))))
    assert (suite.get("tests"), suite.get("errors")) == ("1", "1")


def test_junit_says_a_lost_board_once():
    lost = ErrorInfo(kind="serial-lost", text="the serial link went away")
    runs = [
        run(1),
        failed(2, lost.kind, lost.text, proto="udp"),
        failed(3, lost.kind, lost.text, "skipped", version=2),
    ]
    suite = check_junit(junit.render(bench(runs, error=lost)))
    assert (suite.get("tests"), suite.get("errors"), suite.get("skipped")) == ("3", "1", "1")


def test_junit_repeats_have_names_of_their_own():
    runs = [run(n, repeat=n) for n in (1, 2, 3)]
    names = [c.get("name") for c in check_junit(junit.render(bench(runs))).iter("testcase")]
    assert names == ["3.tcp.send", "3.tcp.send#2", "3.tcp.send#3"]


def test_junit_of_hostile_strings_is_xml():
    suite = check_junit(junit.render(hostile_bench()))
    assert "alert(1)" in suite.get("name")


# --- iperf3 -J -------------------------------------------------------------------------------------

# The keys of `iperf3 3.12 -J` as a client, read off its output, without those that a board without
# TCP_INFO cannot know (rtt, snd_cwnd, retransmits, …), the cookie and the PC's own (sndbuf_actual, …).
START = {
    "connected",
    "version",
    "system_info",
    "timestamp",
    "connecting_to",
    "target_bitrate",
    "sock_bufsize",
    "test_start",
}
TEST_START = {
    "protocol", "num_streams", "blksize", "omit", "duration", "bytes", "blocks", "reverse", "tos",
    "target_bitrate",
}  # fmt: skip
SPAN = {"start", "end", "seconds", "bytes", "bits_per_second", "sender"}
UDP = {"jitter_ms", "lost_packets", "packets", "lost_percent"}


def only_document(a_run: RunResult) -> dict:
    return json.loads(iperf3json.render(bench([a_run]), a_run))


def test_iperf3_tcp():
    doc = only_document(run())
    assert set(doc) == {"start", "intervals", "end", "title", "upyperf"}
    assert START | {"tcp_mss_default"} <= set(doc["start"])
    assert set(doc["start"]["test_start"]) >= TEST_START
    assert doc["start"]["test_start"]["protocol"] == "TCP"
    assert doc["start"]["test_start"]["reverse"] == 0
    assert doc["start"]["timestamp"] == {"time": "Mon, 30 Nov 2026 13:01:00 GMT", "timesecs": 1796043660}
    assert len(doc["intervals"]) == 10
    assert set(doc["intervals"][0]) == {"streams", "sum"}
    assert set(doc["intervals"][0]["sum"]) == SPAN | {"omitted"}
    assert set(doc["intervals"][0]["streams"][0]) == SPAN | {"omitted", "socket"}
    assert set(doc["end"]) == {"streams", "sum_sent", "sum_received"}
    assert set(doc["end"]["sum_sent"]) == SPAN
    (stream,) = doc["end"]["streams"]
    assert set(stream) == {"sender", "receiver"}
    assert stream["sender"]["bytes"] == 28717 * 4096
    assert doc["end"]["sum_received"]["seconds"] == 10
    assert doc["end"]["sum_received"]["bits_per_second"] == pytest.approx(94.1e6, rel=1e-4)


def test_iperf3_udp_receive():
    doc = only_document(run(proto="udp", mode="receive", bps=90e6, lost=4000))
    assert doc["start"]["test_start"]["reverse"] == 1
    assert "tcp_mss_default" not in doc["start"]
    assert set(doc["end"]) == {"streams", "sum", "sum_sent", "sum_received"}
    for name in ("sum", "sum_sent", "sum_received"):
        assert set(doc["end"][name]) == SPAN | UDP
    assert doc["end"]["sum"]["lost_percent"] == pytest.approx(5.184, abs=0.001)
    assert doc["end"]["sum"]["sender"] is False
    assert (doc["end"]["sum_sent"]["sender"], doc["end"]["sum_received"]["sender"]) == (True, False)
    assert set(doc["end"]["streams"][0]["udp"]) == SPAN | UDP | {"socket"}
    assert set(doc["intervals"][0]["sum"]) == SPAN | UDP | {"omitted"}
    assert doc["intervals"][0]["sum"]["lost_packets"] == 400


def test_iperf3_udp_send_takes_loss_from_the_peer():
    doc = only_document(run(proto="udp", bps=10e6, lost=7))
    assert set(doc["intervals"][0]["sum"]) == SPAN | {"omitted", "packets"}
    assert doc["end"]["sum"]["lost_packets"] == 7
    assert doc["end"]["streams"][0]["udp"]["lost_packets"] == 7
    assert doc["end"]["sum_sent"]["lost_packets"] == 0


def test_iperf3_both_ways():
    doc = only_document(run(mode="bidir", bps=40e6))
    assert set(doc["end"]) == {
        "streams", "sum_sent", "sum_received", "sum_sent_bidir_reverse", "sum_received_bidir_reverse",
    }  # fmt: skip
    assert set(doc["intervals"][0]) == {"streams", "sum", "sum_bidir_reverse"}
    assert [s["sender"] for s in doc["intervals"][0]["streams"]] == [True, False]
    assert doc["intervals"][0]["sum"]["sender"] is True
    assert doc["intervals"][0]["sum_bidir_reverse"]["sender"] is False
    assert (doc["end"]["sum_sent"]["sender"], doc["end"]["sum_sent_bidir_reverse"]["sender"]) == (True, False)
    udp = only_document(run(proto="udp", mode="bidir", bps=40e6))
    assert {"sum", "sum_bidir_reverse"} <= set(udp["end"])


def test_iperf3_of_an_iperf2_run_and_of_parallel_streams():
    a_run = run(version=2, options={"parallel": 2})
    other = a_run.board.streams[0].model_copy(update={"id": 2})
    a_run.board.streams.append(other)
    a_run.board.streams[0].peer = PeerStream(bytes=5, us=1_000_000)
    a_run.board.intervals += intervals(94.1e6, 10, True, udp=False, block=4096, stream=2)
    doc = only_document(a_run)
    assert doc["start"]["test_start"]["num_streams"] == 2
    assert len(doc["start"]["connected"]) == 2
    assert len(doc["intervals"]) == 10
    entry = doc["intervals"][3]
    assert entry["sum"]["bytes"] == sum(s["bytes"] for s in entry["streams"])
    first, second = doc["end"]["streams"]
    assert first["receiver"]["bytes"] == 5
    assert set(second) == {"sender"}  # the sum of two streams says nothing about one
    assert doc["upyperf"]["iperf_version"] == 2


def test_iperf3_of_a_failed_run_is_as_iperf3_writes_it():
    doc = only_document(failed())
    assert doc["intervals"] == []
    assert doc["end"] == {}
    assert doc["error"] == "nothing listens at 192.0.2.1 port 5201: start iperf3 -s there"
    assert set(doc["start"]) == {"connected", "version", "system_info", "timestamp"}


def test_iperf3_takes_the_peers_intervals_where_the_board_has_none():
    a_run = run()
    a_run.board.intervals = []
    doc = only_document(a_run)
    assert len(doc["intervals"]) == 10
    assert doc["intervals"][0]["sum"]["sender"] is True  # seen from the board


def test_iperf3_leaves_out_what_is_not_known():
    a_run = run(proto="udp", bps=1e6)
    a_run.peer = None
    a_run.directions = []
    a_run.board.sent = Sum(bytes=1000, us=0)
    doc = only_document(a_run)
    assert "sum" not in doc["end"]
    assert "jitter_ms" not in json.dumps(doc["end"])


def test_iperf3_stays_json_when_a_peer_prints_nonsense():
    a_run = run(proto="udp", bps=1e6)
    a_run.directions[0].peer.jitter_us = float("inf")
    assert "jitter_ms" not in only_document(a_run)["end"]["sum_received"]


# --- schemas ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["results.schema.json", "records.schema.json"])
def test_the_schema_in_docs_is_that_of_the_models(name):
    said = (SCHEMAS / name).read_text(encoding="utf-8")
    assert said == schema.render(schema.schemas()[name]), "run: python -m upyperf.report.schema docs/schema"


def test_a_written_bench_holds_what_the_schema_requires():
    described = schema.schemas()["results.schema.json"]
    written = json.loads(mixed().model_dump_json())
    assert set(described["required"]) <= set(written) <= set(described["properties"])
    run_schema = described["$defs"]["RunResult"]
    for item in written["runs"]:
        assert set(run_schema["required"]) <= set(item) <= set(run_schema["properties"])


# --- the folder ------------------------------------------------------------------------------------


def write_results(folder: Path, content: Bench) -> None:
    (folder / "results.json").write_text(content.model_dump_json(), encoding="utf-8")


def test_write_all(tmp_path):
    write_results(tmp_path, mixed())
    written = report.write_all(tmp_path)
    names = {p.relative_to(tmp_path).as_posix() for p in written}
    assert names == {"junit.xml", "summary.md", "results.csv", "intervals.csv", "report.html"} | {
        f"iperf3/r0{n}.json" for n in range(1, 6)
    }
    assert all(p.stat().st_size > 100 for p in written)
    assert not list(tmp_path.rglob("*.part"))
    # Again over the old ones, from a bench at hand.
    assert {p.name for p in report.write_all(tmp_path, mixed())} == {p.name for p in written}


@pytest.mark.parametrize(
    "content",
    [
        bench([], info=None, ended=""),
        bench([failed()], info=None, error=ErrorInfo(kind="interrupted", text="interrupted")),
        bench([run(with_intervals=False)]),
        bench([RunResult(id="r01", test=records.Test(name="x"))]),
        bench(
            [
                RunResult(
                    id="r01",
                    test=records.Test(name="x"),
                    board=BoardResult(version=3, role="client", proto="tcp", mode="send"),
                )
            ]
        ),
        bench([run(bps=0.1)], started="not a time"),
        virtual_bench(time="virtual"),
        hostile_bench(),
    ],
    ids=["empty", "failed", "no intervals", "no results", "empty results", "no bytes", "virtual", "hostile"],
)
def test_write_all_has_a_report_for_everything(tmp_path, content):
    report.write_all(tmp_path, content)
    check_junit((tmp_path / "junit.xml").read_text(encoding="utf-8")) if content.started[:2] == "20" else None
    for path in (tmp_path / "iperf3").glob("*"):
        json.loads(path.read_text(encoding="utf-8"))
    assert all(tmp_path in p.resolve().parents for p in tmp_path.rglob("*"))


def test_a_run_cannot_write_outside_its_folder(tmp_path):
    a_run = run()
    a_run.id = "../../evil"
    folder = tmp_path / "results"
    folder.mkdir()
    report.write_all(folder, bench([a_run]))
    assert [p.name for p in tmp_path.iterdir()] == ["results"]
    assert (folder / "iperf3" / "_evil.json").exists()


def test_a_missing_or_damaged_folder_is_one_line(tmp_path):
    with pytest.raises(UpyperfError, match=r"holds no results\.json") as missing:
        report.write_all(tmp_path)
    (tmp_path / "results.json").write_text('{"schema_version": 1')
    with pytest.raises(UpyperfError, match="cannot be read") as damaged:
        report.write_all(tmp_path)
    for caught in (missing, damaged):
        assert caught.value.kind == "config"
        assert "\n" not in caught.value.text
