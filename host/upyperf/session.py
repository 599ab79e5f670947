"""A live board, ready to measure: started, connected, checked, on the network, deployed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from upyperf import deploy, link, network, virtual
from upyperf.boards import Board
from upyperf.boards.find import port_of
from upyperf.errors import UpyperfError
from upyperf.frames import JobRecords
from upyperf.records import BoardInfo, BoardRef, NetworkRef
from upyperf.sink import Sink
from upyperf.store.folder import SERIAL

INFO_S = 30.0
ANSWER_S = 15.0


@dataclass
class Access:
    """How to get at a board: what the user asked for."""

    port: str | None = None
    server: tuple[str, int | None] | None = None
    """HOST and PORT of a server that already runs."""
    server_port: int | None = None
    """Port of the server, wherever it runs; None: a free one, or the version's own."""
    peer_address: str | None = None
    static: network.Static | None = None
    virtual_options: dict[str, Any] = field(default_factory=dict)
    deploy: bool = True
    twin_of: str | None = None


@dataclass
class Session:
    """A board that is ready."""

    board: Board
    link: link.Link
    sink: Sink
    device: str
    info: BoardInfo
    network: NetworkRef
    peer_host: str
    """Address at which the board reaches the peer."""
    listen_host: str
    """Address of the PC where the peer listens."""
    board_host: str | None
    """Address at which the PC reaches a server on the board."""
    access: Access
    deployed: deploy.Deployed | None = None
    lwip_source: str | None = None
    """Who says what lwIP's options are: the board itself or its board.toml."""
    notes: list[str] = field(default_factory=list)

    def recover(self, progress: Callable[[str], None]) -> None:
        """After a test that failed: a board as after a start, its network included.

        A soft reset, or where that fails the reset that board.toml names. Raises UpyperfError.
        """
        try:
            self.link.soft_reset()
        except UpyperfError as error:
            method = self.board.serial.hard_reset
            if error.kind != "board" or method == "none":
                raise
            progress(f"no answer to a soft reset: hard reset by {method}")
            self.link.hard_reset(method, timeout=self.board.serial.boot_s + ANSWER_S)
        # Some ports take the interface down with the interpreter.
        up = _up(self.board, self.access, self.link, progress)
        if up and up.address != self.network.board_address:
            self.network.board_address = self.board_host = up.address

    @property
    def reference(self) -> BoardRef:
        """The board as results.json names it."""
        board = self.board
        return BoardRef(
            name=board.name,
            title=board.title,
            kind=board.kind,
            time=board.time,
            mcu=board.mcu,
            twin_of=self.access.twin_of,
            figures=board.figures,
            port=self.device,
            connection=board.nic.chip or board.nic.kind,
            link_mbit=board.nic.link_mbit,
        )

    @property
    def config(self) -> dict[str, Any]:
        """What else shapes the figures (field case R1)."""
        out: dict[str, Any] = {"firmware": self.info.micropython, "machine": self.info.machine}
        if self.deployed:
            out["modules"] = self.deployed.form
        if self.info.freq_hz:
            out["cpu_hz"] = self.info.freq_hz
        if self.lwip_source:
            out["lwip_source"] = self.lwip_source
        if self.board.virtual:
            out["launcher"] = self.board.virtual.launcher
            if self.access.virtual_options:
                out["virtual"] = dict(self.access.virtual_options)
        return out


