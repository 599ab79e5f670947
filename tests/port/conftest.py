import peers as programs
import pytest
from harness.qemu_fixtures import board, elf, far_board, isolated, peer

__all__ = ["board", "elf", "far_board", "isolated", "peer"]


@pytest.fixture(scope="session")
def peers() -> list[programs.Peer]:
    """The real programs here."""
    return programs.available()
