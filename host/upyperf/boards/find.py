"""Which serial port a hardware board is at."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from serial.tools import list_ports

from upyperf.boards.model import Board, UsbId
from upyperf.errors import UpyperfError


def _matches(usb: UsbId, port: Any) -> bool:
    if usb.vid is not None and port.vid != usb.vid:
        return False
    if usb.pid is not None and port.pid != usb.pid:
        return False
    if usb.serial_number is not None and port.serial_number != usb.serial_number:
        return False
    names = f"{port.product or ''} {port.description or ''}"
    return usb.product is None or bool(re.search(usb.product, names))


def _id_text(usb: UsbId) -> str:
    parts = []
    if usb.vid is not None:
        parts.append(f"USB {usb.vid:04x}:{'*' if usb.pid is None else f'{usb.pid:04x}'}")
    if usb.serial_number:
        parts.append(f"serial number {usb.serial_number}")
    if usb.product:
        parts.append(f"product /{usb.product}/")
    return " ".join(parts)


def port_of(board: Board, ports: Sequence[Any] | None = None) -> str:
    """The serial port of a hardware board, by its USB identity.

    Raises UpyperfError of kind board: none or several; the text says what was looked for.
    """
    present = list(list_ports.comports()) if ports is None else list(ports)
    found = [p for p in present if any(_matches(usb, p) for usb in board.serial.usb)]
    if len(found) == 1:
        return str(found[0].device)
    if found:
        names = ", ".join(str(p.device) for p in found)
        raise UpyperfError(
            "board", f"{len(found)} ports look like {board.name}: name one of {names} with --port"
        )
    looked = " or ".join(_id_text(usb) for usb in board.serial.usb) or "no USB identity known"
    there = ", ".join(f"{p.device} ({_port_text(p)})" for p in present) or "none"
    twin = f"; without it: make bench BOARD={board.name} TWIN=1 (on {board.twin})" if board.twin else ""
    raise UpyperfError(
        "board",
        f"no {board.name} connected: looked for {looked}; serial ports here: {there}; "
        f"name the port with --port if it is one of these{twin}",
    )


def _port_text(port: Any) -> str:
    if port.vid is None:
        return "no USB"
    return f"{port.vid:04x}:{port.pid or 0:04x} {port.product or ''}".strip()
