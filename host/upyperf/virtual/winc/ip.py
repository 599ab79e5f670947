"""Addresses, name resolution and ping of the module (fact sheet 5.1, 5.6; rules 18, 19, 23)."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable

from . import ops, structs
from .clock import Schedule
from .config import Config
from .hif import Hif, Message
from .rules import Book
from .wifi import Wifi

PING_OK, PING_UNREACHABLE, PING_TIMEOUT = 0, 1, 2


class Ip:
    """The module's address and what goes with it; hands socket messages on."""

    def __init__(self, config: Config, hif: Hif, wifi: Wifi, schedule: Schedule, book: Book) -> None:
        self.config = config
        self.hif = hif
        self.wifi = wifi
        self.schedule = schedule
        self.book = book
        self.on_address_lost: Callable[[], None] = lambda: None
        self._resolving: str | None = None
        self.reset()
        wifi.on_joined = self._joined
        wifi.on_left = self._left
        wifi.on_ap_started = self._ap_started
        wifi.get_ip = lambda: self.address

    def reset(self) -> None:
        """Firmware (re)started."""
        self.address = bytes(4)
        self.use_dhcp = True
        self._resolving = None
        self._life = getattr(self, "_life", 0) + 1

    @property
    def up(self) -> bool:
        """Whether the module has an address."""
        return self.address != bytes(4)

    def _ap_started(self, own: bytes) -> None:
        self.address = own if own != bytes(4) else structs.ip_bytes("192.168.1.1")

    def _left(self) -> None:
        self._life += 1
        self.address = bytes(4)
        self.on_address_lost()

    def _joined(self) -> None:
        if self.use_dhcp:
            self.lease(self.config.ip.dhcp_us)

    def lease(self, delay_us: float) -> None:
        """Ask for (or renew) the address; op 50 or its failure follows."""
        ip = self.config.ip
        life = self._life
        failing = ip.dhcp != "ok"

        def answer() -> None:
            if life != self._life or self.wifi.joined is None:
                return
            if failing:
                if self.config.version >= (19, 6, 0):
                    self.hif.post(ops.WIFI, 61, b"")
                return
            self.address = structs.ip_bytes(ip.address)
            event = structs.ip_config(
                self.config.version,
                self.address,
                structs.ip_bytes(ip.gateway),
                structs.ip_bytes(ip.dns),
                structs.ip_bytes(ip.netmask),
                ip.lease_s,
            )
            self.hif.post(ops.WIFI, 50, event)

        self.schedule.after_us(ip.dhcp_fail_us if failing else delay_us, answer)

    def handle(self, message: Message) -> bool:
        """Configuration, DNS and ping of group 2. False: a socket message, not ours."""
        if message.op == 10:
            self._static(message.payload)
        elif message.op in (11, 12):
            if message.payload:
                self.book.break_rule(
                    18, f"{ops.name(ops.IP, message.op)} with {len(message.payload)} bytes; dropped"
                )
            else:
                self.use_dhcp = message.op == 11
                if self.use_dhcp and self.wifi.joined is not None and not self.up:
                    self.lease(self.config.ip.dhcp_us)
        elif message.op == 0x4A:
            self._resolve(message.payload)
        elif message.op == 0x52:
            self._ping(message.payload)
        else:
            return False
        message.free()
        return True

    def _static(self, payload: bytes) -> None:
        want = structs.ip_config_size(self.config.version)
        if len(payload) != want:
            self.book.break_rule(
                18,
                f"static IP with {len(payload)} bytes; firmware {self.config.firmware} takes {want}; dropped",
            )
            return
        if self.use_dhcp:
            self.book.break_rule(23, "static IP while DHCP is on (op 12 comes first)")
        self.address = structs.parse_ip_config(payload)[0]

    # DNS

    def _resolve(self, payload: bytes) -> None:
        name, _, rest = payload.partition(b"\0")
        if not payload or len(payload) > 64 or b"\0" not in payload or rest:
            self.book.break_rule(
                18, f"DNS request of {len(payload)} bytes that is no name with one NUL; dropped"
            )
            return
        if self._resolving is not None:
            self.book.break_rule(19, "DNS request while another one is under way; dropped")
            return
        text = name.decode("ascii", "replace")
        self._resolving = text
        life = self._life
        box: list[bytes] = []
        ip = self.config.ip
        if not self.up or ip.dns_fail:
            box.append(bytes(4))
        elif text in ip.hosts:
            box.append(structs.ip_bytes(ip.hosts[text]))
        else:
            threading.Thread(target=_lookup, args=(text, box), daemon=True).start()

        def answer() -> None:
            if life != self._life:
                return
            if not box:
                self.schedule.after_us(2000, answer)
                return
            self._resolving = None
            self.hif.post(ops.IP, 0x4A, name.ljust(64, b"\0")[:64] + box[0])

        self.schedule.after_us(ip.dns_us, answer)

    # Ping

    def _ping(self, payload: bytes) -> None:
        if len(payload) != 12:
            self.book.break_rule(18, f"ping with {len(payload)} bytes, 12 are legal; dropped")
            return
        address, private, count = struct.unpack_from("<4sIH", payload)
        ip = self.config.ip
        count = max(1, count)
        error = {"ok": PING_OK, "unreachable": PING_UNREACHABLE}.get(ip.ping, PING_TIMEOUT)
        if not self.up:
            error = PING_UNREACHABLE
        good = count if error == PING_OK else 0
        reply = struct.pack(
            "<4sIIHHB3x", address, private, ip.ping_ms if good else 0, good, count - good, error
        )
        delay = ip.ping_ms * 1000 * count if error == PING_OK else 1000
        self.schedule.after_us(delay, lambda: self.hif.post(ops.IP, 0x52, reply))


def _lookup(name: str, box: list[bytes]) -> None:
    try:
        found = socket.getaddrinfo(name, None, socket.AF_INET, socket.SOCK_STREAM)
        box.append(structs.ip_bytes(str(found[0][4][0])))
    except (OSError, ValueError, UnicodeError):
        box.append(bytes(4))
