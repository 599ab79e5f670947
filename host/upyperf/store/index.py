"""SQLite index over all results folders; the folders are the truth, it can be rebuilt from them."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from upyperf.errors import UpyperfError
from upyperf.records import Bench, Direction
from upyperf.store.folder import RECORDS, RESULTS

NAME = "index.sqlite3"
_VERSION = 1
_SCHEMA = """
CREATE TABLE IF NOT EXISTS bench (
    path TEXT PRIMARY KEY, id TEXT NOT NULL, board TEXT NOT NULL, started TEXT NOT NULL,
    plan TEXT NOT NULL, exit_code INTEGER NOT NULL, runs INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS bench_started ON bench (started);
CREATE TABLE IF NOT EXISTS figure (
    path TEXT NOT NULL REFERENCES bench (path) ON DELETE CASCADE, run TEXT NOT NULL, repeat INTEGER NOT NULL,
    test TEXT NOT NULL, version INTEGER NOT NULL, proto TEXT NOT NULL, layer TEXT NOT NULL,
    role TEXT NOT NULL, way TEXT, status TEXT NOT NULL,
    bytes INTEGER, us INTEGER, lost INTEGER, packets INTEGER, jitter_us REAL, flagged INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS figure_test ON figure (test, layer);
"""


class Index:
    """The index of one results folder (`base`/index.sqlite3)."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.path = base / NAME

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        self.base.mkdir(parents=True, exist_ok=True)
        # Several benches may end at the same time.
        connection = sqlite3.connect(self.path, timeout=30)
        try:
            connection.execute("PRAGMA foreign_keys = ON")
            if connection.execute("PRAGMA user_version").fetchone()[0] not in (0, _VERSION):
                connection.executescript("DROP TABLE IF EXISTS figure; DROP TABLE IF EXISTS bench;")
            connection.executescript(_SCHEMA)
            connection.execute(f"PRAGMA user_version = {_VERSION}")
            with connection:
                yield connection
        finally:
            connection.close()

    @contextlib.contextmanager
    def _usable(self) -> Iterator[sqlite3.Connection]:
        """The database; a damaged one is made anew from the folders."""
        try:
            try:
                with self._open() as connection:
                    connection.execute("SELECT count(*) FROM bench").fetchone()
            except sqlite3.OperationalError:
                raise  # locked, read only, disk full: not damaged
            except sqlite3.DatabaseError:
                self.path.unlink(missing_ok=True)
                self.rebuild()
            with self._open() as connection:
                yield connection
        except (sqlite3.Error, OSError) as error:
            raise UpyperfError("config", f"cannot use {self.path}: {error}") from None

    def add(self, bench: Bench, folder: Path) -> None:
        """Take in a bench, in place of what was known of its folder."""
        with self._usable() as connection:
            self._add(connection, bench, folder)

    def _add(self, connection: sqlite3.Connection, bench: Bench, folder: Path) -> None:
        path = str(folder.resolve())
        connection.execute("DELETE FROM bench WHERE path = ?", (path,))
        connection.execute(
            "INSERT INTO bench VALUES (?, ?, ?, ?, ?, ?, ?)",
            (path, bench.id, bench.board.name, bench.started, bench.plan, bench.exit_code, len(bench.runs)),
        )
        for run in bench.runs:
            directions: list[Direction | None] = [*run.directions] or [None]
            for direction in directions:
                total = direction.delivered if direction else None
                connection.execute(
                    f"INSERT INTO figure VALUES ({', '.join('?' * 16)})",
                    (
                        path, run.id, run.repeat, run.test.name, run.test.version, run.test.proto,
                        run.test.layer, run.test.role, direction.way if direction else None, run.status,
                        total.bytes if total else None, total.us if total else None,
                        total.lost if total else None, total.packets if total else None,
                        total.jitter_us if total else None, int(bool(direction and direction.flagged)),
                    ),
                )  # fmt: skip

    def rebuild(self) -> list[str]:
        """Read every results folder below `base` anew; returns what could not be read, one line each."""
        problems = []
        with self._open() as connection:
            connection.execute("DELETE FROM bench")
            for file in sorted(self.base.glob(f"*/{RESULTS}")):
                try:
                    bench = Bench.model_validate_json(file.read_bytes())
                except (OSError, ValueError) as error:
                    problems.append(f"{file}: {str(error).splitlines()[0]}")
                    continue
                self._add(connection, bench, file.parent)
        return problems

    def _present(self) -> list[tuple[str, str, str]]:
        """(path, id, board) of the benches whose folders are there, the newest first."""
        try:
            with self._usable() as connection:
                rows = connection.execute("SELECT path, id, board FROM bench ORDER BY started DESC, id DESC")
                found = [row for row in rows if (Path(row[0]) / RESULTS).is_file()]
            if not found and self.base.is_dir():
                self.rebuild()
                found = self._in_folders()
            return found
        except (UpyperfError, sqlite3.Error, OSError):
            # Results on a medium that is read only can be read all the same.
            return self._in_folders()

    def _in_folders(self) -> list[tuple[str, str, str]]:
        found = []
        for file in self.base.glob(f"*/{RESULTS}"):
            with contextlib.suppress(OSError, ValueError):
                bench = Bench.model_validate_json(file.read_bytes())
                found.append((bench.started, bench.id, str(file.parent), bench.board.name))
        return [(path, ident, board) for _, ident, path, board in sorted(found, reverse=True)]

    def find(self, name: str) -> Path:
        """The folder that `name` means: a path, an id or its beginning, "latest", "latest:BOARD",
        or "latest~2" (two before the latest). Raises UpyperfError of kind usage."""
        if not name.strip():
            raise UpyperfError("usage", "the name of a result is empty: name a folder, an id, or latest")
        direct = Path(name)
        if (direct / RESULTS).is_file():
            return direct
        if direct.name == RESULTS and direct.is_file():
            return direct.parent
        if (self.base / name / RESULTS).is_file():
            return self.base / name
        if (direct / RECORDS).is_file():
            raise UpyperfError(
                "config",
                f"{direct} holds {RECORDS} but no {RESULTS}: its events are there, its result is not",
            )
        rows = self._present()
        head, _, back = name.partition("~")
        if head == "latest" or head.startswith("latest:"):
            board = head.partition(":")[2]
            chosen = [row for row in rows if not board or row[2] == board]
            if "~" in name and not (back.isascii() and back.isdigit()):
                raise UpyperfError("usage", f"{name!r}: write latest~N with a whole number N")
            number = int(back[:9] or 0)
            if number < len(chosen):
                return Path(chosen[number][0])
            raise UpyperfError("usage", f"no results for {name!r} in {self.base}: {len(chosen)} there")
        matches = [row for row in rows if row[1].startswith(name)]
        if len(matches) == 1:
            return Path(matches[0][0])
        if matches:
            raise UpyperfError("usage", f"{name!r} means {len(matches)} results, e.g. {matches[0][1]}")
        raise UpyperfError(
            "usage", f"no results {name!r} in {self.base}: name a folder, the beginning of an id, or latest"
        )
