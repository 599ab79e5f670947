"""The PC's interfaces, and which of its addresses a board can reach."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Sequence
from dataclasses import dataclass

import psutil

from upyperf.errors import UpyperfError


@dataclass(frozen=True)
class Interface:
    """One IPv4 address of the PC; `address` is None for an interface that has none."""

    name: str
    address: str | None
    prefix: int | None
    up: bool

    @property
    def network(self) -> ipaddress.IPv4Network | None:
        """The network of the address."""
        if self.address is None or self.prefix is None:
            return None
        return ipaddress.IPv4Network(f"{self.address}/{self.prefix}", strict=False)

    @property
    def loopback(self) -> bool:
        """Whether only this PC reaches it."""
        return self.address is not None and ipaddress.IPv4Address(self.address).is_loopback


def interfaces() -> list[Interface]:
    """Every IPv4 address of the PC, and the interfaces without one."""
    out = []
    states = psutil.net_if_stats()
    for name, addresses in psutil.net_if_addrs().items():
        up = name in states and states[name].isup
        found = [a for a in addresses if a.family == socket.AF_INET]
        for entry in found:
            prefix = ipaddress.IPv4Network(f"0.0.0.0/{entry.netmask or '255.255.255.255'}").prefixlen
            out.append(Interface(name, entry.address, prefix, up))
        if not found:
            out.append(Interface(name, None, None, up))
    return out


def routed_address(target: str) -> str | None:
    """The address from which this PC would send to the target; None when there is no route.

    Nothing is sent: a datagram socket is only connected.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((target, 9))
        except OSError:
            return None
        address: str = probe.getsockname()[0]
        return address


@dataclass(frozen=True)
class Choice:
    """The chosen address of the PC and the reason in words."""

    address: str
    interface: str
    why: str


def choose(board_ip: str, candidates: Sequence[Interface] | None = None, wanted: str | None = None) -> Choice:
    """The PC's address for the peer of a board at `board_ip`.

    `wanted` (an address or an interface's name) is taken if it is ours. Else the interface in
    the board's own network, else the one that the route to the board leaves by. Raises
    UpyperfError: usage (wanted is not ours), network-down (no way to the board; says what to do).
    """
    known = interfaces() if candidates is None else list(candidates)
    usable = [i for i in known if i.address is not None and i.up]
    if wanted:
        for interface in usable:
            if wanted in (interface.address, interface.name):
                assert interface.address is not None
                return Choice(interface.address, interface.name, "as asked")
        has = _listed(usable)
        raise UpyperfError("usage", f"{wanted} is no address or interface of this PC; it has {has}")
    board = ipaddress.IPv4Address(board_ip)
    near = [i for i in usable if i.network and board in i.network]
    if near:
        best = max(near, key=lambda i: i.prefix or 0)
        assert best.address is not None
        return Choice(best.address, best.name, f"in the board's network {best.network}")
    routed = routed_address(board_ip)
    for interface in usable:
        if interface.address == routed and not interface.loopback:
            assert interface.address is not None
            return Choice(interface.address, interface.name, "the route to the board leaves by it")
    raise UpyperfError("network-down", no_way_text(board_ip, known))


def _listed(usable: Sequence[Interface]) -> str:
    return ", ".join(f"{i.address} ({i.name})" for i in usable) or "none"


def no_way_text(board_ip: str, known: Sequence[Interface]) -> str:
    """One line: the board's address is in no network of this PC, and how to change that."""
    bare = [i.name for i in known if i.up and i.address is None and i.name != "lo"]
    device = bare[0] if bare else "DEVICE"
    network = ipaddress.IPv4Network(f"{board_ip}/24", strict=False)
    first = next(host for host in network.hosts() if str(host) != board_ip)
    usable = [i for i in known if i.address is not None and i.up]
    return (
        f"this PC has no way to the board at {board_ip}: its addresses are {_listed(usable)}; "
        f"for a direct cable: sudo ip address add {first}/24 dev {device}"
    )
