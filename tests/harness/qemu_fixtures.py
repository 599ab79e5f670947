"""Fixtures of the tests that run on a QEMU board (imported by their conftest.py)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from upyperf import firmware

from harness.qemu_board import Board, HashPeer, loopback_namespace


@pytest.fixture(scope="session")
def elf() -> Path:
    """The firmware, built once (before any namespace: its sources may have to be fetched)."""
    return firmware.build("qemu-an386")


@pytest.fixture(scope="module")
def isolated(elf: Path) -> Iterator[None]:
    """The tests of the module see only a loopback."""
    with loopback_namespace():
        yield


@pytest.fixture(scope="module")
def peer(isolated: None) -> Iterator[HashPeer]:
    running = HashPeer()
    yield running
    running.close()


@pytest.fixture(scope="module")
def board(elf: Path, isolated: None) -> Iterator[Board]:
    """A board of the module with its network up."""
    running = Board(elf)
    try:
        running.network()
        yield running
    finally:
        running.close()


@pytest.fixture(scope="module")
def far_board(elf: Path, isolated: None) -> Iterator[Board]:
    """A board behind a link of 10 ms each way: acknowledgments take 20 ms."""
    running = Board(elf, link="delay=10ms")
    try:
        running.network()
        yield running
    finally:
        running.close()
