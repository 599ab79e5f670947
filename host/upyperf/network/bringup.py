"""Brings a real board's interface up over the REPL, and says in one line what is wrong if not."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from upyperf.boards import Board
from upyperf.errors import UpyperfError
from upyperf.network.interfaces import Interface, interfaces
from upyperf.network.wifi import SSID, WifiCredentials
from upyperf.paths import DATA

_WLAN_TEXTS = {
    "STAT_WRONG_PASSWORD": "the Wi-Fi key is wrong",
    "STAT_NO_AP_FOUND": "no Wi-Fi of that name is in reach (2.4 GHz?)",
    "STAT_CONNECT_FAIL": "the access point refused",
    "STAT_ASSOC_FAIL": "the access point refused",
    "STAT_HANDSHAKE_TIMEOUT": "the key handshake timed out: is the Wi-Fi key right?",
    "STAT_BEACON_TIMEOUT": "the access point was lost",
}


class ExecLink(Protocol):
    """What bringing up needs of a link."""

    def exec(self, code: str, timeout: float, on_line: Callable[[str], None] | None = None) -> str:
        """Run code on the board."""


@dataclass(frozen=True)
class Static:
    """A fixed address for the board."""

    address: str
    prefix: int
    gateway: str | None = None
    dns: str | None = None

    @classmethod
    def parse(cls, text: str, gateway: str | None = None) -> Static:
        """From "192.168.7.2/24". Raises UpyperfError of kind usage."""
        try:
            interface = ipaddress.IPv4Interface(text)
            if "/" not in text:
                raise ValueError("the length of the network is missing")
            if gateway is not None:
                ipaddress.IPv4Address(gateway)
        except ValueError as error:
            raise UpyperfError("usage", f"--ip {text}: {error}; write it like 192.168.7.2/24") from None
        return cls(str(interface.ip), interface.network.prefixlen, gateway)

    @property
    def ifconfig(self) -> tuple[str, str, str, str]:
        """What MicroPython's ifconfig takes: address, mask, gateway, DNS server."""
        mask = str(ipaddress.IPv4Network(f"0.0.0.0/{self.prefix}").netmask)
        gateway = self.gateway or "0.0.0.0"
        return (self.address, mask, gateway, self.dns or gateway)


@dataclass(frozen=True)
class BoardNetwork:
    """The board's interface as it came up."""

    address: str
    mask: str
    gateway: str | None
    mode: str
    """dhcp or static."""


def program(board: Board, wifi: WifiCredentials | None, static: Static | None, timeout_s: float) -> str:
    """The code that brings the interface up; name and key go as Python literals (field case B4)."""
    nic = board.nic
    lines = [(DATA / "board" / "bringup.py").read_text(encoding="utf-8"), *nic.setup, "import network"]
    arguments = [
        nic.create, repr(nic.kind),
        _literal(wifi.ssid if wifi else None), _literal(wifi.key if wifi else None),
        repr(static.ifconfig if static else None), repr(int(timeout_s)), repr(nic.link_down),
    ]  # fmt: skip
    lines.append(f"_up({', '.join(arguments)})")
    lines.append("del _up")
    return "\n".join(lines) + "\n"


def _literal(text: str | None) -> str:
    # ASCII only, so that no byte of a key depends on the link's encoding.
    return ascii(text)


def bring_up(
    link: ExecLink,
    board: Board,
    wifi: WifiCredentials | None = None,
    static: Static | None = None,
    timeout_s: float | None = None,
    on_progress: Callable[[str], None] | None = None,
) -> BoardNetwork:
    """Bring the board's interface up. Raises UpyperfError of kind network-down, or the link's."""
    limit = timeout_s or board.nic.timeout_s
    answers: list[dict[str, Any]] = []

    def on_line(line: str) -> None:
        if not line.startswith("#N "):
            return
        try:
            answer = json.loads(line[3:])
        except ValueError:
            return
        answers.append(answer)
        if on_progress and "ok" not in answer:
            what = answer.get("name") or f"status {answer.get('status')}"
            on_progress(f"{board.nic.kind.upper()}: {what}, {answer.get('left_s')} s left")

    # ifconfig("dhcp") may block for its own 10 s beyond the limit.
    link.exec(program(board, wifi, static, limit), timeout=limit + 30, on_line=on_line)
    last = answers[-1] if answers else {}
    if last.get("ok"):
        gateway = last.get("gateway")
        return BoardNetwork(
            last["ip"], last["mask"], None if gateway in (None, "", "0.0.0.0") else gateway,
            "static" if static else "dhcp",
        )  # fmt: skip
    raise UpyperfError("network-down", explain(board, last, static, limit, interfaces()))


def explain(
    board: Board, answer: dict[str, Any], static: Static | None, limit_s: float, known: list[Interface]
) -> str:
    """One line on why the interface did not come up, and what to do."""
    kind, name = board.nic.kind.upper(), board.name
    why = answer.get("why")
    if why == "error":
        return f"{kind} of {name}: {answer.get('text')}; does the firmware have this interface?"
    if board.nic.kind == "wlan" and why in ("no-link", "no-address"):
        text = _WLAN_TEXTS.get(str(answer.get("name")))
        if text:
            return f"WLAN of {name}: {text} (${SSID} names the network)"
        if why == "no-link":
            return f"WLAN of {name}: no connection within {limit_s:.0f} s; is the network in reach (${SSID})?"
    if why == "no-link":
        return f"{kind} of {name}: no link within {limit_s:.0f} s; is the cable in, is the other end on?"
    if why == "no-address" and not static:
        detail = f" ({answer['text']})" if answer.get("text") else ""
        bare = [i.name for i in known if i.up and i.address is None and i.name != "lo"]
        return (
            f"{kind} of {name}: no DHCP answer within {limit_s:.0f} s{detail}; with a direct cable give both "
            f"ends an address: sudo ip address add 192.168.7.1/24 dev {bare[0] if bare else 'DEVICE'} here, "
            f"and --ip 192.168.7.2/24 for the board"
        )
    return f"{kind} of {name}: it did not come up and did not say why; see serial.log"
