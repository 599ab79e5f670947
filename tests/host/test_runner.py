"""Running tests with a board that misbehaves: torn and lost records, silence, errors, interrupts."""

import json
import zlib

import pytest
from upyperf import boards, plan, runner
from upyperf.bench import exit_code, server_address
from upyperf.errors import UpyperfError
from upyperf.records import BoardInfo, ErrorInfo, NetworkRef, RunResult
from upyperf.session import Access, Session
from upyperf.sink import Sink

RESULT = {
    "version": 3, "role": "client", "proto": "tcp", "mode": "send",
    "sent": {"bytes": 125_000, "us": 1_000_000},
    "peer_received": {"bytes": 124_000, "us": 1_000_000}, "adapted": ["length 1400"], "streams": [],
    "counters": {"enomem": 4}, "heap": {"free_before": 9, "free_after": 8},
}  # fmt: skip
ROW = {"id": 1, "sender": True, "start_us": 0, "end_us": 1_000_000, "bytes": 125_000}


def frames(*records):
    records = [*records, {"k": "done", "status": "ok", "records": len(records) + 1}]
    lines = []
    for seq, record in enumerate(records):
        body = json.dumps({"run": "r01", **record})
        lines.append(f"#U {seq} {len(body)} {zlib.crc32(body.encode()):08x} {body}")
    return lines


GOOD = frames({"k": "start"}, {"k": "interval", **ROW}, {"k": "result", **RESULT})


