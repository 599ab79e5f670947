"""Asks the board to reach the PC before anything is measured, and measures the round trip."""

from __future__ import annotations

import contextlib
import errno
import json
import socket
import statistics
import threading
from collections.abc import Callable
from typing import Any

from upyperf.errors import UpyperfError
from upyperf.network.bringup import ExecLink
from upyperf.paths import DATA

ROUNDS = 9
TIMEOUT_S = 5.0


class Echo:
    """A TCP echo for one board, for the time of the probe."""

    def __init__(self, address: str) -> None:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._socket = socket.create_server((address, 0), family=family)
        self._socket.settimeout(TIMEOUT_S * 3)
        self.port: int = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            connection, _ = self._socket.accept()
            with connection:
                connection.settimeout(TIMEOUT_S)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                while data := connection.recv(64):
                    connection.sendall(data)

    def __enter__(self) -> Echo:
        return self

    def __exit__(self, *exc: object) -> None:
        # Closing alone does not wake a thread that waits in accept().
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(timeout=TIMEOUT_S * 2)


def ask(link: ExecLink, host: str, port: int, rounds: int = ROUNDS) -> dict[str, Any]:
    """The board's answer to a probe of host and port: ok, rtt_us, errno, text."""
    answers: list[dict[str, Any]] = []

    def on_line(line: str) -> None:
        if line.startswith("#N "):
            with contextlib.suppress(ValueError):
                answers.append(json.loads(line[3:]))

    code = (DATA / "board" / "probe.py").read_text(encoding="utf-8")
    code += f"_probe({host!r}, {port}, {rounds}, {TIMEOUT_S})\ndel _probe\n"
    link.exec(code, timeout=TIMEOUT_S * (rounds + 1) + 10, on_line=on_line)
    return answers[-1] if answers else {"ok": False, "text": "the board did not answer the probe"}


def probe(link: ExecLink, peer_host: str, listen_host: str, gateway: str | None = None) -> float | None:
    """Median round trip in us between board and PC over TCP; None when the board cannot time it.

    `peer_host` is the PC's address as the board reaches it, `listen_host` where the PC
    listens. Raises UpyperfError: refused, unreachable or timeout, each with the next step.
    """
    with Echo(listen_host) as echo:
        answer = ask(link, peer_host, echo.port)
    if answer["ok"]:
        times = [t for t in answer.get("rtt_us", []) if t > 0]
        return float(statistics.median(times)) if times else None
    raise failure(answer, peer_host, lambda: _gateway_answers(link, gateway))


def _gateway_answers(link: ExecLink, gateway: str | None) -> bool | None:
    if gateway is None:
        return None
    # A port that nothing serves: a refusal is an answer.
    answer = ask(link, gateway, 9, rounds=1)
    return bool(answer["ok"]) or answer.get("errno") in (errno.ECONNREFUSED, errno.ECONNRESET)


def failure(
    answer: dict[str, Any], peer_host: str, gateway_answers: Callable[[], bool | None]
) -> UpyperfError:
    """The error for a probe that failed: three causes, three texts (field case P17)."""
    number, text = answer.get("errno"), answer.get("text", "")
    if number == errno.ECONNREFUSED:
        return UpyperfError(
            "refused",
            f"{peer_host} refuses the board's connection: is that address this PC's? (--peer-address)",
        )
    if number in (errno.EHOSTUNREACH, errno.ENETUNREACH, 118):  # 118: EHOSTUNREACH of lwIP
        return UpyperfError(
            "unreachable",
            f"the board has no route to {peer_host}: are both in one network, is its gateway set? (--ip)",
        )
    near = gateway_answers()
    hint = {
        True: "the gateway answers, so a firewall on this PC is likely: allow incoming TCP and UDP",
        False: "the gateway does not answer either: is the board's network the right one?",
        None: "a firewall on this PC may drop it, or cable or Wi-Fi lead into another network",
    }[near]
    return UpyperfError("timeout", f"the board does not reach this PC at {peer_host} ({text}): {hint}")
