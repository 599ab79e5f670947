"""Boards on QEMU: our firmware on an emulated machine, its console a pty, user-mode network.

Nothing here needs root. With `link` a program of ours stands between the board's NIC and the network
(delay, loss, reordering, duplication, rate); see _link_emulator.py.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
import tty
from collections.abc import Mapping
from pathlib import Path

from upyperf import firmware
from upyperf.errors import UpyperfError
from upyperf.virtual._board import VirtualBoard
from upyperf.virtual._link_emulator import LinkSettings
from upyperf.virtual._qmp import Qmp

OPTIONS = {
    "machine": "QEMU's machine (board.toml)",
    "nic": "QEMU's model of the network interface (board.toml)",
    "profile": "lwIP options that the firmware is built with; default: tuned",
    "firmware": "ELF file to run instead of the one that is built",
    "icount": "count instructions: 0 is one instruction per ns, N one per 2^N ns, or auto; default: off",
    "link": "what happens to frames, e.g. delay=5ms,loss=1%,reorder=1%,dup=1%,rate=10M,seed=1",
    "mac": "MAC address of the board; default: QEMU's",
    "netns": "network namespace to run in: a name of `ip netns`, or a /proc/PID/ns/net path",
    "qemu": "further arguments for QEMU, a list (profiling plugins and the like)",
}

NETDEV = "n0"
_START_TIMEOUT_S = 20.0
_CLOSE_TIMEOUT_S = 3.0


class QemuBoard(VirtualBoard):
    """A running board; made by start()."""

    peer_host = "10.0.2.2"
    listen_host = "127.0.0.1"

    def __init__(self, process: subprocess.Popen[bytes], scratch: Path, elf: Path, emulated: bool) -> None:
        self.elf = elf
        self.pid = process.pid
        self._process = process
        self._scratch = scratch
        self._emulator: subprocess.Popen[bytes] | None = None
        self._qmp: Qmp | None = None
        self._hold = -1
        self._user_netdev = "u0" if emulated else NETDEV
        self._forwarded: set[tuple[str, int]] = set()

    @property
    def qmp(self) -> Qmp:
        """The control connection."""
        if self._qmp is None:
            self._qmp = Qmp(self._scratch / "qmp")
        return self._qmp

    def alive(self) -> bool:
        """Whether QEMU still runs."""
        return self._process.poll() is None

    def set_link(self, up: bool) -> None:
        """Plug or pull the network cable."""
        self.qmp.command("set_link", name=NETDEV, up=up)

    def reset(self) -> None:
        """Press the reset button."""
        self.qmp.command("system_reset")

    def forward(self, protocol: str, port: int, host_port: int | None = None) -> tuple[str, int]:
        """Let the PC reach a port of the board: the (address, port) on the PC. protocol: tcp or udp.

        Raises UpyperfError `board` when the port on the PC is taken.
        """
        outside = host_port or port
        if (protocol, outside) not in self._forwarded:
            said = self.qmp.monitor(f"hostfwd_add {self._user_netdev} {protocol}:127.0.0.1:{outside}-:{port}")
            if said.strip():
                raise UpyperfError("board", f"cannot forward {protocol} port {outside}: {said.strip()}")
            self._forwarded.add((protocol, outside))
        return "127.0.0.1", outside

    def close(self) -> None:
        """End the board; returns within seconds, may be called again."""
        if self._qmp is not None:
            self._qmp.close()
            self._qmp = None
        for process in (self._process, self._emulator):
            if process is not None:
                _end(process)
        if self._hold >= 0:
            os.close(self._hold)
            self._hold = -1
        shutil.rmtree(self._scratch, ignore_errors=True)

    # --- parts of start() ---

    def _open_console(self, log: Path) -> str:
        """Wait for the pty's name, and hold it open in raw mode.

        QEMU looks only once a second whether somebody opened the pty and drops output until then, and
        a fresh pty echoes: both eat the first bytes of a client that connects at once.
        """
        deadline = time.monotonic() + _START_TIMEOUT_S
        while time.monotonic() < deadline:
            text = log.read_text(errors="replace")
            found = re.search(r"char device redirected to (/dev/pts/\d+)", text)
            if found:
                self._hold = os.open(found[1], os.O_RDWR | os.O_NOCTTY)
                tty.setraw(self._hold)
                return found[1]
            if not self.alive():
                reason = (text.strip().splitlines() or ["it said nothing"])[-1]
                raise UpyperfError("board", f"QEMU does not start: {reason}")
            time.sleep(0.02)
        raise UpyperfError("board", f"QEMU gave no console within {_START_TIMEOUT_S:.0f} s")

    def _await_prompt(self) -> None:
        """Wait until the REPL answers, then leave nothing unread in the console."""
        deadline = time.monotonic() + _START_TIMEOUT_S
        seen = b""
        while b">>> " not in seen:
            if time.monotonic() > deadline or not self.alive():
                raise UpyperfError("board", "the firmware gives no prompt: " + repr(seen[-200:]))
            if select.select([self._hold], [], [], 0.5)[0]:
                seen += os.read(self._hold, 4096)
            elif not seen:
                os.write(self._hold, b"\r")


def start(board: object, options: Mapping[str, object], log_dir: Path | None) -> QemuBoard:
    """Start the board (an upyperf.boards.Board); see OPTIONS for `options`.

    Raises UpyperfError: `config` for a bad option or a failing firmware build, `board` when QEMU is
    missing or does not run.
    """
    unknown = sorted(set(options) - set(OPTIONS))
    if unknown:
        raise UpyperfError(
            "config", f"a QEMU board has no option {unknown[0]!r}: there are {', '.join(OPTIONS)}"
        )
    program = shutil.which("qemu-system-arm")
    if not program:
        raise UpyperfError("board", "qemu-system-arm is not here: apt-get install qemu-system-arm")
    link = LinkSettings.parse(str(options["link"])) if options.get("link") else None
    elf = _elf(board, options)
    scratch = Path(tempfile.mkdtemp(prefix="upyperf-qemu-"))
    log = scratch / "qemu.log"
    command = [
        *_enter(options), program, "-M", str(options.get("machine", "mps2-an386")), "-kernel", str(elf),
        "-display", "none", "-monitor", "none", "-serial", "pty",
        "-qmp", f"unix:{scratch / 'qmp'},server=on,wait=off",
        *_network(options, link, scratch), *_icount(options), *_further(options),
    ]  # fmt: skip
    if log_dir is not None:
        log_dir.mkdir(parents=True, exist_ok=True)
        log = log_dir / "board-qemu.log"
        log.unlink(missing_ok=True)
    with log.open("ab") as out:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
        )
    running = QemuBoard(process, scratch, elf, link is not None)
    try:
        if link is not None:
            running._emulator = subprocess.Popen(
                [sys.executable, "-m", "upyperf.virtual._link_emulator", str(link), str(scratch)],
                stdin=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        running.device = running._open_console(log)
        running._await_prompt()
        return running
    except BaseException:
        running.close()
        raise


def _elf(board: object, options: Mapping[str, object]) -> Path:
    if options.get("firmware"):
        elf = Path(str(options["firmware"])).expanduser().absolute()
        if not elf.exists():
            raise UpyperfError("config", f"firmware {elf} is not there")
        return elf
    name = str(getattr(board, "name", board or "qemu-an386"))
    return firmware.build(name, str(options.get("profile", "tuned")))


def _network(options: Mapping[str, object], link: LinkSettings | None, scratch: Path) -> list[str]:
    model = f"model={options.get('nic', 'lan9118')}"
    mac = f",mac={options['mac']}" if options.get("mac") else ""
    if link is None:
        return ["-nic", f"user,{model},id={NETDEV}{mac}"]

    # NIC - unix datagrams - the emulator - unix datagrams - hub - user-mode network, in one QEMU.
    def pair(ident: str, ours: str, theirs: str) -> str:
        return (
            f"dgram,id={ident},local.type=unix,local.path={scratch / ours},"
            f"remote.type=unix,remote.path={scratch / theirs}"
        )

    return [
        "-netdev", pair(NETDEV, "nic", "emulator-nic"), "-net",
        f"nic,netdev={NETDEV},{model}{mac.replace('mac=', 'macaddr=')}",
        "-netdev", "user,id=u0", "-netdev", pair("d0", "net", "emulator-net"),
        "-netdev", "hubport,id=h0,hubid=7,netdev=u0", "-netdev", "hubport,id=h1,hubid=7,netdev=d0",
    ]  # fmt: skip


def _icount(options: Mapping[str, object]) -> list[str]:
    value = options.get("icount")
    if value is None or value is False:
        return []
    if str(value) != "auto" and not re.fullmatch(r"\d|10", str(value)):
        raise UpyperfError("config", f"icount is {value!r}: give 0 to 10, or auto")
    return ["-icount", f"shift={value}"]


def _further(options: Mapping[str, object]) -> list[str]:
    value = options.get("qemu", [])
    if not isinstance(value, list):
        raise UpyperfError("config", "qemu must be a list of arguments")
    return [str(v) for v in value]


def _enter(options: Mapping[str, object]) -> list[str]:
    netns = options.get("netns")
    if not netns:
        return []
    path = str(netns) if str(netns).startswith("/") else f"/run/netns/{netns}"
    holder = re.fullmatch(r"/proc/(\d+)/ns/net", path)
    if holder and os.geteuid() != 0:
        return ["nsenter", "-t", holder[1], "-U", "-n", "--preserve-credentials", "--"]
    return ["nsenter", f"--net={path}", "--"]


def _end(process: subprocess.Popen[bytes]) -> None:
    for stop in (process.terminate, process.kill):
        if process.poll() is not None:
            break
        stop()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_CLOSE_TIMEOUT_S)
    process.wait(_CLOSE_TIMEOUT_S)
