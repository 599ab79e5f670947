"""report.html: parsed, followed, and tried with what may break it."""

import re
from html.parser import HTMLParser

import pytest
from bench_builder import HOSTILE, bench, failed, hostile_bench, intervals, mixed, run, virtual_bench
from upyperf.analysis import figures, repeats
from upyperf.report import html, plots, svg

VOID = {"meta", "br", "link", "img", "hr", "input"}


class Page(HTMLParser):
    """Tags, ids, references and text; fails on a tag that is closed out of order."""

    def __init__(self, content):
        super().__init__()
        self.open, self.tags, self.ids, self.references, self.links, self.words = [], [], [], [], [], []
        self.classes = []
        self.feed(content)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.note(tag, dict(attrs))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.note(tag, dict(attrs))

    def note(self, tag, attrs):
        self.tags.append(tag)
        if "id" in attrs:
            self.ids.append(attrs["id"])
        self.classes += (attrs.get("class") or "").split()
        for name, value in attrs.items():
            assert not name.startswith("on"), name
            if name.startswith("aria-") and name.endswith("by"):
                self.references += value.split()
            elif name in ("href", "xlink:href", "src"):
                self.links.append(value)
            elif value and "url(" in value:
                self.references += re.findall(r"url\(#([^)]*)\)", value)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style",):
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


@pytest.fixture(scope="module")
def page():
    return Page(html.render(mixed()))


def check(page):
    """What holds for every report: unique ids, references that lead somewhere, nothing from a network."""
    assert len(page.ids) == len(set(page.ids))
    assert set(page.references) <= set(page.ids)
    assert not {"script", "iframe", "object", "link", "img", "base", "form"} & set(page.tags)
    for link in page.links:
        assert re.fullmatch(r"#[\w.-]+|[a-z]+\.(json|csv|md|xml|jsonl)", link), link
        if link.startswith("#"):
            assert link[1:] in page.ids


def test_self_contained_and_whole(page):
    check(page)
    assert page.tags[0] == "html"
    assert {"wide", "narrow"} <= set(page.classes)


def test_figures_are_on_the_page(page):
    for words in (
        "5 runs: 4 ok, 1 error", "94.1 Mbit/s (112 MiB in 10.0 s)", "Peer, iperf3 3.12", "5.18 %",
        "refused: nothing listens at 192.0.2.1 port 5201", "1460 B of payload in 1538 B on the wire",
        "No intervals were recorded.", "Board receives",
    ):  # fmt: skip
        assert words in page.text, words


def test_environment_is_on_the_page(page):
    """Two boards alike differ fivefold by settings that nobody wrote down (R1)."""
    for words in (
        "1.24.1", "STM32F4DISC with STM32F407", "TCP_WND 5840", "heap free 96.0 KiB", "02:00:00:00:00:01",
        "iperf3 3.12", "stm32f407-v1.24.1.bin", "upyperf bench stm32f407", "eagain 17", "retries",
        "time 10 s",
    ):  # fmt: skip
        assert words.lower() in page.text.lower(), words


def test_plots_have_titles_descriptions_and_real_text(page):
    # One overview and a curve for r01 to r03, each wide and narrow.
    assert page.tags.count("svg") == 8
    assert page.tags.count("title") == 9  # the page's own too
    assert page.tags.count("desc") == 8
    assert "Rate over time, iPerf 3 UDP receive" in page.text
    assert "10 intervals, from " in page.text
    for words in ("Mbit/s", "seconds", "loss %"):
        assert words in page.words


def test_colours_are_the_pages_own():
    content = html.render(bench([run()]))
    drawn = content[content.index("<svg") :]
    assert "var(--board)" in drawn
    assert not re.findall(r"(?:fill|stroke): ?#(?!000000)[0-9a-f]{6}", drawn)
    assert "prefers-color-scheme: dark" in content
    assert "@media print" in content


def test_hostile_strings_are_shown_and_not_run():
    content = html.render(hostile_bench())
    page = Page(content)
    check(page)
    assert "<script" not in content.lower()
    assert "{{" in content  # not evaluated
    assert "49" not in re.findall(r"`x` \$x_1\$ (\S+)", page.text)
    assert not set(content) & {"\x1b", "\x04", "\x00", "\u202e"}
    assert page.text.count("alert(1)") > 15


def test_a_title_cannot_end_the_title():
    a_bench = bench([run()])
    a_bench.board.name = "</title><script>alert(1)</script>"
    check(Page(html.render(a_bench)))


def test_virtual_marks():
    page = Page(html.render(virtual_bench(time="virtual")))
    assert "not of any hardware" in page.text
    assert "exempt (virtual time)" in page.text
    assert "mark" in page.classes
    assert "flag" not in page.classes


