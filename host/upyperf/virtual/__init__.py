"""Virtual boards. A launcher is a module here with

    start(board, options: Mapping[str, object], log_dir: Path | None) -> VirtualBoard

and is found by its name, which board.toml gives ([virtual] launcher). Modules whose name begins with
"_" are parts of launchers.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from time import sleep
from typing import TextIO, cast

from upyperf.errors import UpyperfError
from upyperf.virtual._board import VirtualBoard

__all__ = ["VirtualBoard", "launchers", "serve_forever", "start"]

Start = Callable[[object, Mapping[str, object], Path | None], VirtualBoard]


def launchers() -> list[str]:
    """Names of the launchers there are, sorted."""
    return sorted(
        m.name for m in pkgutil.iter_modules(__path__) if not m.name.startswith("_") and not m.ispkg
    )


def start(
    launcher: str,
    board: object = None,
    options: Mapping[str, object] | None = None,
    log_dir: Path | None = None,
) -> VirtualBoard:
    """Start a virtual board.

    board: the upyperf.boards.Board that is started, for launchers that build or read its files;
    options: the launcher's own, from board.toml and the command line;
    log_dir: folder for the launcher's log, None for no log.
    Raises UpyperfError: `config` for an unknown launcher or a bad option, `board` when it does not start.
    """
    if launcher not in launchers():
        raise UpyperfError(
            "config", f"no virtual board launcher {launcher!r}: there are {', '.join(launchers())}"
        )
    begin = cast(Start, import_module(f"{__name__}.{launcher}").start)
    return begin(board, options or {}, log_dir)


def serve_forever(
    launcher: str,
    board: object = None,
    options: Mapping[str, object] | None = None,
    log_dir: Path | None = None,
    *,
    out: TextIO,
) -> None:
    """Start a board and leave it running in the foreground, for mpremote or a terminal program.

    Prints the device to `out` and waits until Ctrl-C (KeyboardInterrupt is taken as the wish to end).
    Raises UpyperfError as start() does, and `board` when the board ends by itself.
    """
    with start(launcher, board, options, log_dir) as running:
        print(running.device, file=out, flush=True)
        try:
            while running.alive():
                sleep(0.2)
        except KeyboardInterrupt:
            return
    where = f"; its log is in {log_dir}" if log_dir else ""
    raise UpyperfError("board", f"virtual board {launcher} at {running.device} ended by itself{where}")
