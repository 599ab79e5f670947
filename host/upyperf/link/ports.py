"""From the name of a device to an open pyserial port, or one line that says why not.

Names are mpremote's: a port (`/dev/ttyUSB0`, `/dev/cu.usbmodem1`, `COM12`, `\\\\.\\COM12`), a pyserial
URL (`socket://h:p`, `rfc2217://h:p?ign_set_control`), `id:SERIAL`, `port:PATH`, `auto`.
"""

from __future__ import annotations

import errno
from typing import Any

import serial
from serial.tools import list_ports

from upyperf.errors import UpyperfError
from upyperf.link.lines import Lines, open_port

READ_SLICE = 0.05  # s that one read waits at most; deadlines are looked at in between


def resolve(device: str) -> str:
    """The port or URL that `device` stands for. Raises UpyperfError `board` when it stands for none."""
    if device == "auto":
        usb = sorted(p.device for p in list_ports.comports() if p.vid is not None and p.pid is not None)
        if not usb:
            raise UpyperfError(
                "board", "no USB serial port found: plug the board in, or name its port (/dev/ttyUSB0, COM3)"
            )
        if len(usb) > 1:
            raise UpyperfError("board", f"{len(usb)} USB serial ports found: name one of {', '.join(usb)}")
        return str(usb[0])
    if device.startswith("id:"):
        wanted = device[len("id:") :]
        for port in list_ports.comports():
            if port.serial_number == wanted:
                return str(port.device)
        raise UpyperfError("board", f"no serial port with serial number {wanted!r}: {_connected()}")
    return device.removeprefix("port:")


def open_device(device: str, baud: int, write_timeout: float, lines: Lines) -> Any:
    """Open the port that `device` stands for; returns a pyserial object with READ_SLICE as its timeout.

    Raises UpyperfError `board`: no such port, no permission, in use, refused.
    """
    name = resolve(device)
    try:
        port = serial.serial_for_url(
            name, do_not_open=True, baudrate=baud, timeout=READ_SLICE, exclusive=True
        )
        if not name.startswith("rfc2217:"):  # which cannot do it, and has a timeout of its own
            port.write_timeout = write_timeout
        open_port(port, lines, _vid(name))
    except (OSError, ValueError, NotImplementedError) as error:
        raise UpyperfError("board", f"cannot open {name}: {_reason(name, error)}") from None
    return port


def _vid(name: str) -> int | None:
    if "://" in name:
        return None
    for port in list_ports.comports():
        if port.device == name:
            return port.vid if isinstance(port.vid, int) else None
    return None


def _connected() -> str:
    ports = sorted(p.device for p in list_ports.comports())
    return f"connected are {', '.join(ports)}" if ports else "no serial port is connected"


def _reason(name: str, error: Exception) -> str:
    text = str(error)
    code = getattr(error, "errno", None)
    if code in (errno.EAGAIN, errno.EBUSY) or "exclusively lock" in text:
        return "another program uses it (a terminal, mpremote, an IDE): close that first"
    if code == errno.EACCES or "Access is denied" in text or "PermissionError" in text:
        return "no permission, or another program uses it: on Linux add yourself to group dialout"
    if code in (errno.ENOENT, errno.ENXIO, errno.ENODEV) or "FileNotFoundError" in text:
        return f"no such port; {_connected()}"
    if name.startswith("rfc2217:") and "timeout while waiting for option" in text:
        return f"{text}; servers such as ser2net do not answer it: append ?ign_set_control to the URL"
    if "Connection refused" in text:
        return "the connection was refused: is the serial server running, and is this its port?"
    return text.splitlines()[0] if text else type(error).__name__
