"""The plots of a report: rate over time, loss over time, overview bars, repeats.

Each function returns a matplotlib Figure in the placeholder colours of `upyperf.report.svg`; no pyplot,
so no state is shared. Sizes are in CSS pixels (72 dpi, so that a point is a pixel). Margins are set by hand:
matplotlib's own layout engines draw every figure twice to find them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from upyperf.analysis.figures import Point, Row, clusters
from upyperf.analysis.repeats import Summary
from upyperf.analysis.units import format_rate
from upyperf.records import Interval
from upyperf.report.svg import COLOURS, RC

MAX_POINTS = 400
"""Longer curves are drawn as the mean of groups with a band from the lowest to the highest."""


@dataclass(frozen=True)
class Shrunk:
    """A curve of at most MAX_POINTS groups: start and end of each in seconds, rates in bit/s."""

    starts: list[float]
    ends: list[float]
    mean: list[float]
    low: list[float]
    high: list[float]

    @property
    def grouped(self) -> bool:
        """Whether a point stands for several intervals."""
        return self.low != self.high

    def steps(
        self, values: Sequence[float], time_scale: float, scale: float
    ) -> tuple[list[float], list[float]]:
        """Places and heights to draw `values` (of this curve) as steps; a missing interval is a gap."""
        x: list[float] = []
        y: list[float] = []
        for n, value in enumerate(values):
            x.append(self.starts[n] / time_scale)
            y.append(value / scale)
            last = n + 1 == len(values)
            if last or self.starts[n + 1] - self.ends[n] > 0.5 * (self.ends[n] - self.starts[n]):
                x.append(self.ends[n] / time_scale)
                y.append(value / scale)
                if not last:
                    x.append(self.ends[n] / time_scale)
                    y.append(math.nan)
        return x, y


def shrink(points: Sequence[Point], limit: int = MAX_POINTS) -> Shrunk:
    """Group a long curve evenly by interval count; the mean is weighted by the intervals' lengths."""
    groups = [list(points[i : i + 1]) for i in range(len(points))]
    if len(points) > limit:
        cuts = [i * len(points) // limit for i in range(limit + 1)]
        groups = [list(points[a:b]) for a, b in pairwise(cuts)]
    means = []
    for group in groups:
        length = sum(p.end_s - p.start_s for p in group)
        means.append(sum(p.bps * (p.end_s - p.start_s) for p in group) / length if length > 0 else 0.0)
    return Shrunk(
        starts=[g[0].start_s for g in groups],
        ends=[g[-1].end_s for g in groups],
        mean=means,
        low=[min(p.bps for p in g) for g in groups],
        high=[max(p.bps for p in g) for g in groups],
    )


def rate_unit(highest_bps: float) -> tuple[str, float]:
    """The unit for an axis that ends near `highest_bps`, and its size in bit/s."""
    for unit, scale in (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3)):
        if highest_bps >= scale:
            return unit, scale
    return "bit/s", 1.0


_WIDE, _NARROW = 720, 360


def _figure(
    narrow: bool, height: float, left: float, top: float, rows: Sequence[float] = (1,)
) -> tuple[Figure, Any]:
    """A figure with one axes per row, below each other; height and margins in pixels."""
    width, right, bottom = (_NARROW if narrow else _WIDE), 14, 34
    figure = Figure(figsize=(width / 72, height / 72), dpi=72)
    axes = figure.subplots(
        len(rows),
        1,
        sharex=True,
        squeeze=False,
        gridspec_kw={
            "height_ratios": rows,
            "left": left / width,
            "right": 1 - right / width,
            "top": 1 - top / height,
            "bottom": bottom / height,
            "hspace": 0.16,
        },
    )
    return figure, axes[:, 0]


def _label_margin(labels: Sequence[str]) -> float:
    """Pixels that the longest label takes: a digit or lower-case letter of the font is about 0.6 em wide."""
    size: float = RC["font.size"]
    return 12 + 0.6 * size * max(len(label) for label in labels)


def _legend(axes: Any, handles: Sequence[Any] | None = None) -> None:
    """Above the plot, so that it hides nothing, and from the left edge, so that it fits a phone."""
    axes.legend(
        **({"handles": handles} if handles else {}),
        loc="upper left",
        bbox_to_anchor=(0, 1.0),
        bbox_transform=axes.figure.transFigure,
        ncols=4,
        frameon=False,
        borderaxespad=0.2,
        handlelength=1.8,
        columnspacing=1.4,
    )


