"""Wi-Fi messages: scan, association, settings, access-point mode (fact sheet 5.1-5.4; rules 18, 22, 23)."""

from __future__ import annotations

import hashlib
import random
import struct
import time
from collections.abc import Callable

from . import ops, structs
from .air import Air
from .clock import Schedule
from .config import OPEN, PSK, AccessPoint, Config
from .hif import Hif, Message
from .rules import Book

DISCONNECTED, CONNECTED = 0, 1
NOT_FOUND, JOIN_FAILED, AUTH_FAILED, ASSOC_FAILED, IN_PROGRESS = 1, 2, 3, 4, 5
ANY_CHANNEL = (0, 0xFF, 0xFFFF)

# Opcode -> legal payload lengths, for messages whose length does not depend on the firmware version
_SIZES: dict[int, tuple[int, ...]] = {
    1: (0,), 2: (8,), 3: (0,), 5: (0,), 7: (48,), 11: (4, 8), 12: (0,), 13: (0,), 16: (4,), 18: (4,),
    20: (4,), 21: (4,), 22: (4,), 23: (4,), 24: (4,), 25: (4,), 26: (0,), 30: (8,), 35: (4,), 36: (4, 8),
    40: (108,), 41: (0,), 43: (0,), 45: (4,), 57: (4,), 58: (4,), 71: (0,), 106: (4,), 107: (0,),
}  # fmt: skip
_SINCE = {36: (19, 6, 0), 37: (19, 6, 0), 59: (19, 6, 0), 60: (19, 6, 0), 105: (19, 6, 0), 106: (19, 7, 0),
          107: (19, 7, 0)}  # fmt: skip
_ANY_SIZE = {8, 10, 15, 33, 34, 37, 38, 39, 60, 105}


