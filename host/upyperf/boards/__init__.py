"""Boards: boards/<name>/board.toml -> Board."""

from __future__ import annotations

import difflib
from pathlib import Path

from upyperf.boards.model import Board, schema
from upyperf.errors import UpyperfError
from upyperf.paths import root
from upyperf.tomlmodel import load as load_model
from upyperf.tomlmodel import read_toml

__all__ = ["Board", "load", "load_all", "load_file", "names", "schema"]


def folder() -> Path:
    """The folder that holds one folder for each board."""
    return root() / "boards"


def names() -> list[str]:
    """Names of the boards that have a board.toml, sorted."""
    return sorted(path.parent.name for path in folder().glob("*/board.toml"))


def load_file(path: Path) -> Board:
    """The board of one board.toml. Raises UpyperfError of kind config."""
    board = load_model(Board, read_toml(path), path)
    if board.name != path.parent.name:
        raise UpyperfError("config", f"{path}: name: is {board.name!r}, its folder {path.parent.name!r}")
    board.folder = path.parent
    return board


def load(name: str) -> Board:
    """The board of that name. Raises UpyperfError: usage (unknown board, the boards are
    listed) or config."""
    known = names()
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise UpyperfError("usage", f"no board {name!r}{hint}; the boards are: {', '.join(known) or 'none'}")
    return load_file(folder() / name / "board.toml")


def load_all() -> tuple[list[Board], list[UpyperfError]]:
    """Every board that loads, and the mistakes of those that do not."""
    boards, errors = [], []
    for name in names():
        try:
            boards.append(load_file(folder() / name / "board.toml"))
        except UpyperfError as error:
            errors.append(error)
    return boards, errors
