"""The real programs to test against: `peers` (all), and one test per program for a test that takes
`peer`, `iperf3_peer` or `iperf2_peer`. How to run them: `harness.programs.server` and `.client`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import peers as programs
import pytest

KINDS = {"peer": ("iperf", "iperf3"), "iperf3_peer": ("iperf3",), "iperf2_peer": ("iperf",)}


@dataclass(frozen=True)
class Missing:
    """A program that set-up should have brought and that is not here."""

    program: str
    suite: str

    def __str__(self) -> str:
        return f"{self.program}-of-{self.suite}"


@cache
def found() -> list[programs.Peer | Missing]:
    """The programs here, and those that are missing."""
    missing = [Missing(program, suite) for suite, program in programs.missing()]
    return [*programs.available(), *missing]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for fixture, kinds in KINDS.items():
        if fixture in metafunc.fixturenames:
            chosen = [peer for peer in found() if peer.program in kinds]
            metafunc.parametrize(fixture, chosen, ids=str, indirect=True)


def _there(peer: programs.Peer | Missing) -> programs.Peer:
    if isinstance(peer, Missing):
        pytest.fail(f"{peer.program} of Debian {peer.suite} is missing: tools/peers.py fetch", pytrace=False)
    return peer


@pytest.fixture(scope="session")
def peers() -> list[programs.Peer]:
    """Every real program: (program, version, path)."""
    return [_there(peer) for peer in found()]


@pytest.fixture
def peer(request: pytest.FixtureRequest) -> programs.Peer:
    """One real program; the test runs once for each."""
    return _there(request.param)


@pytest.fixture
def iperf3_peer(request: pytest.FixtureRequest) -> programs.Peer:
    """One version of iperf3; the test runs once for each."""
    return _there(request.param)


@pytest.fixture
def iperf2_peer(request: pytest.FixtureRequest) -> programs.Peer:
    """One version of iPerf 2; the test runs once for each."""
    return _there(request.param)
