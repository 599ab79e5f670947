"""Frames: one ASCII line a record, whatever is in it."""

import json

from iperf import frames


class Out:
    def __init__(self):
        self.text = ""

    def write(self, part):
        self.text += part


def line_of(record, seq=0):
    head, body = frames.encode(seq, record)
    return head + body


def parts(line):
    mark, seq, length, crc, body = line.split(" ", 4)
    assert mark == "#U"
    return int(seq), int(length), crc, body


def test_known_frame():
    # CRC-32 of {"k": "done"} by zlib
    assert line_of({"k": "done"}, 7) == '#U 7 13 10b16d76 {"k": "done"}'


def test_crc_fallback_agrees_with_the_known_value():
    assert frames.crc32(b"123456789") & 0xFFFFFFFF == 0xCBF43926


def test_everything_is_ascii_without_line_ends():
    text = 'p&\u00e4"\'\n\r\t\u6f22 \x04\x7f\U0001f600'
    line = line_of({"k": "log", "text": text})
    assert all(32 <= ord(c) < 127 for c in line)
    _, length, _, body = parts(line)
    assert len(body) == length
    assert "\\u00e4" in body and "\\u6f22" in body and "\\ud83d\\ude00" in body
    assert "\\u007f" in body


def test_plain_text_survives():
    line = line_of({"k": "log", "text": 'a "quoted" \\ line'})
    assert json.loads(parts(line)[3])["text"] == 'a "quoted" \\ line'


def test_writer_counts():
    out = Out()
    w = frames.Writer(out)
    for i in range(3):
        w.send({"k": "log", "n": i})
    lines = out.text.split("\n")
    assert len(lines) == 4 and lines[3] == ""
    assert [parts(line)[0] for line in lines[:3]] == [0, 1, 2]
    assert w.seq == 3


def test_long_record():
    line = line_of({"k": "log", "text": "x" * 20001})
    assert parts(line)[1] > 20001
