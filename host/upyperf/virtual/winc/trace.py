"""Recording what goes over the wire, and reading it back: our own file or a logic analyser's CSV.

A trace file is CSV with the columns time_s, kind, mosi, miso. Rows of kind SPI hold one transfer in hex, rows
of kind PIN a pin's name and level. Any CSV with columns named like MOSI, MISO and time is read as well:
Saleae Logic (both exports), PulseView/sigrok and DSView tables with one byte or several in a row.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

HEADER = ("time_s", "kind", "mosi", "miso")


@dataclass(frozen=True, slots=True)
class Transfer:
    """Bytes in both directions, from `time` (seconds) on."""

    time: float
    mosi: bytes
    miso: bytes


@dataclass(frozen=True, slots=True)
class PinChange:
    """A pin was driven."""

    time: float
    name: str
    level: int


class Recorder:
    """Writes a trace file while a chip runs. Raises OSError when the file cannot be made."""

    def __init__(self, path: Path) -> None:
        self._file: TextIO = path.open("w", encoding="ascii", newline="\n")
        self._file.write(",".join(HEADER) + "\n")
        self._start: int | None = None

    def _time(self, now_ns: int) -> str:
        if self._start is None:
            self._start = now_ns
        return f"{(now_ns - self._start) / 1e9:.6f}"

    def transfer(self, now_ns: int, mosi: bytes, miso: bytes) -> None:
        """One transfer."""
        self._file.write(f"{self._time(now_ns)},SPI,{mosi.hex()},{miso.hex()}\n")

    def pin(self, now_ns: int, name: str, level: int) -> None:
        """A pin was driven."""
        self._file.write(f"{self._time(now_ns)},PIN,{name},{level}\n")

    def close(self) -> None:
        """Write everything out."""
        self._file.close()


def _bytes(cell: str, where: str) -> bytes:
    """Bytes out of "0xC9", "C9", "C9 00" or "c900"; an empty cell is no byte."""
    text = cell.strip().replace("0x", " ").replace("0X", " ").replace(",", " ").replace("'", "")
    parts = text.split()
    try:
        return b"".join(bytes.fromhex(part if len(part) % 2 == 0 else "0" + part) for part in parts)
    except ValueError:
        raise ValueError(f"{where}: {cell!r} is not hex") from None


def _column(names: list[str], *words: str) -> int | None:
    for word in words:
        for i, name in enumerate(names):
            if word in name:
                return i
    return None


def read(path: Path) -> Iterator[Transfer | PinChange]:
    """Transfers of a trace file or a logic analyser's CSV. Raises ValueError with file, line and reason."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            yield from parse(file, str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: {error}") from None


def parse(lines: Iterable[str], name: str) -> Iterator[Transfer | PinChange]:
    """The same for lines that are at hand."""
    rows = csv.reader(line for line in lines if not line.startswith((";", "#")))
    try:
        header = next(rows, None)
        if header is None:
            raise ValueError(f"{name}: the file is empty")
        names = [cell.strip().lower() for cell in header]
        mosi, miso = _column(names, "mosi", "sdo", "copi"), _column(names, "miso", "sdi", "cipo")
        if mosi is None or miso is None:
            raise ValueError(f"{name}: no columns named MOSI and MISO in line 1: {','.join(header)[:80]}")
        time, kind = _column(names, "start_time", "time", "start"), _column(names, "kind", "type")
        scale = 1e-9 if time is not None and "ns" in names[time].replace("transaction", "") else 1.0
        for count, row in enumerate(rows, 2):
            where = f"{name}, line {count}"
            if not row:
                continue
            if len(row) <= max(mosi, miso):
                raise ValueError(f"{where}: {len(row)} columns, {max(mosi, miso) + 1} expected")
            what = row[kind].strip().lower() if kind is not None else "spi"
            try:
                at = float(row[time]) * scale if time is not None and row[time].strip() else 0.0
            except ValueError:
                raise ValueError(f"{where}: {row[time or 0]!r} is not a time") from None
            if what == "pin":
                yield PinChange(at, row[mosi], int(row[miso]))
                continue
            if what in ("enable", "disable"):
                continue
            out, back = _bytes(row[mosi], where), _bytes(row[miso], where)
            size = max(len(out), len(back))
            if size:
                yield Transfer(at, out.ljust(size, b"\0"), back.ljust(size, b"\0"))
    except csv.Error as error:
        raise ValueError(f"{name}: {error}") from None