class Wifi:
    """The radio's state and its messages (group 1)."""

    def __init__(
        self, config: Config, hif: Hif, air: Air, schedule: Schedule, book: Book, rng: random.Random
    ) -> None:
        self.config = config
        self.hif = hif
        self.air = air
        self.schedule = schedule
        self.book = book
        self.rng = rng
        self.on_joined: Callable[[], None] = lambda: None
        self.on_left: Callable[[], None] = lambda: None
        self.on_ap_started: Callable[[bytes], None] = lambda own_ip: None
        self.get_ip: Callable[[], bytes] = lambda: bytes(4)
        self.auth_failures = 0  # fault: so many attempts fail with JOIN_FAILED
        self.stale_disconnects = 0  # fault: so many attempts begin with a late event of an earlier one
        self.device_name = b""
        self.power_save = 0
        self.reset()
        hif.handlers[ops.WIFI] = self.handle

    def reset(self) -> None:
        """Firmware (re)started."""
        self.joined: AccessPoint | None = None
        self.joining = False
        self.scanning = False
        self.ap_mode = False
        self.power_save = 0
        self.device_name = b""
        self._found: list[AccessPoint] | None = None
        self._attempt = 0
        self._clock_offset = 0

    def _event(self, op: int, payload: bytes) -> None:
        self.hif.post(ops.WIFI, op, payload)

    def state_event(self, state: int, error: int = 0) -> None:
        """Op 44."""
        self._event(44, bytes((state, error, 0, 0)))

    # Dispatch

    def _legal(self, message: Message) -> bool:
        op, size, version = message.op, len(message.payload), self.config.version
        if version < _SINCE.get(op, (0,)):
            self.book.break_rule(
                18, f"{ops.name(ops.WIFI, op)} does not exist in firmware {self.config.firmware}"
            )
            return False
        legal: tuple[int, ...] | None = _SIZES.get(op)
        if op == 59:
            auth = message.payload[44] if size > 44 else 1
            legal = (48 + structs.NEW_CONNECT_BLOCK.get(auth, 0),) if auth != 4 else None
        elif op == 70:
            legal = (structs.ap_config_size(version),)
        if legal is None:
            return op in _ANY_SIZE or op == 59 or self._unknown(op)
        if size not in legal:
            text = " or ".join(str(n) for n in legal)
            self.book.break_rule(
                18,
                f"{ops.name(ops.WIFI, op)} with {size} bytes; firmware {self.config.firmware} takes {text}",
            )
            return False
        return True

    def _unknown(self, op: int) -> bool:
        self.book.break_rule(18, f"Wi-Fi op {op} is not one of firmware {self.config.firmware}; dropped")
        return False

    def handle(self, message: Message) -> None:
        """One message of group 1. Its buffer is free at once."""
        message.free()
        if not self._legal(message):
            return
        payload = message.payload
        match message.op:
            case 3:
                self._event(4, struct.pack("<bBBB", self._rssi(), 0, 0, 0))
            case 5:
                self._event(6, self._info())
            case 7:
                self.device_name = payload.split(b"\0")[0]
            case 11:
                self._clock_offset = int(struct.unpack_from("<I", payload)[0] - time.time())
            case 16 | 35:
                self._scan(payload)
            case 18:
                self._result(payload[0])
            case 26:
                self._time()
            case 40:
                self._connect(structs.parse_old_connect(payload))
            case 41:
                self._event(42, struct.pack("<bBBB", -20, 0, 0, 0))
            case 43:
                self._disconnect()
            case 45:
                self.power_save = payload[0]
            case 59:
                self._connect_new(payload)
            case 70:
                self._start_ap(payload)
            case 71:
                self.ap_mode = False
                self.on_left()
            case _:
                pass

    def _rssi(self) -> int:
        return max(-128, min(127, self.config.air.rssi)) if self.joined else 0

    def _info(self) -> bytes:
        point = self.joined
        if point is None:
            return bytes(48)
        channel = point.channel if self.config.version >= (19, 6, 0) else 0
        return structs.connection_info(
            point.ssid, point.security, self.get_ip(), point.bssid, self._rssi(), channel
        )

    def _time(self) -> None:
        if self.joined is None or not self.config.ip.time:
            return
        now = time.gmtime(time.time() + self._clock_offset)
        self._event(
            27,
            struct.pack("<H6B", now.tm_year, now.tm_mon, now.tm_mday, now.tm_hour, now.tm_min, now.tm_sec, 0),
        )

    # Scan

    def _scan(self, payload: bytes) -> None:
        if self.scanning or self.joining:
            what = "a scan" if self.scanning else "a connection attempt"
            self.book.break_rule(22, f"scan during {what}; rejected")
            self._event(17, struct.pack("<BbBB", 0, -1, 0, 0))
            return
        channel = payload[0]
        self.scanning, self._found = True, None

        def done() -> None:
            if not self.scanning:
                return
            self.scanning = False
            self._found = [
                ap
                for ap in self.config.aps
                if not ap.hidden and (channel in ANY_CHANNEL or ap.channel == channel)
            ]
            self._event(17, struct.pack("<BbBB", min(255, len(self._found)), 0, 0, 0))

        self.schedule.after_us(self.config.wifi.scan_us, done)

    def _result(self, index: int) -> None:
        if self.scanning or self._found is None:
            self.book.break_rule(22, "scan result requested before the scan was done; dropped")
            return
        if index >= len(self._found):
            self.book.break_rule(22, f"scan result {index} requested, {len(self._found)} were found; dropped")
            return
        ap = self._found[index]
        rssi = self.config.air.rssi if self._is_ours(ap) else ap.rssi
        self._event(19, structs.scan_result(index, rssi, ap.security, ap.channel, ap.bssid, ap.ssid))

    def _is_ours(self, ap: AccessPoint) -> bool:
        return ap is self.joined

    # Association

    def _connect_new(self, payload: bytes) -> None:
        block = structs.NEW_CONNECT_BLOCK.get(payload[44], len(payload) - 48)
        size = struct.unpack_from("<H", payload)[0]
        if size != 44 + block:
            self.book.break_rule(
                18, f"connect with credential size {size}, {44 + block} belongs to its kind of key; dropped"
            )
            return
        if not 1 <= payload[4] <= 32:
            self.book.break_rule(18, f"connect with an SSID of {payload[4]} bytes; dropped")
            return
        self._connect(structs.parse_new_connect(payload))

    def _connect(self, request: structs.ConnectRequest) -> None:
        if self.joining:
            self.book.break_rule(23, "connect while another attempt is under way; refused")
            self.state_event(DISCONNECTED, IN_PROGRESS)
            return
        if self.scanning:
            self.book.break_rule(22, "connect during a scan")
            self.scanning = False
        if self.joined is not None:
            self._leave()
            self.state_event(DISCONNECTED)
        self.joining = True
        self._attempt += 1
        attempt = self._attempt
        point, error = self._look_for(request)
        wifi = self.config.wifi
        if self.stale_disconnects > 0:
            self.stale_disconnects -= 1
            self.state_event(DISCONNECTED)
        if self.auth_failures > 0:
            self.auth_failures -= 1
            point, error = None, JOIN_FAILED

        def decide() -> None:
            if attempt != self._attempt or not self.joining:
                return
            self.joining = False
            if point is None or self.air.down:
                self.state_event(DISCONNECTED, error or NOT_FOUND)
                return
            self.joined = point
            self.state_event(CONNECTED)
            self.on_joined()

        self.schedule.after_us(wifi.auth_fail_us if error else wifi.join_us, decide)

    def _look_for(self, request: structs.ConnectRequest) -> tuple[AccessPoint | None, int]:
        candidates = [
            ap
            for ap in self.config.aps
            if ap.ssid == request.ssid
            and (request.bssid is None or ap.bssid == request.bssid)
            and (request.channel in ANY_CHANNEL or ap.channel == request.channel)
        ]
        if not candidates:
            return None, NOT_FOUND
        ap = max(candidates, key=lambda one: one.rssi)
        if ap.security == OPEN:
            return (ap, 0) if request.security == OPEN else (None, ASSOC_FAILED)
        if request.security != ap.security:
            return None, AUTH_FAILED if request.security == PSK else ASSOC_FAILED
        if ap.security == PSK and not _psk_fits(request.key, ap):
            return None, AUTH_FAILED
        if ap.security not in (OPEN, PSK) and request.key != ap.key:
            return None, AUTH_FAILED
        return ap, 0

    def _leave(self) -> None:
        self.joined = None
        self.on_left()

    def _disconnect(self) -> None:
        self.joining = False
        self._attempt += 1
        if self.joined is not None:
            self._leave()
        self.state_event(DISCONNECTED)

    def lose_ap(self) -> None:
        """The access point is gone: the link drops and the chip says so."""
        was = self.joined is not None or self.joining
        self.joining = False
        self._attempt += 1
        if self.joined is not None:
            self._leave()
        if was:
            self.state_event(DISCONNECTED, 0)

    # Access point

    def _start_ap(self, payload: bytes) -> None:
        if self.joined is not None or self.joining:
            self.book.break_rule(23, "AP mode while joined to a network; dropped")
            return
        ssid = payload[:33].split(b"\0")[0]
        if not ssid:
            self.book.break_rule(18, "AP mode with an empty SSID; dropped")
            return
        self.ap_mode = True
        self.on_ap_started(payload[65:69])

    def client_joins(self) -> None:
        """In AP mode: a station gets its address from the module."""
        own = self.get_ip()
        client = own[:3] + bytes((100,))
        self._event(50, structs.ip_config(self.config.version, client, own, own, b"\xff\xff\xff\0", 86400))


def _psk_fits(given: bytes, ap: AccessPoint) -> bool:
    if given == ap.key:
        return True
    if len(given) == 64:
        try:
            raw = bytes.fromhex(given.decode("ascii"))
        except ValueError:
            return False
        if len(ap.key) == 64:
            return raw.hex() == ap.key.decode("ascii", "replace").lower()
        return raw == hashlib.pbkdf2_hmac("sha1", ap.key, ap.ssid, 4096, 32)
    return False
