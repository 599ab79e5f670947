"""H3: names of devices reach pyserial as they are; and why a port does not open, in one line."""

from __future__ import annotations

import errno
import os
import pty
import tty
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import serial
from upyperf import link
from upyperf.errors import UpyperfError
from upyperf.link import ports
from upyperf.link.lines import Lines


def usb(device: str, number: str | None = None) -> SimpleNamespace:
    return SimpleNamespace(device=device, serial_number=number, vid=0x2E8A, pid=5)


@pytest.fixture
def connected(monkeypatch: pytest.MonkeyPatch) -> list[SimpleNamespace]:
    found: list[SimpleNamespace] = []
    monkeypatch.setattr(ports.list_ports, "comports", lambda: found)
    return found


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names that pyserial is asked for."""
    names: list[str] = []

    def fake(name: str, **_: Any) -> SimpleNamespace:
        names.append(name)
        return SimpleNamespace(open=lambda: None)

    monkeypatch.setattr(ports.serial, "serial_for_url", fake)
    return names


@pytest.mark.parametrize(
    "name",
    [
        "/dev/ttyUSB0",
        "/dev/ttyACM12",
        "/dev/cu.usbmodem14201",
        "/dev/cu.SLAB_USBtoUART",
        "/dev/serial/by-id/usb-Espressif_USB_JTAG-if00",
        "COM3",
        "COM12",
        "\\\\.\\COM12",
        "socket://192.168.1.5:4000",
        "socket://[::1]:4000",
        "rfc2217://raspi.local:2217?ign_set_control",
        "rfc2217://raspi.local:2217?ign_set_control&timeout=5",
    ],
)
def test_names_are_passed_on_unchanged(
    name: str, opened: list[str], connected: list[SimpleNamespace]
) -> None:
    ports.open_device(name, 115200, 5, Lines())
    ports.open_device("port:" + name, 115200, 5, Lines())
    assert opened == [name, name]


def test_id_and_auto(connected: list[SimpleNamespace]) -> None:
    connected += [SimpleNamespace(device="/dev/ttyS0", serial_number=None, vid=None, pid=None)]
    with pytest.raises(UpyperfError, match="no USB serial port"):
        ports.resolve("auto")
    connected.append(usb("/dev/ttyACM1", "E661"))
    assert ports.resolve("auto") == "/dev/ttyACM1"
    assert ports.resolve("id:E661") == "/dev/ttyACM1"
    with pytest.raises(UpyperfError, match="E662.*ttyACM1") as caught:
        ports.resolve("id:E662")
    assert caught.value.kind == "board"
    connected.append(usb("/dev/ttyACM0", "E662"))
    with pytest.raises(UpyperfError, match="name one of /dev/ttyACM0, /dev/ttyACM1"):
        ports.resolve("auto")


def message(device: str) -> str:
    with pytest.raises(UpyperfError) as caught:
        link.connect(device, timeout=2)
    assert caught.value.kind == "board"
    assert "\n" not in caught.value.text
    return caught.value.text


def test_missing_port(tmp_path: Path) -> None:
    assert "no such port; " in message(str(tmp_path / "ttyUSB0"))


def test_not_a_port(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "cannot open" in message(str(tmp_path / "file"))
    assert "cannot open nonsense://x" in message("nonsense://x")
    assert "cannot open socket://nohost" in message("socket://nohost")


@pytest.fixture
def terminal() -> Iterator[str]:
    master, slave = pty.openpty()
    tty.setraw(slave)
    yield os.ttyname(slave)
    os.close(slave)
    os.close(master)


def test_port_in_use(terminal: str) -> None:
    with serial.Serial(terminal, exclusive=True):
        assert "another program uses it" in message(terminal)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (serial.SerialException(errno.EACCES, "could not open port: Permission denied"), "dialout"),
        (serial.SerialException(errno.EBUSY, "could not open port: busy"), "another program"),
        (serial.SerialException("could not open port 'COM7': FileNotFoundError(2, 'x')"), "no such port"),
        (
            serial.SerialException("could not open port 'COM7': PermissionError(13, 'Access is denied.')"),
            "uses it",
        ),
    ],
)
def test_other_reasons(error: Exception, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(ports.serial, "serial_for_url", fail)
    assert words in message("COM7")
