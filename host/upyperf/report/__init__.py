"""Every way in which a bench is shown: terminal, HTML, CSV, iperf3's JSON, JUnit, Markdown.

All of them take a `upyperf.records.Bench` and read no file; `write_all` reads and writes the folder.
"""

import os
import re
from collections.abc import Callable
from pathlib import Path

from pydantic import ValidationError

from upyperf.errors import UpyperfError
from upyperf.records import Bench
from upyperf.report import csvfiles, iperf3json, junit, markdown


def load(run_dir: Path) -> Bench:
    """The bench in a results folder. Raises UpyperfError `config` when it is missing or damaged."""
    path = run_dir / "results.json"
    try:
        return Bench.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise UpyperfError(
            "config", f"{run_dir} holds no results.json: name a folder made by bench"
        ) from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        what = f"{where}: {first['msg']}" if where else first["msg"]
        raise UpyperfError("config", f"{path} cannot be read: {what}") from None
    except OSError as error:
        raise UpyperfError("config", f"{path} cannot be read: {error.strerror}") from None


def _write(path: Path, content: str) -> Path:
    """Write by way of a second file, so that a reader never sees half a report."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".part")
    # Lone surrogates cannot be written as UTF-8; reports clean their strings, this is the last guard.
    temporary.write_text(content, encoding="utf-8", errors="replace", newline="\n")
    os.replace(temporary, path)
    return path


def _file_name(run_id: str) -> str:
    """A run's id as a file name: nothing that leads out of the folder."""
    return re.sub(r"[^A-Za-z0-9_-]+", "_", run_id)[:80] or "run"


def write_all(run_dir: Path, bench: Bench | None = None) -> list[Path]:
    """Write every report of a results folder next to its results.json; returns the files written.

    summary.md, junit.xml, results.csv, intervals.csv, iperf3/<run>.json and, last, report.html. Without
    `bench` results.json is read. Raises UpyperfError `config` when that cannot be, OSError when the
    folder cannot be written.
    """
    bench = bench or load(run_dir)
    texts: list[tuple[str, Callable[[], str]]] = [
        ("junit.xml", lambda: junit.render(bench)),
        ("summary.md", lambda: markdown.render(bench)),
        ("results.csv", lambda: csvfiles.results(bench)),
        ("intervals.csv", lambda: csvfiles.intervals(bench)),
    ]
    written = [_write(run_dir / name, make()) for name, make in texts]
    for run in bench.runs:
        written.append(
            _write(run_dir / "iperf3" / f"{_file_name(run.id)}.json", iperf3json.render(bench, run))
        )
    # matplotlib takes a second to load: only where the page is wanted.
    from upyperf.report import html

    written.append(_write(run_dir / "report.html", html.render(bench)))
    return written
