"""Two sets of benches against each other: what changed, by how much, and how sure that is."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal

from upyperf.analysis import figures
from upyperf.analysis.repeats import Summary, change_interval, p_value, smallest_p, summarise
from upyperf.analysis.sameness import Difference, Mixture, differences
from upyperf.analysis.units import format_p, format_percent, format_rate_spread
from upyperf.errors import UpyperfError
from upyperf.records import Bench, RunResult, Way

ALPHA = 0.05
"""A difference counts as significant below this p."""

Verdict = Literal[
    "faster", "slower", "no significant change", "too few repeats to say", "only in BASE", "only in NEW"
]


@dataclass(frozen=True)
class Change:
    """One test in one direction on both sides; rates in bit/s of payload at the receiving end.

    `name` is the test's name in the plan, `key` "version.proto.direction", `label` the same for people.
    `change` is relative (-0.081 = -8.1 %) of the means, `ci` its 95 % bootstrap interval, `p` that of the
    Mann–Whitney test (None where a side is empty). `errors` are those of runs that gave no figure.
    """

    name: str
    key: str
    label: str
    base: Summary | None
    new: Summary | None
    change: float | None
    ci: tuple[float, float] | None
    p: float | None
    verdict: Verdict
    base_errors: tuple[str, ...] = ()
    new_errors: tuple[str, ...] = ()
    loss: tuple[float | None, float | None] = (None, None)
    """Median loss in percent on both sides (UDP)."""
    retries: tuple[float | None, float | None] = (None, None)
    """Median count of retries and ENOMEM on the board's sends on both sides."""

    @property
    def wording(self) -> str:
        """The new figure with its change, like "12.3 ± 0.4 Mbit/s (−8.1 %, p = 0.004)"."""
        if self.new is None:
            return "no figure in NEW" if self.new_errors else "not in NEW"
        figure = format_rate_spread(self.new.mean, self.new.half_width)
        if self.base is None:
            why = "no figure in BASE" if self.base_errors else "not in BASE"
            return f"{figure} ({why})"
        percent = format_percent(self.change * 100 if self.change is not None else None, signed=True)
        if self.verdict == "too few repeats to say":
            return f"{figure} ({percent}, too few repeats to say: {self.base.n} and {self.new.n})"
        p = format_p(self.p if self.p is not None else 1.0)
        if self.verdict == "no significant change":
            return f"{figure} (no significant change: {percent}, {p})"
        return f"{figure} ({percent}, {p})"


