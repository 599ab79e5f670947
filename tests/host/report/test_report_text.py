"""The table for terminals, summary.md and the CSV files."""

import csv
import io
import re

import pytest
from bench_builder import bench, failed, hostile_bench, mixed, run, virtual_bench
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from upyperf.records import ErrorInfo
from upyperf.report import clean, csvfiles, markdown, text


def line_of(out, start):
    (line,) = [line for line in out.splitlines() if line.startswith(start)]
    return line


def test_the_table_by_hand():
    """Retries, ENOMEM and loss are columns (R7), the bound stands beside the figure (R3)."""
    out = text.to_text(mixed())
    first = "r01 iPerf 3 TCP send 94.1 94.1 0.0 % – – 31/2 94.9 wire ██████████"
    assert " ".join(line_of(out, "r01").split()) == first
    # 90 Mbit/s for 10 s in datagrams of 1458 B: 77 160, of which 4000 are lost: 5.18 %, 85.3 Mbit/s.
    udp = line_of(out, "r02").replace("\u202f", "")
    lossy = "r02 iPerf 3 UDP receive 85.3 90.0 0.0 % 88 µs 4000/77160 (5.18 %) – 90.0 -b ██████████"
    assert " ".join(udp.split()) == lossy
    assert "60.0    51.0  15.0 % !" in line_of(out, "r03")
    assert line_of(out, "r04").split()[-1] == "refused"
    assert out.splitlines()[-1] == "5 runs: 4 ok, 1 error"
    assert "error: r04 iPerf 2 UDP send: refused: nothing listens at 192.0.2.1 port 5201" in out
    assert "warning: r03 iPerf 2 TCP send: the ends differ by 15.0 %" in out


def test_plain_when_piped_and_coloured_on_a_terminal():
    piped = io.StringIO()
    text.write(mixed(), piped)
    assert "\x1b" not in piped.getvalue()
    assert all(line == line.rstrip() for line in piped.getvalue().splitlines())

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    text.write(mixed(), terminal)
    assert "\x1b[" in terminal.getvalue()


def test_a_pipe_that_takes_ascii_only_ends_in_no_error():
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii")
    text.write(mixed(), out)
    out.flush()
    assert b"94.1" in raw.getvalue()


@pytest.mark.parametrize("width", [60, 80, 100, 120, 200])
def test_a_narrow_terminal_leaves_columns_out_but_cuts_no_figure(width):
    console = Console(width=width, file=io.StringIO(), force_terminal=False)
    text.print_bench(mixed(), console)
    out = console.file.getvalue()
    assert "…" not in out
    assert max(len(line) for line in out.splitlines()) <= width
    for figure in ("94.1", "85.3", "5.18 %", "15.0 % !", "refused", "iPerf 3 TCP bidir receive"):
        assert figure in out, figure
    assert ("31/2" in out) == (width >= 80)
    assert ("4\u202f000/77\u202f160" in out) == (width >= 120)


def test_virtual_boards_and_virtual_time_are_marked():
    out = text.to_text(virtual_bench(time="virtual"))
    assert "exempt" in line_of(out, "r01")
    assert "!" not in line_of(out, "r01")
    assert "virtual time" in out
    assert "not of any hardware" in text.to_text(virtual_bench())


def test_repeats_are_summed_up():
    runs = [run(n, bps=v * 1e6, repeat=n) for n, v in enumerate((94, 93, 95, 94), 1)]
    out = text.to_text(bench(runs))
    assert "iPerf 3 TCP send: 4 repeats, median 94.0 Mbit/s, MAD 500 kbit/s, mean 94.0 ± " in out
    assert "(95 % CI)" in out
    assert "iPerf 3 TCP send #4" in out


def test_what_ended_the_bench_is_said_once():
    no_board = ErrorInfo(kind="board", text="no board at /dev/ttyACM0: is it plugged in?")
    runs = [failed(n, "board", no_board.text, "skipped") for n in (1, 2, 3)]
    out = text.to_text(bench(runs, error=no_board, info=None))
    assert out.count("is it plugged in?") == 1
    assert "3 runs: 3 skipped" in out


def test_what_all_runs_say_alike_is_said_once_with_their_ids():
    def last_lines(count):
        return text.to_text(bench([failed(n, proto="udp") for n in range(1, count + 1)]))

    assert "error: r01 iPerf 3 UDP send: refused: nothing listens" in last_lines(1)
    assert "error: r01, r02, r03, r04: refused: nothing listens" in last_lines(4)
    assert "error: r01, r02, r03 and 5 more: refused: nothing listens" in last_lines(8)
    assert last_lines(8).count("nothing listens") == 1


