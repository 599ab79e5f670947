"""The host's side of frames: gaps, damage, second passes; and the device's frames are understood."""

import json
import sys
import zlib

import pytest
from upyperf.frames import JobRecords, TornFrame, decode
from upyperf.paths import firmware_package


def frame(seq, record):
    body = json.dumps(record)
    return f"#U {seq} {len(body)} {zlib.crc32(body.encode()):08x} {body}"


def job(count=3):
    records = [{"k": "start"}, *({"k": "interval", "n": n} for n in range(count))]
    records.append({"k": "done", "status": "ok", "records": len(records) + 1})
    return [frame(seq, record) for seq, record in enumerate(records)]


@pytest.mark.parametrize(
    ("damage", "how"),
    [
        (lambda line: line[:-1], "of"),
        (lambda line: line + "x", "of"),
        (lambda line: line.replace("start", "stort"), "wrong CRC"),
        (lambda line: "#U 0 no", "no frame header"),
    ],
)
def test_damage_is_told(damage, how):
    with pytest.raises(TornFrame, match=how):
        decode(damage(frame(0, {"k": "start"})))


def test_frame_that_is_no_record_is_torn():
    body = "[1]"
    with pytest.raises(TornFrame, match="no record"):
        decode(f"#U 0 3 {zlib.crc32(body.encode()):08x} {body}")


def test_complete_job():
    seen, output = [], []
    records = JobRecords(seen.append, output.append)
    for line in ["hello", *job(), "bye"]:
        records.feed(line + "\r\n")
    assert records.complete
    assert [r["k"] for r in seen] == ["start", "interval", "interval", "interval", "done"]
    assert output == ["hello", "bye"]


@pytest.mark.parametrize("lost", [0, 2, 4])
def test_lost_line_is_seen_and_second_pass_fills_it(lost):
    lines = job()
    seen = []
    records = JobRecords(seen.append)
    for number, line in enumerate(lines):
        if number != lost:
            records.feed(line)
    assert not records.complete
    assert records.missing == (None if lost == 4 else [lost])
    for line in lines:
        records.feed(line)
    assert records.complete
    assert len(seen) == len(lines)
    assert len(records.of_kind("interval")) == 3


def test_output_without_newline_before_a_frame():
    output = []
    records = JobRecords(None, output.append)
    records.feed("partial" + frame(0, {"k": "done", "records": 1}))
    assert output == ["partial"]
    assert records.complete


def test_two_frames_in_one_line_lose_only_the_first():
    records = JobRecords()
    records.feed(frame(0, {"k": "start"})[:-3] + frame(1, {"k": "log"}))
    assert list(records.records) == [1]
    assert records.torn == 1


def test_device_frames_are_understood():
    sys.path.insert(0, str(firmware_package().parent))
    try:
        from iperf import frames
    finally:
        sys.path.pop(0)
    record = {"k": "log", "text": "p&ä\"'\n漢 \x04 😀", "n": 1.5, "none": None}
    head, body = frames.encode(7, record)
    assert decode(head + body) == (7, record)
