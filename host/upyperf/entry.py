"""Where the command begins: Ctrl-C is one line from the first import on."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command; returns the exit status."""
    try:
        # Takes a good part of a second, longer than many wait before they change their mind.
        from upyperf.cli import main as command

        return command()
    except KeyboardInterrupt:
        print("upyperf: error: interrupted", file=sys.stderr)
        return 130