def test_notes_of_the_runner_are_not_said_twice():
    a_run = run(peer_bps=80e6)
    a_run.board.adapted = ["datagrams of 1400 B, the limit of the chip"]
    from upyperf.analysis.ends import explain

    a_run.notes = [explain(a_run.directions[0], "tcp"), *a_run.board.adapted, "a note"]
    out = text.to_text(bench([a_run]))
    assert out.count("the ends differ") == 1
    assert out.count("1400 B") == 1
    assert out.count("a note") == 1


def test_an_empty_bench_has_a_report():
    for render in (text.to_text, markdown.render, csvfiles.results, csvfiles.intervals):
        assert render(bench([], info=None, error=ErrorInfo(kind="flash", text="no")))


def test_hostile_strings_cannot_steer_a_terminal():
    out = text.to_text(hostile_bench())
    assert not set(out) & {"\x1b", "\x04", "\x00", "\u202e", "\r"}
    assert "alert(1)" in out  # shown as what it is


def test_hostile_strings_stay_text_in_markdown():
    out = markdown.render(hostile_bench())
    assert "<script" not in out
    assert "</script" not in out
    assert "@user" not in out
    assert not re.search(r"(?<!\\)\]\(http", out)
    assert not set(out) & {"\x1b", "\x04", "\x00", "\u202e"}
    rows = [line for line in out.splitlines() if line.startswith("|")]
    assert {line.replace("\\|", "").count("|") for line in rows} == {9}


def test_markdown_table():
    """What people would else paste by hand into a pull request (R5), with what it ran on (R1)."""
    out = markdown.render(mixed())
    assert "| iPerf 3 TCP send | 94.1 | 94.1 | 0.0 % | – | – | 31/2 | 94.9 wire |" in out
    assert "| iPerf 2 TCP send | 60.0 | 51.0 | **15.0 %** ⚠ | – | – | 31/2 | 94.9 wire |" in out
    assert "| iPerf 2 UDP send | **refused** |  |  |  |  |  |  |" in out
    assert "### upyperf: stm32f407, 5 runs: 4 ok, 1 error" in out
    assert "MicroPython 1.24.1" in out
    assert "TCP\\_WND 5840" in out


def read(content):
    return list(csv.DictReader(io.StringIO(content)))


def test_results_csv():
    rows = read(csvfiles.results(mixed()))
    assert [(r["run"], r["direction"]) for r in rows] == [
        ("r01", "send"), ("r02", "receive"), ("r03", "send"), ("r04", "send"), ("r05", "send"),
        ("r05", "receive"),
    ]  # fmt: skip
    # 94.1 Mbit/s for 10 s in blocks of 4096 B: 28 717 blocks.
    assert rows[0]["board_bytes"] == str(28717 * 4096)
    assert float(rows[0]["board_bits_per_second"]) == 28717 * 4096 * 8 / 10
    assert (rows[0]["retries"], rows[0]["enomem"], rows[0]["jitter_ms"]) == ("31", "2", "")
    assert (rows[1]["lost_packets"], rows[1]["packets"], rows[1]["jitter_ms"]) == ("4000", "77160", "0.088")
    assert rows[2]["flagged"] == "true"
    assert (rows[3]["status"], rows[3]["error_kind"], rows[3]["board_bits_per_second"]) == (
        "error",
        "refused",
        "",
    )


def test_intervals_csv():
    rows = read(csvfiles.intervals(mixed()))
    assert {(r["run"], r["end"]) for r in rows} == {
        (r, e) for r in ("r01", "r02", "r03") for e in ("board", "peer")
    }
    first = rows[0]
    assert (first["start_s"], first["end_s"], first["board_sends"], first["omitted"]) == (
        "0.0",
        "1.0",
        "true",
        "false",
    )
    assert float(first["bits_per_second"]) == int(first["bytes"]) * 8


def test_csv_holds_nothing_that_a_spreadsheet_would_run():
    a_run = run(name='=HYPERLINK("http://x")')
    a_run.peer.program = "@SUM(1)"
    a_run.notes = ["-1+1"]
    row = read(csvfiles.results(bench([a_run], id="+cmd|' /C calc'!A0")))[0]
    for cell in row.values():
        assert cell[:1] not in ("=", "+", "@")
    content = csvfiles.results(hostile_bench())
    assert len(read(content)) == 2
    assert not set(content) & {"\x1b", "\x04", "\x00"}


@given(st.text())
def test_clean_text_is_one_harmless_line(value):
    out = clean.one_line(value)
    assert len(out.splitlines()) <= 1
    assert not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in out)
    out.encode("utf-8")
    assert clean.one_line(out) == out


def test_escapes_go_whole():
    assert clean.one_line("a\x1b[31;1mb\x1b[0m \x1b]0;title\x07c") == "ab c"
    assert clean.one_line("a\r\n\tb") == "a b"
    assert clean.one_line("x" * 600, 10) == "x" * 9 + "…"
    assert clean.lines("a\r\nb\tc\x1b[2J\x04") == "a\nb\tc\ufffd"
    assert clean.one_line("\ud800") == "\ufffd"