@contextlib.contextmanager
def open_session(
    board: Board, access: Access, sink: Sink, folder: Path, progress: Callable[[str], None]
) -> Iterator[Session]:
    """Start or find the board, connect, check, bring the network up, deploy, ask what it is.

    `folder` gets serial.log and a virtual board's log. Everything is undone at the end.
    Raises UpyperfError of the kind of whatever failed.
    """
    with contextlib.ExitStack() as stack:
        running = None
        if board.virtual is not None and access.port is None:
            options = {**board.virtual.options, **access.virtual_options}
            progress(f"starting virtual board {board.name}")
            running = stack.enter_context(virtual.start(board.virtual.launcher, board, options, folder))
            device = running.device
        else:
            device = access.port or port_of(board)
        progress(f"connecting to {board.name} at {device}")
        log = folder / SERIAL
        serial = board.serial
        line = link.connect(
            device,
            baud=serial.baud,
            timeout=serial.boot_s + ANSWER_S,
            log=log,
            dtr=serial.dtr,
            rts=serial.rts,
        )
        stack.callback(line.close)
        line.identify().require(board.name, device, platform=serial.platform, machine=serial.machine)
        line.soft_reset()
        deployed = None
        if access.deploy:
            progress("deploying the modules")
            deployed = deploy.deploy(line, board)
            # Modules imported before are old ones now, and the heap is whole again.
            line.soft_reset()
        session = _on_network(board, access, sink, line, device, running, progress)
        session.deployed = deployed
        session.notes += deployed.notes if deployed else []
        session.info = ask_info(line, sink)
        if session.info.lwip is not None:
            session.lwip_source = "board"
        elif board.lwip:
            session.info.lwip, session.lwip_source = dict(board.lwip), "board.toml"
        yield session


def _up(
    board: Board, access: Access, line: link.Link, progress: Callable[[str], None]
) -> network.BoardNetwork | None:
    """Bring the board's interface up; None for a board on the PC's own network."""
    if board.nic.kind == "host":
        return None
    wifi = None
    if board.nic.kind == "wlan":
        wifi = network.credentials()
        # Before anything is sent: neither name nor key may reach the log.
        line.secret(wifi.ssid)
        if wifi.key:
            line.secret(wifi.key)
    progress(f"bringing up {board.nic.kind.upper()}")
    return network.bring_up(line, board, wifi, access.static, on_progress=progress)


def _on_network(
    board: Board,
    access: Access,
    sink: Sink,
    line: link.Link,
    device: str,
    running: virtual.VirtualBoard | None,
    progress: Callable[[str], None],
) -> Session:
    reference = NetworkRef(mode="virtual" if running else board.nic.kind)
    up = _up(board, access, line, progress)
    board_host = up.address if up else None
    if up and not running:
        choice = network.choose(up.address, wanted=access.peer_address)
        peer_host = listen_host = choice.address
        reference.mode, reference.interface = up.mode, choice.interface
        reference.notes.append(f"PC address {choice.address} on {choice.interface}: {choice.why}")
        progress(f"board at {up.address} ({up.mode}), PC at {choice.address} on {choice.interface}")
    else:
        peer_host = running.peer_host if running else "127.0.0.1"
        listen_host = running.listen_host if running else "127.0.0.1"
        if access.peer_address and not up:
            choice = network.choose(access.peer_address, wanted=access.peer_address)
            peer_host = listen_host = choice.address
            reference.interface = choice.interface
        board_host = getattr(running, "board_host", None) or (None if up else peer_host)
        reference.mode = "loopback" if peer_host.startswith("127.") else reference.mode
    reference.pc_address, reference.board_address = listen_host, up.address if up else board_host
    if access.server:
        peer_host = access.server[0]
        reference.mode = "server"
    elif "socket" in board.layers:
        reference.rtt_us = network.probe(line, peer_host, listen_host, up.gateway if up else None)
    return Session(
        board, line, sink, device, BoardInfo(), reference, peer_host, listen_host, board_host, access
    )


def ask_info(line: link.Link, sink: Sink) -> BoardInfo:
    """What the board is, by its agent. Raises UpyperfError: memory, board, protocol."""
    for _ in range(2):  # a torn line is asked for once more
        records = JobRecords()
        line.exec("from iperf import agent; agent.info()", timeout=INFO_S, on_line=records.feed)
        if records.complete:
            break
    for error in records.of_kind("error"):
        raise UpyperfError(error.get("kind", "board"), f"the board's agent: {error.get('text')}")
    answers = records.of_kind("board")
    if not answers:
        raise UpyperfError("protocol", "the board's agent did not say what the board is; see serial.log")
    fields = {k: v for k, v in answers[0].items() if k not in ("k", "run")}
    sink.emit("board", "board", None, fields)
    try:
        return BoardInfo.model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        raise UpyperfError(
            "protocol", f"the board's agent: {'.'.join(map(str, first['loc']))}: {first['msg']}"
        ) from None