def _bar_axes(labels: Sequence[str], narrow: bool) -> tuple[Figure, Any]:
    """Axes with one named line per label, the first at the top."""
    margin = min(_label_margin(labels), 0.45 * (_NARROW if narrow else _WIDE))
    figure, (axes,) = _figure(narrow, 64 + 30 * len(labels), margin, 26)
    axes.set_yticks(range(len(labels)), labels)
    for tick in axes.get_yticklabels():
        tick.set_color(COLOURS["fg"])
    axes.set_ylim(len(labels) - 0.5, -0.5)
    axes.grid(axis="x", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    return figure, axes


def _beside(axes: Any, x: float, y: float, words: str) -> None:
    """Words a little to the right of a point."""
    axes.annotate(words, (x, y), (6, 0), textcoords="offset points", va="center", color=COLOURS["muted"])


def time_unit(seconds: float) -> tuple[str, float]:
    """The unit for a time axis of that length, and its size in seconds."""
    for unit, scale in (("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 3 * scale:
            return unit, scale
    return "seconds", 1.0


def _draw(
    axes: Any, points: Sequence[Point], time_scale: float, scale: float, colour: str, label: str, dashed: bool
) -> None:
    shrunk = shrink(points)
    if shrunk.grouped:
        x, low = shrunk.steps(shrunk.low, time_scale, scale)
        _, high = shrunk.steps(shrunk.high, time_scale, scale)
        axes.fill_between(x, low, high, step="post", color=colour, alpha=0.22, linewidth=0)
    axes.plot(
        *shrunk.steps(shrunk.mean, time_scale, scale),
        drawstyle="steps-post",
        color=colour,
        linewidth=1.6,
        linestyle=(0, (4, 2)) if dashed else "solid",
        label=label,
    )


def _shade_omitted(axes: Any, points: Sequence[Point], time_scale: float) -> None:
    omitted = [p for p in points if p.omitted]
    if omitted:
        axes.axvspan(
            omitted[0].start_s / time_scale,
            omitted[-1].end_s / time_scale,
            color=COLOURS["shade"],
            linewidth=0,
            zorder=0,
            label="omitted (-O)",
        )


def _loss_points(intervals: Sequence[Interval]) -> list[Point]:
    """Loss in percent of all streams of the receiving end per interval, as points of a curve."""
    points = []
    for group in clusters([i for i in intervals if i.lost is not None and i.packets]):
        start, end = min(i.start_us for i in group), max(i.end_us for i in group)
        packets = sum(i.packets or 0 for i in group)
        if end > start and packets > 0:
            percent = 100.0 * sum(i.lost or 0 for i in group) / packets
            points.append(Point(start / 1e6, end / 1e6, percent))
    return points


def curve_figure(
    row: Row,
    board: Sequence[Point],
    peer: Sequence[Point],
    received: Sequence[Interval] = (),
    narrow: bool = False,
) -> Figure:
    """Rate over time of one direction: the board's curve, the peer's, and the bound where it is near.

    `received` are the receiver's intervals: where they tell of lost datagrams, a panel below shows them.
    """
    with mpl.rc_context(RC):
        loss = _loss_points(received)
        with_loss = any(p.bps > 0 for p in loss)
        figure, panels = _figure(narrow, 250 if with_loss else 200, 52, 24, (3, 1) if with_loss else (1,))
        axes, below = panels[0], panels[1] if with_loss else None
        highest = max((p.bps for p in (*board, *peer)), default=1.0)
        unit, scale = rate_unit(highest)
        last = max((p.end_s for p in (*board, *peer)), default=1.0)
        clock, second = time_unit(last)
        # The board below, the peer dashed above it: where both agree, both stay visible.
        if board:
            _draw(axes, board, second, scale, COLOURS["board"], "board", dashed=False)
        if peer:
            _draw(axes, peer, second, scale, COLOURS["peer"], "peer", dashed=bool(board))
        _shade_omitted(axes, board or peer, second)
        bound = row.bound
        top = max(highest / scale, 1e-9) * 1.15
        if bound is not None and bound.bps < 1.6 * highest:
            axes.axhline(
                bound.bps / scale,
                color=COLOURS["bound"],
                linewidth=1,
                linestyle=(0, (1, 2)),
                label="target rate" if bound.of_sender else "bound",
            )
            top = max(top, bound.bps / scale * 1.1)
        axes.set_ylim(0, top)
        axes.set_xlim(0, last / second)
        axes.set_ylabel(unit)
        axes.grid(axis="y", linewidth=0.6)
        axes.tick_params(length=3)
        _legend(axes)
        if below is not None:
            shrunk = shrink(loss)
            x, y = shrunk.steps(shrunk.high, second, 1.0)
            below.fill_between(x, y, step="post", color=COLOURS["bad"], alpha=0.75, linewidth=0)
            below.set_ylim(0, max(shrunk.high) * 1.25)
            below.set_ylabel("loss %")
            below.grid(axis="y", linewidth=0.6)
            below.tick_params(length=3)
        (below or axes).set_xlabel(clock)
        return figure


def overview_figure(rows: Sequence[Row], labels: Sequence[str], narrow: bool = False) -> Figure:
    """One pair of bars for each row, board above peer, with a mark at the bound where it is near."""
    with mpl.rc_context(RC):
        figure, axes = _bar_axes(labels, narrow)
        highest = max((v for r in rows for v in (r.board_bps, r.peer_bps) if v is not None), default=1.0)
        unit, scale = rate_unit(highest)
        marked = False
        for n, row in enumerate(rows):
            for shift, value, colour in (
                (-0.19, row.board_bps, COLOURS["board"]),
                (0.19, row.peer_bps, COLOURS["peer"]),
            ):
                if value is not None:
                    axes.barh(n + shift, value / scale, height=0.34, color=colour)
            if row.board_bps is None and row.peer_bps is None:
                _beside(axes, 0, n, "no figure")
                continue
            end = max(v for v in (row.board_bps, row.peer_bps) if v is not None) / scale
            if row.bound is not None and 0.02 * highest < row.bound.bps < 1.3 * highest:
                place = row.bound.bps / scale
                axes.plot([place, place], [n - 0.42, n + 0.42], color=COLOURS["bound"], linewidth=1.6)
                marked, end = True, max(end, place)
            # The figure itself, since bars of very unequal tests say little: kbit/s beside Gbit/s.
            _beside(axes, end, n, format_rate(row.delivered_bps))
        axes.set_xlim(0, max(highest / scale, 1e-9) * (1.5 if narrow else 1.16))
        axes.set_xlabel(unit)
        handles: list[Any] = [Patch(color=COLOURS[end], label=end) for end in ("board", "peer")]
        if marked:
            handles.append(Line2D([], [], color=COLOURS["bound"], linewidth=1.6, label="bound"))
        _legend(axes, handles)
        return figure


def repeats_figure(names: Sequence[str], summaries: Sequence[Summary], narrow: bool = False) -> Figure:
    """Every repeat as a dot, the mean with its 95 % interval as a bar, the median as a line."""
    with mpl.rc_context(RC):
        figure, axes = _bar_axes(names, narrow)
        unit, scale = rate_unit(max(s.high for s in summaries))
        for n, s in enumerate(summaries):
            if s.ci is not None:
                axes.plot([v / scale for v in s.ci], [n, n], color=COLOURS["peer"], linewidth=6, alpha=0.55)
            place = s.median / scale
            axes.plot([place, place], [n - 0.28, n + 0.28], color=COLOURS["fg"], linewidth=1.2)
            axes.plot([v / scale for v in s.values], [n] * s.n, "o", color=COLOURS["board"], markersize=4)
        axes.set_xlim(0, max(max(s.high for s in summaries) / scale, 1e-9) * 1.05)
        axes.set_xlabel(unit)
        handles = [
            Line2D([], [], color=COLOURS["board"], marker="o", markersize=4, linewidth=0, label="run"),
            Line2D([], [], color=COLOURS["peer"], linewidth=6, alpha=0.55, label="95 % CI of the mean"),
            Line2D([], [], color=COLOURS["fg"], linewidth=1.2, label="median"),
        ]
        _legend(axes, handles)
        return figure
