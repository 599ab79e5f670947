"""What a board.toml may say, validated. Units stand in the names of the keys."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from upyperf.tomlmodel import Table


def _regex(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from None
    return text


Regex = Annotated[str, AfterValidator(_regex)]
Layer = Literal["socket", "netconn", "raw", "winc1500"]


class UsbId(Table):
    """How a serial port is recognised; every key given must match."""

    vid: int | None = Field(default=None, ge=0, le=0xFFFF)
    pid: int | None = Field(default=None, ge=0, le=0xFFFF)
    serial_number: str | None = None
    product: Regex | None = None
    """Regular expression on the product text."""


class Serial(Table):
    """The serial line and how the board is known on it."""

    usb: list[UsbId] = Field(default_factory=list)
    baud: int = Field(default=115200, ge=1200, le=4_000_000)
    machine: Regex | None = None
    """Regular expression that sys.implementation._machine must match."""
    platform: str | None = None
    """sys.platform that the board must answer."""
    boot_s: float = Field(default=5.0, ge=0, le=120)
    """Time from opening the port until the REPL answers, in s."""
    dtr: bool | None = None
    rts: bool | None = None
    """Level of the line after opening; not given: left as the driver does it."""
    hard_reset: Literal["none", "dtr-rts", "machine.reset"] = "machine.reset"


class Nic(Table):
    """The network interface and how to bring it up."""

    kind: Literal["host", "lan", "wlan"]
    """host: the board uses the PC's own network (unix port), nothing to bring up."""
    chip: str | None = None
    """PHY, MAC or Wi-Fi chip, e.g. "LAN8720"."""
    create: str = ""
    """Python expression that makes the interface object on the board."""
    setup: list[str] = Field(default_factory=list)
    """Statements run on the board before `create`, e.g. imports and pins."""
    link_mbit: float | None = Field(default=None, gt=0)
    """Nominal rate of the link, Mbit/s."""
    timeout_s: float = Field(default=30.0, gt=0, le=600)
    """How long link and address may take, in s (Wi-Fi with DHCP takes up to 60)."""
    link_down: list[int] = Field(default_factory=lambda: [0])
    """Values of nic.status() that mean "no link" (LAN; the port's documentation tells)."""

    @model_validator(mode="after")
    def _creatable(self) -> Nic:
        if self.kind != "host" and not self.create:
            self.create = "network.LAN()" if self.kind == "lan" else "network.WLAN(network.STA_IF)"
        return self


class Flash(Table):
    """One way to flash the board; the first of the list is the preferred one."""

    method: Literal[
        "esptool", "dfu-util", "openocd", "st-flash", "stm32loader", "uf2", "picotool",
        "openfpgaloader", "pyocd",
    ]  # fmt: skip
    options: dict[str, Any] = Field(default_factory=dict)


class Firmware(Table):
    """Where the firmware comes from."""

    source: Literal["none", "build", "download", "stock", "program"] = "none"
    board: str | None = None
    """Name of the board in MicroPython's tree or on its download page."""
    version: str | None = None
    """Least MicroPython version, e.g. "1.22"."""
    file: str | None = None
    url: str | None = None
    modules: list[str] = Field(default_factory=list)
    """C modules that a build takes in, e.g. "netconn"."""


class Limits(Table):
    """What the board cannot exceed."""

    ram_kib: float | None = Field(default=None, gt=0)
    udp_max: int | None = Field(default=None, gt=0, le=65507)
    """Largest UDP payload in bytes."""
    streams: int | None = Field(default=None, gt=0)
    tcp_window: int | None = Field(default=None, gt=0)
    """Bytes."""


class Virtual(Table):
    """How a virtual board is started: the launcher of upyperf.virtual and its options."""

    launcher: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    options: dict[str, Any] = Field(default_factory=dict)


class Deploy(Table):
    """How the modules get onto the board."""

    form: Literal["mpy", "py", "frozen"] = "mpy"
    native: bool = True
    """Compile the hot files with the native emitter where the port has it."""
    path: str = "/lib"
    """Folder on the board; "" for the current one."""


class Board(Table):
    """One board, virtual or real."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")
    title: str
    kind: Literal["virtual", "hardware"]
    tested: Literal["hardware", "virtual", "none"]
    """What our own runs cover: "none" means not run on hardware."""
    time: Literal["wall", "virtual"] = "wall"
    """virtual: the board's clock does not follow ours, so rates are of its own time."""
    mcu: str | None = None
    port: str
    """MicroPython's port: unix, stm32, esp32, rp2, mimxrt, qemu …"""
    layers: list[Layer] = Field(min_length=1)
    twin: str | None = None
    """The virtual board nearest to this hardware board."""
    nic: Nic
    serial: Serial = Field(default_factory=Serial)
    virtual: Virtual | None = None
    deploy: Deploy = Field(default_factory=Deploy)
    flash: list[Flash] = Field(default_factory=list)
    firmware: Firmware = Field(default_factory=Firmware)
    limits: Limits = Field(default_factory=Limits)
    lwip: dict[str, int | str | bool] = Field(default_factory=dict)
    """lwIP options of the firmware as its source says them, where the board cannot tell."""
    pins: dict[str, str] = Field(default_factory=dict)
    notes: list[str] = Field(default_factory=list)
    figures: str | None = None
    """What the figures of a virtual board mean; said with every result ("simulated: …")."""
    plan: str | None = None
    """Plan that bench takes when none is named."""

    folder: Path | None = Field(default=None, exclude=True, repr=False, json_schema_extra={"readOnly": True})

    @model_validator(mode="after")
    def _consistent(self) -> Board:
        problems = []
        if self.kind == "virtual" and self.virtual is None:
            problems.append("virtual: a virtual board needs a [virtual] table with its launcher")
        if self.kind == "hardware" and self.virtual is not None:
            problems.append("virtual: a hardware board has no [virtual] table")
        if self.kind == "virtual" and self.twin:
            problems.append("twin: only a hardware board has a twin")
        if self.kind == "hardware" and self.time == "virtual":
            problems.append("time: a hardware board keeps wall time")
        if problems:
            raise ValueError("; ".join(problems))
        return self


def schema() -> dict[str, Any]:
    """JSON Schema of board.toml."""
    document = Board.model_json_schema(mode="validation")
    document["properties"].pop("folder")
    document["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    document["title"] = "board.toml"
    return document
