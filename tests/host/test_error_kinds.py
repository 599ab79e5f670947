"""The table of kinds lives once on each side."""

import sys

from upyperf.deploy import root
from upyperf.errors import EXIT_CODES


def test_every_kind_of_the_board_has_an_exit_code():
    sys.path.insert(0, str(root() / "firmware"))
    try:
        from iperf.ending import KINDS
    finally:
        sys.path.remove(str(root() / "firmware"))
    assert set(KINDS) <= set(EXIT_CODES)
    # these only the host can find
    assert set(EXIT_CODES) - set(KINDS) == {"threshold", "config", "board", "serial-lost", "flash"}