def test_repeats_have_a_table_and_a_plot():
    page = Page(
        html.render(bench([run(n, bps=v * 1e6, repeat=n) for n, v in enumerate((94, 93, 95, 94), 1)]))
    )
    check(page)
    assert "Repeats of each test" in page.text
    assert "iPerf 3 TCP send #4" in page.text


def test_many_runs_are_drawn_once_each(monkeypatch):
    monkeypatch.setattr(html, "MANY_RUNS", 1)
    page = Page(html.render(bench([run(1), run(2, 2)])))
    check(page)
    assert page.tags.count("svg") == 2 + 2  # the overview for both widths, the curves for one


def test_runs_with_the_same_id_still_have_anchors_of_their_own():
    runs = [run(1), run(1, 2)]
    check(Page(html.render(bench(runs))))


def test_a_run_of_ten_hours_stays_small():
    long = run()
    long.board.intervals = intervals(94e6, 36_000, True, udp=False, block=4096)
    long.peer.intervals = intervals(94e6, 36_000, False, udp=False, block=4096, wobble=0.3)
    content = html.render(bench([long]))
    check(Page(content))
    assert len(content) < 400_000
    assert "36000 intervals" in content


def test_shrinking_keeps_mean_and_extremes():
    points = figures.curve(intervals(94e6, 36_000, True, udp=False, block=4096, wobble=0.3), True)
    points[17_777] = figures.Point(points[17_777].start_s, points[17_777].end_s, 1.0)
    shrunk = plots.shrink(points)
    assert len(shrunk.mean) == plots.MAX_POINTS
    assert (shrunk.starts[0], shrunk.ends[-1]) == (0, 36_000)
    assert min(shrunk.low) == 1.0  # the one stall of a second is still seen
    whole = sum(p.bps for p in points) / len(points)
    assert sum(shrunk.mean) / len(shrunk.mean) == pytest.approx(whole)
    assert shrunk.grouped
    assert not plots.shrink(points[:100]).grouped
    assert plots.shrink([]).mean == []


def test_the_same_bench_gives_the_same_page():
    content = bench([run(proto="udp", bps=9e6, lost=5)])
    assert html.render(content) == html.render(content)


def test_an_error_before_any_run():
    page = Page(html.render(bench([], info=None, started="?", ended="")))
    check(page)
    assert "the board did not answer" in page.text
    page = Page(html.render(bench([failed(text=HOSTILE)])))
    assert "no figure" not in page.words


def test_both_ends_have_a_curve_in_every_direction():
    for mode in ("send", "receive"):
        content = html.render(bench([run(mode=mode)]))
        curve = content[content.index('id="run1-0-w-title"') :]
        curve = curve[: curve.index("</svg>")]
        assert "stroke: var(--board)" in curve
        assert "stroke: var(--peer)" in curve


def test_loss_is_drawn_from_the_receivers_rows():
    for mode in ("send", "receive"):
        assert "loss %" in Page(html.render(bench([run(proto="udp", mode=mode, bps=90e6, lost=400)]))).words
        assert "loss %" not in Page(html.render(bench([run(proto="udp", mode=mode, bps=90e6)]))).words


def test_a_missing_interval_is_a_gap_in_the_curve():
    points = [figures.Point(n, n + 1, 8.0) for n in (0, 1, 4)]
    x, y = plots.shrink(points).steps([8.0] * 3, 1.0, 1.0)
    assert x == [0, 1, 2, 2, 4, 5]
    assert [str(v) for v in y] == ["8.0", "8.0", "8.0", "nan", "8.0", "8.0"]


def test_loss_of_parallel_streams_is_that_of_all_together():
    rows = [
        i
        for s in (1, 3)
        for i in intervals(9e6, 3, False, udp=True, block=1000, lost=30 * s, stream=s, wobble=0)
    ]
    # 10 and 30 of 2 x 1125 datagrams in each second
    assert [round(p.bps, 3) for p in plots._loss_points(rows)] == [round(100 * 40 / 2250, 3)] * 3
    a_run = run(proto="udp", mode="receive", bps=9e6, lost=50)
    a_run.board.intervals += intervals(9e6, 10, False, udp=True, block=1458, lost=90, stream=4)
    assert "loss %" in Page(html.render(bench([a_run]))).words


def test_omitted_time_is_named_and_long_runs_have_hours():
    assert "omitted (-O)" in Page(html.render(bench([run(omit=2)]))).words
    assert [plots.time_unit(s)[0] for s in (10, 179, 180, 10_799, 10_800)] == [
        "seconds", "seconds", "minutes", "minutes", "hours",
    ]  # fmt: skip


def test_a_dollar_in_a_plot_is_a_dollar():
    figure = plots.repeats_figure(["$x_1$"], [repeats.summarise([1e6, 2e6])])
    assert "$x_1$" in Page(svg.inline(figure, "p-", "$t$", "d")).text
