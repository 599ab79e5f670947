"""Board `winc1510-sim`: MicroPython's unix port with a simulated ATWINC1510 on its SPI bus.

Two processes: the simulator (upyperf.virtual.winc, docs/winc-sim.md) and the unix board, on whose file system
lies a machine.SPI that talks to the simulator. The driver on the board is the one that runs on real boards.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from upyperf.errors import UpyperfError
from upyperf.paths import root
from upyperf.virtual import unix
from upyperf.virtual._board import VirtualBoard
from upyperf.virtual.winc.config import Config, get_value, load, set_value

OPTIONS = {
    "heap": "size of MicroPython's heap, as for board unix",
    "spi_hz": "SPI clock that the board's driver sets, in Hz; default 10000000",
    "profile": "profile of the simulator: field (default) or instant",
    "config": "TOML file with settings of the simulator",
    "trace": "file that gets every SPI transfer (read it with: upyperf winc trace FILE)",
}

_START_TIMEOUT = 15.0  # s
_CLOSE_TIMEOUT = 5.0  # s, then SIGKILL

_WIRING = """\
import winc1500, winc_sim

_link = winc_sim.connect({address!r})
_module = winc1500.setup(
    winc_sim.SPI(baudrate={spi_hz}),
    cs=winc_sim.Pin("cs", winc_sim.Pin.OUT, value=1),
    rst=winc_sim.Pin("rst", winc_sim.Pin.OUT),
    en=winc_sim.Pin("en", winc_sim.Pin.OUT),
    irq=winc_sim.Pin("irq", winc_sim.Pin.IN, winc_sim.Pin.PULL_UP),
)
_counters = _module.counters


def _with_simulator():
    d = _counters()
    s = _link.control(cmd="stats")
    d["simulated"] = 1
    for k in ("behind_us", "idle_us", "bus_us", "span_us", "clock_hz"):
        d["sim_" + k] = s["spi"][k]
    for k in ("dropped_queue", "dropped_air", "rssi"):
        d["sim_" + k] = s["air"][k]
    d["sim_violations"] = sum(s["violations"].values())
    return d


_module.counters = _with_simulator
if not _module.running:
    from winc1500 import network

    network.WINC().connect({ssid!r}, {key!r})