@dataclass(frozen=True)
class Comparison:
    """The outcome of `compare`: one Change per test and direction, and what else differs."""

    base: tuple[str, ...]
    new: tuple[str, ...]
    board: str
    changes: tuple[Change, ...]
    differences: tuple[Difference, ...]
    virtual: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The comparison for `--json`: rates in bit/s, changes in percent."""
        return {
            "schema_version": 1,
            "base": list(self.base),
            "new": list(self.new),
            "board": self.board,
            "virtual": self.virtual,
            "alpha": ALPHA,
            "differences": [{"kind": d.kind, "text": d.text} for d in self.differences],
            "changes": [_change_dict(c) for c in self.changes],
        }


def _summary_dict(summary: Summary | None) -> dict[str, Any] | None:
    if summary is None:
        return None
    return {
        "n": summary.n,
        "values_bits_per_second": list(summary.values),
        "mean_bits_per_second": summary.mean,
        "median_bits_per_second": summary.median,
        "mad_bits_per_second": summary.mad,
        "trimmed_mean_bits_per_second": summary.trimmed,
        "ci95_bits_per_second": list(summary.ci) if summary.ci else None,
    }


def _change_dict(change: Change) -> dict[str, Any]:
    return {
        "name": change.name,
        "test": change.key,
        "label": change.label,
        "base": _summary_dict(change.base),
        "new": _summary_dict(change.new),
        "change_percent": None if change.change is None else change.change * 100,
        "ci95_percent": [bound * 100 for bound in change.ci] if change.ci else None,
        "p": change.p,
        "verdict": change.verdict,
        "text": change.wording,
        "base_errors": list(change.base_errors),
        "new_errors": list(change.new_errors),
        "loss_percent": list(change.loss),
        "retries": list(change.retries),
    }


def _test_id(run: RunResult, way: Way) -> str:
    return f"{run.test.name}|{figures.key_of(run.test, way)}"


def _verdict(base: Summary, new: Summary, p: float) -> Verdict:
    if smallest_p(base.n, new.n) > ALPHA:
        return "too few repeats to say"
    if p >= ALPHA:
        return "no significant change"
    return "faster" if new.mean >= base.mean else "slower"


def _median(values: Sequence[float]) -> float | None:
    return float(median(values)) if values else None


@dataclass
class _Side:
    """The rows of one test on one side."""

    label: str
    rows: list[figures.Row]

    def values(self) -> list[float]:
        return [r.delivered_bps for r in self.rows if r.delivered_bps is not None and r.run.status == "ok"]

    def errors(self) -> tuple[str, ...]:
        return tuple(
            r.run.error.text if r.run.error else f"the run is {r.run.status} or has no figure"
            for r in self.rows
            if r.delivered_bps is None or r.run.status != "ok"
        )


def _sides(benches: Sequence[Bench]) -> dict[str, _Side]:
    found: dict[str, _Side] = {}
    for bench in benches:
        for row in figures.rows(bench):
            found.setdefault(_test_id(row.run, row.way), _Side(row.label, [])).rows.append(row)
    return found


def compare(base: Sequence[Bench], new: Sequence[Bench], allow: Iterable[Mixture] = ()) -> Comparison:
    """Compare the runs of two sets of benches, test by test.

    Each side may be several results folders; runs of the same test are its repeats. Raises UpyperfError
    `usage` when a side has no runs, and when the benches differ in a `Mixture` that is not in `allow`.
    """
    for name, side in (("BASE", base), ("NEW", new)):
        if not any(bench.runs for bench in side):
            raise UpyperfError("usage", f"{name} holds no runs: nothing to compare")
    found = differences([*base, *new])
    refused = [d for d in found if d.kind is not None and d.kind not in set(allow)]
    if refused:
        kinds = ",".join(dict.fromkeys(str(d.kind) for d in refused))
        raise UpyperfError(
            "usage",
            f"not compared, {' and '.join(d.text for d in refused)}; to compare anyway: --allow {kinds}",
        )
    sides = (_sides(base), _sides(new))
    changes = [
        _change(key, sides[0].get(key), sides[1].get(key)) for key in dict.fromkeys([*sides[0], *sides[1]])
    ]
    marks = list(dict.fromkeys(m for b in (*base, *new) if (m := figures.virtual_mark(b))))
    return Comparison(
        base=tuple(b.id for b in base),
        new=tuple(b.id for b in new),
        board=" / ".join(dict.fromkeys(b.board.name for b in (*base, *new))),
        changes=tuple(changes),
        differences=tuple(found),
        virtual="; ".join(marks) or None,
    )


def _losses(side: _Side | None) -> list[float]:
    return [r.loss_percent for r in side.rows if r.loss_percent is not None] if side else []


def _retries(side: _Side | None) -> list[float]:
    if side is None:
        return []
    return [
        (r.retries or 0) + (r.enomem or 0) for r in side.rows if r.retries is not None or r.enomem is not None
    ]


def _change(key: str, base: _Side | None, new: _Side | None) -> Change:
    base_values, new_values = (side.values() if side else [] for side in (base, new))
    base_summary = summarise(base_values) if base_values else None
    new_summary = summarise(new_values) if new_values else None
    change = ci = p = None
    verdict: Verdict
    if base_summary and new_summary:
        change = new_summary.mean / base_summary.mean - 1 if base_summary.mean > 0 else None
        ci = change_interval(base_values, new_values)
        p = p_value(base_values, new_values)
        verdict = _verdict(base_summary, new_summary, p)
    else:
        verdict = "only in BASE" if base_summary or not new_summary else "only in NEW"
    side = base or new
    assert side is not None
    return Change(
        name=key.rpartition("|")[0],
        key=key.rpartition("|")[2],
        label=side.label,
        base=base_summary,
        new=new_summary,
        change=change,
        ci=ci,
        p=p,
        verdict=verdict,
        base_errors=base.errors() if base else (),
        new_errors=new.errors() if new else (),
        loss=(_median(_losses(base)), _median(_losses(new))),
        retries=(_median(_retries(base)), _median(_retries(new))),
    )