class FakeLink:
    """Answers each exec with the next of `answers`: lines, or an exception."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.codes = []
        self.interrupted = 0
        self.rest = ""

    def exec(self, code, timeout, on_line=None):
        self.codes.append(code)
        assert timeout > 0
        for part in self.answers.pop(0) if self.answers else []:
            if isinstance(part, BaseException):
                raise part
            on_line(part)
        return ""

    def interrupt(self, timeout=None):
        self.interrupted += 1
        return self.rest

    def soft_reset(self, timeout=None):
        return ""


def execute(link, test=None, server=("192.0.2.1", 5201), time="wall"):
    """Run one test against a server elsewhere (so that no program starts)."""
    events = []
    board = boards.load("unix").model_copy(update={"time": time})
    session = Session(
        board, link, Sink(events.append), "dev", BoardInfo(), NetworkRef(), "192.0.2.1", "127.0.0.1", None,
        Access(server=server),
    )  # fmt: skip
    test = test or plan.make(3, "tcp", "send", "socket", {"time": 1.0})
    return runner.Execution(session, test, "r01"), events


def test_result_of_a_good_run():
    link = FakeLink(GOOD)
    execution, events = execute(link)
    result = execution.run()
    assert result.status == "ok"
    assert [e.kind for e in events] == ["run-start", "start", "interval", "result", "done", "run-end"]
    assert result.board.counters == {"enomem": 4}
    assert result.board.heap.free_after == 8
    assert [row.bytes for row in result.board.intervals] == [125_000]
    assert result.directions[0].board.bytes == 125_000
    assert result.directions[0].reported.bytes == 124_000
    assert result.directions[0].difference == pytest.approx(0.008)
    assert not result.flagged
    assert "length 1400" in result.notes
    job = json.loads(eval(link.codes[0].partition("agent.run(")[2][:-1]))
    assert job["options"]["host"] == "192.0.2.1"
    assert job["live"] is False


@pytest.mark.parametrize(
    "damaged",
    [
        [line for n, line in enumerate(GOOD) if n != 2],
        GOOD[:-1],
        [GOOD[0], GOOD[1][:-9], *GOOD[2:]],
        [],
    ],
    ids=["lost result", "lost end", "torn interval", "nothing"],
)
def test_lost_records_are_asked_for_again(damaged):
    link = FakeLink(damaged, GOOD)
    execution, events = execute(link)
    result = execution.run()
    assert link.codes[1] == "agent.again()"
    assert result.status == "ok"
    assert result.lost_records == 0
    assert result.board.intervals[0].bytes == 125_000
    assert sum(e.kind == "interval" for e in events) == 1


def test_records_that_never_come_are_counted_and_an_error():
    damaged = [line for n, line in enumerate(GOOD) if n != 1]
    execution, _ = execute(FakeLink(damaged, damaged, damaged, damaged))
    result = execution.run()
    assert len(execution.session.link.codes) == 1 + runner.ASK_AGAIN
    assert result.lost_records == 1
    assert (result.status, result.error.kind) == ("error", "protocol")
    assert result.board.sent.bytes == 125_000


def test_disagreement_is_flagged_and_virtual_time_is_exempt():
    far = {**RESULT, "peer_received": {"bytes": 100_000, "us": 1_000_000}}
    lines = frames({"k": "result", **far})
    result = execute(FakeLink(lines))[0].run()
    assert result.flagged
    assert any("the ends differ by 20" in note for note in result.notes)
    result = execute(FakeLink(lines), time="virtual")[0].run()
    assert not result.flagged
    assert result.directions[0].exempt == "virtual time"


@pytest.mark.parametrize(
    ("kind", "code"), [("refused", 5), ("busy", 5), ("memory", 3), ("unsupported", 2), ("protocol", 6)]
)
def test_error_of_the_board_keeps_what_was_measured(kind, code):
    lines = frames({"k": "result", **RESULT}, {"k": "error", "kind": kind, "text": "so it is", "errno": None})
    execution, events = execute(FakeLink(lines))
    result = execution.run()
    assert (result.status, result.error.kind) == ("error", kind)
    assert "so it is" in result.error.text
    assert result.board.sent.bytes == 125_000
    error = next(e for e in events if e.kind == "error")
    assert error.error == kind
    bench = type("B", (), {"error": None, "runs": [result]})
    assert exit_code(bench) == code


def test_unknown_kind_of_error_is_a_protocol_error():
    result = execute(FakeLink(frames({"k": "error", "kind": "weather", "text": "rain"})))[0].run()
    assert result.error.kind == "protocol"


def test_result_that_is_none_names_the_field():
    lines = frames({"k": "result", **{**RESULT, "sent": {"bytes": "many"}}})
    result = execute(FakeLink(lines))[0].run()
    assert result.error.kind == "protocol"
    assert "sent.bytes" in result.error.text


def test_board_that_hangs_is_interrupted_and_asked():
    hang = UpyperfError("board", "the board did not finish within 61 s")
    link = FakeLink([*GOOD[:1], hang], GOOD)
    execution, _ = execute(link)
    result = execution.run()
    assert link.interrupted == 1
    assert result.error.kind == "board"
    assert result.board.sent.bytes == 125_000


def test_lost_serial_line_ends_the_run():
    execution, events = execute(FakeLink([*GOOD[:2], UpyperfError("serial-lost", "gone")]))
    result = execution.run()
    assert (result.error.kind, result.status) == ("serial-lost", "error")
    assert [e.kind for e in events if e.source == "board"] == ["start", "interval"]
    assert len(execution.session.link.codes) == 1


def test_ctrl_c_keeps_what_the_board_still_says():
    link = FakeLink([GOOD[0], KeyboardInterrupt()])
    link.rest = "\n".join(GOOD[1:]) + "\n"
    execution, _ = execute(link)
    with pytest.raises(runner.Interrupted) as caught:
        execution.run()
    result = caught.value.result
    assert (result.status, result.error.kind) == ("interrupted", "interrupted")
    assert result.board.sent.bytes == 125_000
    assert link.interrupted == 1


def test_deadline_follows_the_test():
    short = plan.make(3, "tcp", "send", "socket", {"time": 1.0})
    long = plan.make(3, "tcp", "send", "socket", {"time": 600.0})
    assert runner.deadline_s(short, False) < 90
    assert runner.deadline_s(long, False) > 660
    assert runner.deadline_s(long, True) > 10 * 600


def test_first_failure_decides_the_exit_code():
    def run(kind, status="error"):
        test = plan.make(3, "tcp", "send", "socket", {})
        error = ErrorInfo(kind=kind, text="") if kind else None
        return RunResult(id="r", test=test, status=status, error=error)

    bench = type("B", (), {"error": None, "runs": [run(None, "ok"), run("busy"), run("protocol")]})
    assert exit_code(bench) == 5
    bench.runs = [run(None, "ok")]
    assert exit_code(bench) == 0
    bench.error = ErrorInfo(kind="interrupted", text="")
    assert exit_code(bench) == 130


@pytest.mark.parametrize(
    ("text", "expected"),
    [("h", ("h", None)), ("h:5001", ("h", 5001)), ("[::1]:5", ("::1", 5)), ("::1", ("::1", None))],
)
def test_server_addresses(text, expected):
    assert server_address(text) == expected


@pytest.mark.parametrize("text", ["", ":5", "h:0", "h:99999", "h:x", "[::1", "[::1]x", "a b", "h/x"])
def test_what_is_no_server(text):
    with pytest.raises(UpyperfError, match="write HOST or HOST:PORT"):
        server_address(text)