"""


class Winc1510Board(VirtualBoard):
    """A running board; made by start()."""

    peer_host = "127.0.0.1"
    listen_host = "127.0.0.1"
    board_host = "127.0.0.1"

    def __init__(self, board: VirtualBoard, simulator: subprocess.Popen[str], scratch: Path) -> None:
        self.device = board.device
        self._board = board
        self._simulator = simulator
        self._scratch = scratch

    def alive(self) -> bool:
        """Whether board and simulator still run."""
        return self._board.alive() and self._simulator.poll() is None

    def close(self) -> None:
        """End both; returns within 15 s, may be called again."""
        self._board.close()
        _end(self._simulator)
        shutil.rmtree(self._scratch, ignore_errors=True)


def start(board: object, options: Mapping[str, object], log_dir: Path | None) -> Winc1510Board:
    """Start simulator and board. `options`: see OPTIONS, and any setting of the simulator (`air.rssi`).

    Raises UpyperfError: `config` for a bad option, `board` when one of the two does not start.
    """
    own, settings = _split(options)
    config = _check(own, settings)
    spi_hz = _spi_hz(own)
    scratch = Path(tempfile.mkdtemp(prefix="upyperf-winc-"))
    simulator = None
    try:
        flash = scratch / "flash"
        flash.mkdir()
        simulator, address = _start_simulator(own, settings, scratch, log_dir)
        point = config.aps[0]
        _write_device_files(
            flash,
            _WIRING.format(
                address=address,
                spi_hz=spi_hz,
                ssid=point.ssid.decode("utf-8", "replace"),
                key=point.key.decode("utf-8", "replace") or None,
            ),
        )
        unix_options: dict[str, object] = {"flash": str(flash)}
        if "heap" in own:
            unix_options["heap"] = own["heap"]
        return Winc1510Board(unix.start(board, unix_options, log_dir), simulator, scratch)
    except BaseException:
        if simulator is not None:
            _end(simulator)
        shutil.rmtree(scratch, ignore_errors=True)
        raise


def _split(options: Mapping[str, object]) -> tuple[dict[str, object], dict[str, object]]:
    """Our own options, and settings of the simulator by their dotted names."""
    own: dict[str, object] = {}
    settings: dict[str, object] = {}
    for key, value in options.items():
        if key in OPTIONS:
            own[key] = value
        elif isinstance(value, Mapping):
            settings.update({f"{key}.{inner}": v for inner, v in value.items()})
        else:
            settings[key] = value
    return own, settings


def _check(own: Mapping[str, object], settings: Mapping[str, object]) -> Config:
    path = Path(str(own["config"])) if "config" in own else None
    try:
        config = load(str(own.get("profile", "field")), path, {})
        for key, value in settings.items():
            get_value(config, key)
            set_value(config, key, value)
        _ = config.version, config.mac_bytes
    except ValueError as error:
        raise UpyperfError(
            "config", f"board winc1510-sim: {error}; its own options are {', '.join(OPTIONS)}"
        ) from None
    return config


def _spi_hz(own: Mapping[str, object]) -> int:
    try:
        hz = int(str(own.get("spi_hz", 10_000_000)), 0)
    except ValueError:
        hz = 0
    if not 100_000 <= hz <= 48_000_000:
        raise UpyperfError(
            "config", f"spi_hz of board winc1510-sim is {own.get('spi_hz')!r}: give 100000 to 48000000 Hz"
        )
    return hz


def _write_device_files(flash: Path, wiring: str) -> None:
    source = root() / "boards" / "winc1510-sim" / "device" / "winc_sim.py"
    try:
        (flash / "winc_sim.py").write_bytes(source.read_bytes())
    except OSError as error:
        raise UpyperfError("config", f"board winc1510-sim: {source}: {error.strerror}") from None
    (flash / "winc_board.py").write_text(wiring, encoding="utf-8")


def _start_simulator(
    own: Mapping[str, object], settings: Mapping[str, object], scratch: Path, log_dir: Path | None
) -> tuple[subprocess.Popen[str], str]:
    command = [sys.executable, "-m", "upyperf.virtual.winc", "--unix", str(scratch / "winc")]
    command += ["--profile", str(own.get("profile", "field"))]
    if "config" in own:
        command += ["--config", str(own["config"])]
    if "trace" in own:
        command += ["--trace", str(own["trace"])]
    for key, value in settings.items():
        command += ["--set", f"{key}={_text(value)}"]
    if log_dir is not None:
        log_dir.mkdir(parents=True, exist_ok=True)
        command += ["--stats", str(log_dir / "winc-sim.json")]
    paths = [str(Path(__file__).resolve().parents[2]), os.environ.get("PYTHONPATH", "")]
    with contextlib.ExitStack() as stack:
        log: int | IO[bytes] = subprocess.DEVNULL
        if log_dir is not None:
            log = stack.enter_context(open(log_dir / "winc-sim.log", "ab"))
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in paths if p)},
        )
    assert process.stdout is not None
    deadline = time.monotonic() + _START_TIMEOUT
    ready = select.select([process.stdout], [], [], max(0.0, deadline - time.monotonic()))[0]
    line = process.stdout.readline() if ready else ""
    if not line.startswith("ready "):
        _end(process)
        where = f"; see {log_dir / 'winc-sim.log'}" if log_dir else ""
        raise UpyperfError("board", f"board winc1510-sim: the simulator does not start{where}")
    return process, line.split()[1]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _end(process: subprocess.Popen[str]) -> None:
    for sign in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is None:
            process.send_signal(sign)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_CLOSE_TIMEOUT)
            break
    if process.stdout is not None:
        process.stdout.close()
