"""Plans: which tests a bench runs, as TOML data (data/plans/*.toml or a file of the user's).

title = "…"
[[test]]                       # version, proto, mode and layer may be lists: every combination
version = [3, 2]
proto = "udp"
mode = ["send", "receive"]
time = 10                      # options as iperf names them, with iperf's suffixes
bandwidth = "10M"
"""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, model_validator

from upyperf import quantities
from upyperf.errors import UpyperfError
from upyperf.paths import DATA
from upyperf.records import Mode, Proto, Role, Test
from upyperf.tomlmodel import Table, read_toml
from upyperf.tomlmodel import load as load_model

STANDARD = "standard"
FOLDER = DATA / "plans"
LIMITS = {
    "length": (1, 1 << 20, " bytes"),
    "window": (0, 512 << 20, " bytes"),
    "mss": (0, 9 * 1024, " bytes"),
    "tos": (0, 255, ""),
    "blocks": (1, 2**53, ""),
}
"""What iperf3 takes at most (its MAX_BLOCKSIZE, MAX_TCP_BUFFER, MAX_MSS); an IP header's TOS is a byte."""


class Options(Table):
    """The options of a test, as iperf names them; sizes and rates with suffixes."""

    time: float | None = Field(default=None, ge=0, le=86400)
    interval: float | None = Field(default=None, ge=0.1, le=60)
    length: int | str | None = None
    bandwidth: int | str | None = None
    parallel: int | None = Field(default=None, ge=1, le=128)
    omit: float | None = Field(default=None, ge=0, le=600)
    num_bytes: int | str | None = None
    blocks: int | None = Field(default=None, ge=1)
    window: int | str | None = None
    mss: int | str | None = None
    nodelay: bool | None = None
    tos: int | None = Field(default=None, ge=0, le=255)
    ttl: int | None = Field(default=None, ge=1, le=255)
    ipv6: bool | None = None
    bind: str | None = None
    file: str | None = None
    compat: str | None = None
    get_server_output: bool | None = None
    udp_counters_64bit: bool | None = None
    connect_timeout: float | None = Field(default=None, gt=0, le=120)
    busy_retries: int | None = Field(default=None, ge=0, le=100)
    listen_port: int | None = Field(default=None, ge=1, le=65535)

    def resolved(self, version: int) -> dict[str, Any]:
        """The options that are set, in bytes, bit/s and s. Raises ValueError."""
        out = {k: v for k, v in self.model_dump().items() if v is not None}
        for name in ("length", "num_bytes", "window", "mss"):
            if name in out:
                out[name] = quantities.size(out[name], version)
        if "bandwidth" in out:
            out["bandwidth"] = quantities.rate(out["bandwidth"], version)
        return out


class PlannedTests(Options):
    """One [[test]] table: every combination of its lists."""

    version: Literal[2, 3] | list[Literal[2, 3]] = 3
    proto: Proto | list[Proto] = "tcp"
    mode: Mode | list[Mode] = "send"
    layer: str | list[str] | None = None
    """Not given: the layer asked for, or the board's first; "all": each of the board's."""
    role: Role | list[Role] = "client"

    @model_validator(mode="after")
    def _quantities(self) -> PlannedTests:
        for version in _listed(self.version):
            self.resolved(version)
        return self

    def resolved(self, version: int) -> dict[str, Any]:
        """The options without what makes the combinations."""
        skip = {"version", "proto", "mode", "layer", "role"}
        return {k: v for k, v in super().resolved(version).items() if k not in skip}


class Plan(Table):
    """A plan file."""

    title: str = ""
    repeats: int = Field(default=1, ge=1, le=1000)
    test: list[PlannedTests] = Field(min_length=1)


def names() -> list[str]:
    """Names of the shipped plans."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def load(name: str) -> Plan:
    """A shipped plan by name, or a plan file by path. Raises UpyperfError: usage, config."""
    if name in names():
        path = FOLDER / f"{name}.toml"
    elif Path(name).is_file():
        path = Path(name)
    else:
        near = difflib.get_close_matches(name, names(), n=1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise UpyperfError("usage", f"no plan {name!r}{hint}: neither a file nor one of {', '.join(names())}")
    return load_model(Plan, read_toml(path), path)


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list) else [value]


def expand(
    plan: Plan,
    board_layers: Sequence[str],
    layers: Sequence[str] = (),
    overrides: dict[str, Any] | None = None,
) -> list[Test]:
    """The tests of a plan for a board, in order; `overrides` are options (already in bytes,
    bit/s, s) that win over the plan's. Raises UpyperfError of kind usage or unsupported."""
    out: list[Test] = []
    for table in plan.test:
        for version, proto, mode, role in itertools.product(
            _listed(table.version), _listed(table.proto), _listed(table.mode), _listed(table.role)
        ):
            for layer in _layers(table.layer, board_layers, layers):
                options = {**table.resolved(version), **(overrides or {})}
                out.append(make(version, proto, mode, layer, options, role))
    return out


def _layers(planned: str | list[str] | None, board_layers: Sequence[str], asked: Sequence[str]) -> list[str]:
    wanted = list(asked) or (_listed(planned) if planned else [board_layers[0]])
    if wanted == ["all"]:
        wanted = list(board_layers)
    for layer in wanted:
        if layer not in board_layers:
            has = ", ".join(board_layers)
            raise UpyperfError("unsupported", f"the board has no layer {layer!r}, only {has}")
    return wanted


def make(
    version: int, proto: str, mode: str, layer: str, options: dict[str, Any], role: str = "client"
) -> Test:
    """One test with its name. Raises UpyperfError of kind usage for a combination that does not exist."""
    if (version, mode) in ((3, "dual"), (3, "tradeoff")):
        instead = "bidir" if mode == "dual" else "a send and a receive test"
        raise UpyperfError("usage", f"iPerf 3 has no {mode}: use {instead}")
    if version == 2 and options.get("omit"):
        raise UpyperfError("usage", "iPerf 2 has no omit (-O): use a longer time")
    for option, (least, most, unit) in LIMITS.items():
        value = options.get(option)
        if value is not None and not least <= value <= most:
            raise UpyperfError("usage", f"{option} must be {least} to {most}{unit}, not {value}")
    name = f"iperf{version}-{proto}-{mode}"
    if role == "server":
        name += "-server"
    if layer != "socket":
        name += f"-{layer}"
    try:
        return Test.model_validate(
            {"name": name, "version": version, "proto": proto, "mode": mode, "role": role, "layer": layer,
             "options": options}
        )  # fmt: skip
    except ValidationError as error:
        first = error.errors()[0]
        raise UpyperfError("usage", f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def job_options(test: Test, host: str | None, port: int) -> dict[str, Any]:
    """Keyword arguments of iperf.client or iperf.server on the board (`host` None: server)."""
    common = {"version": test.version, "udp": test.proto == "udp", "port": port, "layer": test.layer}
    if test.role == "server":
        allowed = ("length", "window", "interval", "bind", "ipv6", "mss", "tos", "nodelay")
        return {**common, **{k: v for k, v in test.options.items() if k in allowed}, "one_off": True}
    way: dict[str, Any] = {}
    if test.mode == "receive":
        way = {"reverse": True}
    elif test.mode == "bidir":
        way = {"bidir": True} if test.version == 3 else {"full_duplex": True}
    elif test.mode in ("dual", "tradeoff"):
        way = {test.mode: True}
    return {"host": host, **common, **way, **test.options}
