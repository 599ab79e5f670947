"""Settings and where each comes from: flag > environment > upyperf.toml > default."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pydantic import ConfigDict

from upyperf.errors import UpyperfError
from upyperf.tomlmodel import Table, load, read_toml

FILE = "upyperf.toml"


class Settings(Table):
    """What upyperf.toml in the current folder may say; $UPYPERF_<NAME> wins over it."""

    model_config = ConfigDict(extra="forbid", validate_default=True)
    results: str = "results"
    """Folder for the results of all runs."""
    board: str = "unix"
    plan: str | None = None
    port: str | None = None
    """Serial device, as mpremote's connect takes it."""
    server: str | None = None
    """HOST[:PORT] of an iperf server that already runs."""
    peer_address: str | None = None
    """Address or interface of this PC where the peer listens."""
    ip: str | None = None
    """Fixed address of the board with its prefix length, e.g. 192.168.7.2/24."""
    gateway: str | None = None


def settings(folder: Path | None = None, environment: dict[str, str] | None = None) -> Settings:
    """The settings without flags. Raises UpyperfError of kind config, every mistake at once."""
    env = dict(os.environ) if environment is None else environment
    path = (folder or Path.cwd()) / FILE
    fields: dict[str, Any] = read_toml(path) if path.is_file() else {}
    load(Settings, fields, path)  # its own mistakes are told with its own name
    for name in Settings.model_fields:
        value = env.get(f"UPYPERF_{name.upper()}")
        if value:
            fields[name] = value
    return load(Settings, fields, "environment")


def resolve(**flags: str | None) -> Settings:
    """The settings with the flags that were given on top. Raises UpyperfError of kind config or usage."""
    for name, value in flags.items():
        if value is not None and not value.strip():
            # An unset variable of a script must not become the default without a word.
            flag = "BOARD" if name == "board" else f"--{name.replace('_', '-')}"
            raise UpyperfError("usage", f"{flag} is empty: give a value or leave it out")
    base = settings()
    return base.model_copy(update={name: value for name, value in flags.items() if value is not None})
