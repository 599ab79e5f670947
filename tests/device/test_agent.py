"""The agent: whatever iperf does, records come, in order, and can be had again."""

import json
import sys

import iperf
from iperf import agent, frames
from iperf.errors import IperfError


class Fake:
    """A result as iperf gives it."""

    def __init__(self, rows=2, error=None):
        self.intervals = [{"id": 1, "start_us": n, "end_us": n + 1, "bytes": n} for n in range(rows)]
        self.heap = None
        self.error = error

    def rows(self):
        return iter(self.intervals)

    def to_dict(self, intervals=True):
        return {
            "version": 3,
            "role": "client",
            "intervals": self.intervals,
            "heap": self.heap,
            "error": self.error,
        }


def answers(call):
    """The records that a call sends, checked for sequence, length and CRC."""
    parts = []

    class Out:
        def write(self, text):
            parts.append(text)

    plain = frames.Writer

    def writer(out=None):
        return plain(Out())

    agent.Writer = writer
    try:
        call()
    finally:
        agent.Writer = plain
    records = []
    for seq, line in enumerate("".join(parts).split("\n")[:-1]):
        mark, number, length, crc, body = line.split(" ", 4)
        assert mark == "#U" and int(number) == seq
        assert int(length) == len(body)
        assert int(crc, 16) == frames.crc32(body.encode()) & 0xFFFFFFFF
        records.append(json.loads(body))
    assert records[-1]["k"] == "done"
    assert records[-1]["records"] == len(records)
    return records


def with_client(client, job, role="client"):
    saved = iperf.client, iperf.server
    iperf.client = iperf.server = client
    try:
        return answers(lambda: agent.run(json.dumps(job)))
    finally:
        iperf.client, iperf.server = saved


def job(**more):
    d = {"id": "r07", "role": "client", "live": False, "options": {"host": "192.0.2.1", "time": 2}}
    d.update(more)
    return d


def kinds(records):
    return [r["k"] for r in records]


def good(host, **kw):
    kw["on_event"]("start", {"role": "client", "options": {"time": kw["time"]}, "adapted": []})
    kw["on_event"]("connected", {"local": ["192.0.2.2", 1], "remote": [host, 2], "streams": 1})
    kw["on_event"]("interval", {"id": 1, "bytes": 5})
    return Fake()


def test_order_and_run_of_the_records():
    records = with_client(good, job())
    assert kinds(records) == ["start", "connected", "interval", "interval", "result", "done"]
    assert all(r["run"] == "r07" for r in records)
    assert records[-1]["status"] == "ok"
    assert "intervals" not in records[4]


def test_live_rows_come_at_once_and_not_twice():
    records = with_client(good, job(live=True))
    assert kinds(records) == ["start", "connected", "interval", "result", "done"]
    assert records[2]["bytes"] == 5


def test_again_says_the_same():
    first = with_client(good, job())
    assert answers(agent.again) == first
    assert answers(agent.again) == first


def test_again_after_a_live_run_has_the_rows_of_the_ring():
    with_client(good, job(live=True))
    assert kinds(answers(agent.again)) == ["start", "connected", "interval", "interval", "result", "done"]


def test_error_of_iperf_keeps_what_was_measured():
    def refused(host, **kw):
        error = IperfError("refused", "nobody listens", 111)
        error.result = Fake(rows=1, error={"kind": "refused", "text": "nobody listens"})
        raise error

    records = with_client(refused, job())
    assert kinds(records) == ["interval", "result", "error", "done"]
    assert records[2]["kind"] == "refused"
    assert records[2]["errno"] == 111
    assert records[3]["status"] == "error"


def test_no_exception_gets_out():
    raised = [
        (MemoryError("memory allocation failed, allocating 99 bytes"), "memory"),
        (KeyboardInterrupt(), "interrupted"),
        (OSError(113), "protocol"),
        (KeyError("nope"), "protocol"),
    ]
    for exception, kind in raised:

        def fails(host, exception=exception, **kw):
            raise exception

        records = with_client(fails, job())
        assert kinds(records) == ["error", "done"]
        assert records[0]["kind"] == kind, exception
        assert "\n" not in records[0]["text"]


def test_job_that_is_no_job():
    assert answers(lambda: agent.run("{"))[0]["k"] == "error"
    records = with_client(good, job(role="spectator"))
    assert records[0]["kind"] == "usage"
    assert "spectator" in records[0]["text"]
    assert with_client(good, job(options={}))[0]["kind"] == "usage"


def test_server_reports_its_last_test():
    def serve(**kw):
        assert "host" not in kw
        kw["on_event"]("start", {"role": "server", "options": {}, "adapted": []})
        result = Fake()
        kw["on_event"]("test", result)
        return [Fake(0), result]

    records = with_client(serve, job(role="server", options={"one_off": True}))
    assert kinds(records) == ["start", "interval", "interval", "result", "done"]


def test_server_test_that_failed_is_an_error():
    def serve(**kw):
        kw["on_event"]("error", {"kind": "closed", "text": "gone", "errno": None})
        return []

    records = with_client(serve, job(role="server", options={}))
    assert kinds(records) == ["error", "done"]
    assert records[0]["kind"] == "closed"


def test_busy_notes_become_log_records():
    def busy(host, **kw):
        kw["on_event"]("text", {"text": "the server is busy"})
        return Fake(0)

    records = with_client(busy, job())
    assert kinds(records) == ["log", "result", "done"]


def test_info_says_what_the_board_is():
    records = answers(agent.info)
    assert kinds(records) == ["board", "done"]
    board = records[0]
    for key in ("micropython", "machine", "platform", "mpy", "heap_free", "heap_alloc", "layers", "lwip",
                "nics", "rssi", "unique_id", "iperf"):  # fmt: skip
        assert key in board
    assert board["layers"][0] == "socket"
    assert board["platform"] == sys.platform
    assert board["iperf"] == iperf.__version__
    assert board["micropython"].startswith(sys.implementation.name)


def test_heap_is_in_the_result_where_it_can_be_told():
    import gc

    result = next(r for r in with_client(good, job()) if r["k"] == "result")
    if hasattr(gc, "mem_free"):
        assert result["heap"]["free_before"] > 0 and result["heap"]["free_after"] > 0
    else:
        assert result["heap"] is None


def test_again_before_anything_ran():
    saved = agent._last
    agent._last = None
    try:
        records = answers(agent.again)
    finally:
        agent._last = saved
    assert kinds(records) == ["error", "done"]
