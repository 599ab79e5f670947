"""The plots of a report: rate over time, loss over time, overview bars, repeats.

Each function returns a matplotlib Figure in the placeholder colours of `upyperf.report.svg`; no pyplot,
so no state is shared and any thread may draw. Sizes in inches at 72 dpi: one point is one CSS pixel.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from upyperf.analysis.figures import Point, Row
from upyperf.analysis.repeats import Summary
from upyperf.records import Interval
from upyperf.report.svg import COLOURS, RC

MAX_POINTS = 400
"""Longer curves are drawn as the mean of groups with a band from the lowest to the highest."""


@dataclass(frozen=True)
class Shrunk:
    """A curve of at most MAX_POINTS groups: edges in seconds (one more than groups), rates in bit/s."""

    edges: list[float]
    mean: list[float]
    low: list[float]
    high: list[float]

    @property
    def grouped(self) -> bool:
        """Whether a point stands for several intervals."""
        return self.low != self.high


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
        edges=[g[0].start_s for g in groups] + ([groups[-1][-1].end_s] if groups else []),
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


def _draw(axes: Any, points: Sequence[Point], scale: float, colour: str, label: str, dashed: bool) -> None:
    shrunk = shrink(points)
    values = [v / scale for v in shrunk.mean]
    if shrunk.grouped:
        axes.fill_between(
            shrunk.edges,
            [v / scale for v in [*shrunk.low, shrunk.low[-1]]],
            [v / scale for v in [*shrunk.high, shrunk.high[-1]]],
            step="post",
            color=colour,
            alpha=0.22,
            linewidth=0,
        )
    axes.plot(
        shrunk.edges,
        [*values, values[-1]],
        drawstyle="steps-post",
        color=colour,
        linewidth=1.6,
        linestyle=(0, (4, 2)) if dashed else "solid",
        label=label,
    )


def _shade_omitted(axes: Any, points: Sequence[Point]) -> bool:
    omitted = [p for p in points if p.omitted]
    if omitted:
        axes.axvspan(omitted[0].start_s, omitted[-1].end_s, color=COLOURS["shade"], linewidth=0, zorder=0)
    return bool(omitted)


def _loss_points(intervals: Sequence[Interval]) -> list[Point]:
    """Loss in percent per interval of the receiving end, as points of a curve."""
    points = []
    for row in intervals:
        if row.lost is not None and row.packets and row.end_us > row.start_us:
            percent = 100.0 * row.lost / row.packets
            points.append(Point(row.start_us / 1e6, row.end_us / 1e6, percent))
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
        size = (5.0 if narrow else 10.0, 3.3 if with_loss else 2.6)
        figure = Figure(figsize=size, dpi=72, layout="constrained")
        if with_loss:
            axes, below = figure.subplots(2, 1, sharex=True, gridspec_kw={"height_ratios": [3, 1]})
        else:
            axes, below = figure.subplots(), None
        highest = max((p.bps for p in (*board, *peer)), default=1.0)
        unit, scale = rate_unit(highest)
        # The board below, the peer dashed above it: where both agree, both stay visible.
        if board:
            _draw(axes, board, scale, COLOURS["board"], "board", dashed=False)
        if peer:
            _draw(axes, peer, scale, COLOURS["peer"], "peer", dashed=bool(board))
        _shade_omitted(axes, board or peer)
        bound = row.bound
        top = max(highest / scale, 1e-9) * 1.15
        if bound is not None and bound.bps < 1.6 * highest:
            axes.axhline(
                bound.bps / scale, color=COLOURS["bound"], linewidth=1, linestyle=(0, (1, 2)), label="bound"
            )
            top = max(top, bound.bps / scale * 1.1)
        axes.set_ylim(0, top)
        last = max((p.end_s for p in (*board, *peer)), default=1.0)
        axes.set_xlim(0, last)
        axes.set_ylabel(unit)
        axes.grid(axis="y", linewidth=0.6)
        axes.tick_params(length=3)
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=3, frameon=False, borderaxespad=0.2)
        if below is not None:
            shrunk = shrink(loss)
            below.stairs(shrunk.high, shrunk.edges, color=COLOURS["bad"], fill=True, alpha=0.75)
            below.set_ylim(0, max(shrunk.high) * 1.25)
            below.set_ylabel("loss %")
            below.grid(axis="y", linewidth=0.6)
            below.tick_params(length=3)
        (below or axes).set_xlabel("seconds")
        return figure


def overview_figure(rows: Sequence[Row], labels: Sequence[str], narrow: bool = False) -> Figure:
    """One pair of bars for each row, board above peer, with a mark at the bound where it is near."""
    with mpl.rc_context(RC):
        figure = Figure(
            figsize=(5.0 if narrow else 10.0, 0.75 + 0.42 * len(rows)), dpi=72, layout="constrained"
        )
        axes = figure.subplots()
        highest = max((v for r in rows for v in (r.board_bps, r.peer_bps) if v is not None), default=1.0)
        unit, scale = rate_unit(highest)
        for n, row in enumerate(rows):
            for shift, value, colour in (
                (-0.19, row.board_bps, COLOURS["board"]),
                (0.19, row.peer_bps, COLOURS["peer"]),
            ):
                if value is not None:
                    axes.barh(n + shift, value / scale, height=0.34, color=colour)
            if row.board_bps is None and row.peer_bps is None:
                axes.text(0, n, "  no figure", va="center", color=COLOURS["muted"])
            if row.bound is not None and row.bound.bps < 1.3 * highest:
                place = row.bound.bps / scale
                axes.plot([place, place], [n - 0.42, n + 0.42], color=COLOURS["bound"], linewidth=1.6)
        axes.set_yticks(range(len(rows)), labels)
        for tick in axes.get_yticklabels():
            tick.set_color(COLOURS["fg"])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlim(0, highest / scale * 1.08)
        axes.set_xlabel(unit)
        axes.grid(axis="x", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        return figure


def repeats_figure(names: Sequence[str], summaries: Sequence[Summary], narrow: bool = False) -> Figure:
    """Every repeat as a dot, the mean with its 95 % interval as a bar, the median as a line."""
    with mpl.rc_context(RC):
        figure = Figure(
            figsize=(5.0 if narrow else 10.0, 0.75 + 0.42 * len(names)), dpi=72, layout="constrained"
        )
        axes = figure.subplots()
        unit, scale = rate_unit(max(s.high for s in summaries))
        for n, summary in enumerate(summaries):
            if summary.ci is not None:
                axes.plot(
                    [v / scale for v in summary.ci], [n, n], color=COLOURS["peer"], linewidth=5, alpha=0.55
                )
            place = summary.median / scale
            axes.plot([place, place], [n - 0.25, n + 0.25], color=COLOURS["fg"], linewidth=1.2)
            axes.plot(
                [v / scale for v in summary.values],
                [n] * summary.n,
                "o",
                color=COLOURS["board"],
                markersize=4,
            )
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set_xlim(left=0)
        axes.set_xlabel(unit)
        axes.grid(axis="x", linewidth=0.6)
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        return figure
