"""The regression gate: `--fail-if "-5%"` against a comparison."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from upyperf.analysis.compare import Change, Comparison
from upyperf.analysis.units import format_percent, format_rate, parse_percent, parse_rate
from upyperf.errors import UpyperfError

_EPSILON = 1e-9
"""A fall of exactly the threshold passes, whatever binary fractions make of it."""


@dataclass(frozen=True)
class Threshold:
    """How far a rate may fall: `percent` of the base (negative), or `bps` in bit/s (negative)."""

    text: str
    percent: float | None = None
    bps: float | None = None

    def exceeded_by(self, change: Change) -> bool:
        """Whether the means fell further than allowed."""
        if change.base is None or change.new is None:
            return False
        if self.percent is not None:
            return change.change is not None and change.change * 100 < self.percent - _EPSILON
        return self.bps is not None and change.new.mean - change.base.mean < self.bps


def parse_threshold(text: str) -> Threshold:
    """Threshold of "-5%" or "-2 Mbit/s". Raises UpyperfError `usage` for anything else.

    The minus sign may be left out by nobody: "5%" could as well mean a gain that is asked for.
    """
    stripped = text.strip()
    try:
        if "%" in stripped:
            percent = parse_percent(stripped)
            if -100 <= percent < 0:
                return Threshold(stripped, percent=percent)
        elif re.search(r"[a-z]", stripped, re.IGNORECASE):
            bps = parse_rate(stripped)
            if bps < 0:
                return Threshold(stripped, bps=bps)
    except ValueError:
        pass
    raise UpyperfError(
        "usage",
        f"--fail-if {stripped[:40]!r}: write how far a rate may fall, like '-5%' or '-2 Mbit/s'",
    )


@dataclass(frozen=True)
class Failure:
    """A test that fails the gate, and why in one line."""

    change: Change
    text: str


@dataclass(frozen=True)
class Gate:
    """The outcome of `evaluate`."""

    threshold: Threshold
    failures: tuple[Failure, ...]
    checked: int

    @property
    def passed(self) -> bool:
        """Whether no test failed, and there was one to judge: a gate that saw no figure guards nothing."""
        return not self.failures and self.checked > 0

    @property
    def exit_code(self) -> int:
        """0, or 1 (a threshold failed)."""
        return 0 if self.passed else 1

    @property
    def text(self) -> str:
        """One line on the outcome."""
        if self.passed:
            return (
                f"passed: none of {self.checked} tests fell by more than {self.threshold.text.lstrip('-−')}"
            )
        if not self.checked:
            return "FAILED: BASE holds no figure to compare with; measure it again"
        return f"FAILED: {len(self.failures)} of {self.checked} tests ({self.threshold.text})"

    def to_dict(self) -> dict[str, Any]:
        """The outcome for `--json`."""
        return {
            "threshold": self.threshold.text,
            "passed": self.passed,
            "checked": self.checked,
            "failures": [
                {"name": f.change.name, "test": f.change.key, "text": f.text} for f in self.failures
            ],
        }


def _failure(change: Change, threshold: Threshold, untested_passes: bool) -> str | None:
    if change.base is None:
        return None  # a new test has nothing to fall from
    if change.new is None:
        why = change.new_errors[0] if change.new_errors else "the test is not there"
        return f"a figure in BASE, none in NEW: {why}"
    if not threshold.exceeded_by(change):
        return None
    fall = format_percent(change.change * 100 if change.change is not None else None, signed=True)
    moved = f"{format_rate(change.base.mean)} → {format_rate(change.new.mean)}, {fall}"
    if change.verdict == "slower":
        return f"{moved}, limit {threshold.text}"
    if change.verdict == "too few repeats to say" and not untested_passes:
        # A gate that lets every single run pass would never fail: without a test the figure itself counts.
        return (
            f"{moved}, limit {threshold.text}; with {change.base.n} and {change.new.n} repeats "
            "it may be chance: measure at least 4 times on each side"
        )
    return None


def evaluate(
    comparison: Comparison, thresholds: Iterable[Threshold], *, untested_passes: bool = False
) -> list[Gate]:
    """One gate per threshold.

    A test fails when its mean fell further than the threshold *and* the fall is significant; when there
    are too few repeats to test, the mean alone counts unless `untested_passes`; and when it gave a
    figure in BASE and gives none in NEW.
    """
    gates = []
    for threshold in thresholds:
        failures = [
            Failure(change, why)
            for change in comparison.changes
            if (why := _failure(change, threshold, untested_passes)) is not None
        ]
        gates.append(Gate(threshold, tuple(failures), sum(c.base is not None for c in comparison.changes)))
    return gates
