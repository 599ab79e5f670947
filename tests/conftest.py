"""Hooks of the whole suite; the work is done in tests/harness."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest
from harness import device, notrun

DEVICE_TESTS = Path(__file__).parent / "device"


@pytest.hookimpl(trylast=True)  # CPython's own items first
def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> device.DeviceFile | None:
    if file_path.parent == DEVICE_TESTS and file_path.name.startswith("test_") and file_path.suffix == ".py":
        file: device.DeviceFile = device.DeviceFile.from_parent(parent, path=file_path)
        return file
    return None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    dropped = device.drop_micropython_only(items)
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = [item for item in items if item not in dropped]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    notrun.forbid_plain_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    notrun.forbid_plain_skip(report)
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = terminalreporter.stats.get("skipped", [])
    terminalreporter.section("not run", sep="-")
    for line in notrun.summary(skipped):
        terminalreporter.write_line(line)
