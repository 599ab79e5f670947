"""Files onto the board, through nothing but running code on it."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Iterable, Mapping

from upyperf.errors import UpyperfError

Run = Callable[[str, float], str]

_CHUNK = 1024  # bytes of a file per exec; small enough for a board with little heap left
_FULL = re.compile(r"OSError: (\[Errno )?28\b")  # ENOSPC, with or without MicroPython's names
_PER_CALL = 32  # paths per hash query, which bounds the text that the board must hold

# Prints, per path, the SHA-256 or its size with "?" when the board has no sha256, or "-".
_HASHES = """
def _upyperf(paths):
    try:
        from hashlib import sha256
    except ImportError:
        sha256 = None
    import os
    from binascii import hexlify
    buf = memoryview(bytearray(512))
    for path in paths:
        try:
            if sha256 is None:
                print('?%d' % os.stat(path)[6])
                continue
            h = sha256()
            with open(path, 'rb') as f:
                n = f.readinto(buf)
                while n:
                    h.update(buf[:n])
                    n = f.readinto(buf)
            print(hexlify(h.digest()).decode())
        except OSError:
            print('-')
_upyperf({paths!r})
del _upyperf
"""

_MKDIRS = """
def _upyperf(paths):
    import os
    for path in paths:
        try:
            os.mkdir(path)
        except OSError:
            if not os.stat(path)[0] & 0x4000:
                raise
_upyperf({paths!r})
del _upyperf
"""


def put(run: Run, path: str, data: bytes) -> None:
    """Write `data` to `path`, its folders included, and read it back by its hash.

    run(code, timeout) runs code on the board and returns what it printed.
    Raises UpyperfError `board` when the board cannot write it or has something else afterwards,
    `memory`, `serial-lost`.
    """
    _make_folders(run, [path])
    _write(run, path, data)
    _verify(run, {path: data})


def put_tree(run: Run, files: Mapping[str, bytes]) -> list[str]:
    """Write the files whose content is not there yet; returns the paths written. Errors as put()."""
    there = _hashes(run, files)
    missing = {path: data for path, data in files.items() if there[path] != _sha256(data)}
    if missing:
        _make_folders(run, missing)
        for path, data in missing.items():
            _write(run, path, data)
        _verify(run, missing)
    return list(missing)


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _hashes(run: Run, paths: Iterable[str]) -> dict[str, str]:
    names = list(paths)
    answers: dict[str, str] = {}
    for start in range(0, len(names), _PER_CALL):
        part = names[start : start + _PER_CALL]
        lines = run(_HASHES.format(paths=part), 60).split()
        if len(lines) != len(part):
            raise UpyperfError("board", f"the board answered {len(lines)} hashes for {len(part)} files")
        answers.update(zip(part, lines, strict=True))
    return answers


def _verify(run: Run, files: Mapping[str, bytes]) -> None:
    for path, answer in _hashes(run, files).items():
        data = files[path]
        if answer not in (_sha256(data), f"?{len(data)}"):
            raise UpyperfError(
                "board", f"{path} on the board differs from what was written: is its file system sound?"
            )


def _make_folders(run: Run, paths: Iterable[str]) -> None:
    folders: list[str] = []
    for path in paths:
        parts = path.split("/")[:-1]
        for i in range(1, len(parts) + 1):
            folder = "/".join(parts[:i])
            if folder and folder not in folders:
                folders.append(folder)
    for start in range(0, len(folders), _PER_CALL):
        run(_MKDIRS.format(paths=folders[start : start + _PER_CALL]), 30)


def _write(run: Run, path: str, data: bytes) -> None:
    # Opening and closing go along with the first and the last piece: a round trip may take seconds.
    pieces = [data[start : start + _CHUNK] for start in range(0, len(data), _CHUNK)] or [b""]
    try:
        for i, piece in enumerate(pieces):
            code = []
            if i == 0:
                code.append(f"from binascii import a2b_base64 as _a2b\n_file=open({path!r},'wb')")
            code.append(f"print(_file.write(_a2b({base64.b64encode(piece)!r})))")
            if i == len(pieces) - 1:
                code.append("_file.close()\ndel _file,_a2b")
            wrote = run("\n".join(code), 10).strip()
            if wrote != str(len(piece)):
                raise UpyperfError("board", "the board's file system is full")
    except UpyperfError as error:
        if error.kind != "board":
            raise
        reason = error.text
        if _FULL.search(reason):
            reason = "the board's file system is full"
        raise UpyperfError("board", f"cannot write {path}: {reason}") from None
