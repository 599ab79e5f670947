"""The folder of one bench: written as things happen, so that nothing recorded is lost."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from upyperf.errors import UpyperfError
from upyperf.events import Event
from upyperf.records import Bench

RESULTS, RECORDS, SERIAL = "results.json", "records.jsonl", "serial.log"


class RunFolder:
    """results/<time>-<board>/ with records.jsonl growing and results.json always whole."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self.error: str | None = None
        """Why something could not be written, once the bench ran: the first cause."""
        try:
            path.mkdir(parents=True, exist_ok=True)
            # Line buffered: an event is in the file before the next one is looked at.
            self._records = (path / RECORDS).open("a", encoding="utf-8", buffering=1)
        except OSError as error:
            raise UpyperfError("config", f"cannot write results to {path}: {error.strerror}") from None

    @classmethod
    def new(cls, base: Path, board: str) -> RunFolder:
        """A new folder below `base`, named by the time (UTC) and the board."""
        stem = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{board}"
        for number in range(1, 1000):
            path = base / (stem if number == 1 else f"{stem}-{number}")
            try:
                path.mkdir(parents=True)
            except FileExistsError:
                continue
            except OSError as error:
                raise UpyperfError("config", f"cannot write results to {base}: {error.strerror}") from None
            return cls(path)
        raise UpyperfError("config", f"cannot make a folder for {stem} below {base}")

    @classmethod
    def at(cls, path: Path) -> RunFolder:
        """A folder of the user's choice. Raises UpyperfError of kind usage when it holds results."""
        if (path / RESULTS).exists() or (path / RECORDS).exists():
            raise UpyperfError("usage", f"{path} holds results already: name another --result-dir")
        return cls(path)

    @property
    def serial_log(self) -> Path:
        """Where the raw serial traffic goes."""
        return self.path / SERIAL

    def record(self, event: Event) -> None:
        """Append an event to records.jsonl; may be called from any thread."""
        line = event.model_dump_json() + "\n"
        with self._lock:
            if not self._records.closed:
                # A full disk must not end the thread that drains a peer, nor the test.
                with self._noting():
                    self._records.write(line)

    def save(self, bench: Bench) -> None:
        """Write results.json, whole or not at all."""
        part = self.path / (RESULTS + ".part")
        with self._noting():
            part.write_text(bench.model_dump_json(indent=1) + "\n", encoding="utf-8")
            os.replace(part, self.path / RESULTS)

    @contextlib.contextmanager
    def _noting(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.error = self.error or error.strerror or str(error)

    def close(self) -> None:
        """Close records.jsonl."""
        with self._lock, self._noting():
            self._records.close()

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
