"""What did not run, and why: a test may be left out only for want of hardware or of sources that no
registry has. Anything that set-up can install and that is absent is a failure."""

from __future__ import annotations

from collections import Counter
from typing import NoReturn

import pytest

PREFIX = "not run: "


def not_run(reason: str) -> NoReturn:
    """Leave this test out; ``reason`` says what is missing ("no ESP32 board on this machine")."""
    pytest.skip(PREFIX + reason)


def reason_of(report: pytest.TestReport | pytest.CollectReport) -> str:
    """The reason of a skip, without pytest's own prefix."""
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return text.removeprefix("Skipped: ")


def forbid_plain_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turn a skip that does not say "not run: <reason>" into a failure."""
    if report.skipped and not hasattr(report, "wasxfail") and not reason_of(report).startswith(PREFIX):
        report.outcome = "failed"
        report.longrepr = (
            f"skipped with {reason_of(report)!r}: what can be installed must be there "
            f"(`make setup`); for want of hardware use harness.notrun.not_run(reason)"
        )


def summary(reports: list[pytest.TestReport]) -> list[str]:
    """Lines for the terminal: the number of tests not run and each reason with its count."""
    reasons = Counter(reason_of(report).removeprefix(PREFIX) for report in reports)
    lines = [f"not run: {reasons.total()}"]
    return lines + [f"  {count} x {reason}" for reason, count in sorted(reasons.items())]
