"""What can be set on the simulated module. Every value has its unit in its name or its comment."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any

OPEN, PSK, WEP, ENTERPRISE = 1, 2, 3, 4


@dataclass
class SpiConfig:
    """The SPI port and the host's way of driving it."""

    clock_hz: int = 10_000_000  # SCK until the host says otherwise
    host: str = "none"  # "polling", "dma": model the host's cost; "none": transfers take no time
    call_us: float = 17.5  # host's cost of one SPI call: function call, chip select, set-up (W1, W5)
    poll_gap_us: float = 0.3  # polling: pause between two bytes, absent with DMA (W7)
    catch_up_us: float = 10_000.0  # how far the model may lag behind the wall clock before it gives time up
    idle_us: float = 1000.0  # a shorter pause between two transfers always counts as the host's work
    pause_us: float = 30.0  # a reply is never held back for less than this (sleeping costs more)
    echo_zeros: str = "random"  # zeros before the echo of a command: "random" (0-2) or a number
    data_zeros: str = "random"  # zeros between state and a data packet of a read: "random" (0-4) or a number
    idle_miso: int = 0x00  # MISO of an unpowered chip: 0x00, or 0xFF with a pull-up


@dataclass
class BootConfig:
    """Power-up."""

    en_tied: bool = False  # CHIP_EN is tied high on the board
    en_to_reset_us: float = 0.0  # shortest time from CHIP_EN high to RESET_N high (5000: datasheet minimum)
    reset_us: float = 0.0  # from RESET_N high until the SPI port answers
    efuse_us: float = 0.0  # from reset until 0x1014 bit 31
    rom_us: float = 0.0  # from efuse until the ROM's mailbox shows 0x10ADD09E
    firmware_us: float = 0.0  # from the start word until 0x108C shows 0x02532636
    wait_for_host: bool = True  # 0x207BC bit 0 is 0: the ROM waits for the host
    chip_id: int = 0x1003A0
    rf_rev: int = 0x1


@dataclass
class HifConfig:
    """Message buffers and latencies of the host interface."""

    data_buffers: int = 8  # buffers of the data pool (sends)
    control_buffers: int = 6  # buffers of the pool for commands
    grant_us: float = 0.0  # from the request (0x1078) until it is answered; 20-200 on the real chip [?]
    event_us: float = 0.0  # from an answer's cause until it is offered in 0x1070; 200-1000 [?]
    done_us: float = 0.0  # from RX done until the next message is offered
    pad: bool = True  # length in 0x1070 is rounded up to 4 (the header's stays exact)
    random_addresses: bool = True


@dataclass
class AccessPoint:
    """A network in the air."""

    ssid: bytes = b"upyperf"
    key: bytes = b"throughput"  # empty: open
    bssid: bytes = bytes.fromhex("02aabbccdd01")
    channel: int = 6
    rssi: int = -60  # dBm; what a scan shows. The one we are joined to shows air.rssi
    security: int = PSK
    hidden: bool = False


@dataclass
class WifiConfig:
    """Association."""

    scan_us: float = 0.0
    join_us: float = 0.0
    auth_fail_us: float = 0.0
    sleep_us: float = 10_000.0  # quiet time after which a chip in power-save mode falls asleep
    wake_us: float = 0.0  # from the wake request until 0x0F bit 2
    wake_fail: float = 1.0  # probability that the first clocked access after waking fails without 0xCF


@dataclass
class IpConfig:
    """What the network hands out, and where addresses lead on this machine."""

    address: str = "192.168.77.20"
    gateway: str = "192.168.77.1"
    netmask: str = "255.255.255.0"
    dns: str = "192.168.77.1"
    lease_s: int = 86_400
    dhcp: str = "ok"  # "ok" or "fail"
    dhcp_us: float = 0.0
    dhcp_fail_us: float = 1_000_000.0
    dns_us: float = 0.0
    dns_fail: bool = False
    hosts: dict[str, str] = field(
        default_factory=dict
    )  # names answered without asking this machine's resolver
    nat: dict[str, str] = field(
        default_factory=dict
    )  # address on the simulated network -> address to dial here
    listen_host: str = "127.0.0.1"  # where the module's server sockets are opened
    ping: str = "ok"  # "ok", "unreachable" or "timeout"
    ping_ms: int = 2
    time: bool = True  # op 26 is answered


@dataclass
class SocketConfig:
    """The module's TCP and UDP."""

    connect_timeout_us: float = 10_000_000.0  # SYN retries of the module; unknown on silicon
    mss: int = 1460
    rx_window: int = 5840  # bytes held in the module per TCP socket before its window closes
    rx_datagrams: int = 8  # datagrams held per UDP socket
    unacked: int = 65_536  # bytes in this machine's send queue above which the peer counts as not reading
    accept_id: str = "lowest"  # id of an accepted socket: "lowest" free or "random"
    idle_ack_us: float = 0.0  # added to every acknowledgement of a TCP send (slow peer)


@dataclass
class AirConfig:
    """The way through the module's firmware and the air. Not enabled: no air at all."""

    enabled: bool = False
    rssi: int = -60  # dBm
    margin_db: float = 12.0  # the rate control keeps this far above the sensitivity of a rate
    max_phy_mbps: float = 65.0  # highest PHY rate the two ends agree on
    module_tcp_us: float = 1085.0  # the module's own work on one TCP segment, its acknowledgement included
    module_udp_us: float = 930.0  # and on one datagram
    module_byte_us: float = 0.0  # more work for each byte
    udp_free_us: float = 150.0  # from the commit of a datagram until its buffer is free again
    access_us: float = 120.0  # preamble, SIFS, ACK and DIFS of one frame
    contention_us: float = 160.0  # mean wait for a free medium and back-off, exponentially distributed
    retry: float = 0.02  # probability that a try is lost at a strong signal
    retry_knee_dbm: float = -74.0  # around here half of the tries are lost
    retry_slope_db: float = 5.0  # how soon that changes with the signal
    max_tries: int = 7  # then a datagram is lost, a TCP segment starts again
    loss: float = 0.0005  # datagrams lost behind the air, independent of load
    queue: int = 24  # frames waiting for the air (module and AP) before more are dropped
    rtt_us: float = 900.0  # from the end of a frame until the peer's acknowledgement is back


@dataclass
class Config:
    """The whole module. Config() is profile "instant": no latency at all."""

    firmware: str = "19.6.1"
    mac: str = "f8:f0:05:12:34:56"
    factory_mac: bool = True
    seed: int | None = None  # of everything random; None: different each time
    strict: bool = False
    strict_addresses: bool = True  # rule 9 counts as a violation (otherwise a note)
    spi: SpiConfig = field(default_factory=SpiConfig)
    boot: BootConfig = field(default_factory=BootConfig)
    hif: HifConfig = field(default_factory=HifConfig)
    wifi: WifiConfig = field(default_factory=WifiConfig)
    ip: IpConfig = field(default_factory=IpConfig)
    sockets: SocketConfig = field(default_factory=SocketConfig)
    air: AirConfig = field(default_factory=AirConfig)
    aps: list[AccessPoint] = field(default_factory=lambda: [AccessPoint()])

    @property
    def version(self) -> tuple[int, int, int]:
        """Firmware version as numbers. Raises ValueError for anything but 19.4.4 ... 19.7.x."""
        parts = self.firmware.split(".")
        try:
            major, minor, patch = (int(part) for part in parts)
        except ValueError:
            raise ValueError(f"firmware {self.firmware!r} is not like 19.6.1") from None
        if not (19, 4, 4) <= (major, minor, patch) < (19, 8, 0) or patch > 255:
            raise ValueError(f"firmware {self.firmware} is not simulated; there are 19.4.4 to 19.7.x")
        return major, minor, patch

    @property
    def mac_bytes(self) -> bytes:
        """The MAC address. Raises ValueError when it is not six bytes of hex."""
        mac = bytes.fromhex(self.mac.replace(":", ""))
        if len(mac) != 6:
            raise ValueError(f"MAC address {self.mac!r} has {len(mac)} bytes, not 6")
        return mac


def field_config(**changes: Any) -> Config:
    """Profile "field": latencies and rates that land near the field report's experiments W1-W7."""
    config = Config(**changes)
    config.spi.host = "polling"
    config.boot = BootConfig(
        en_to_reset_us=5000, reset_us=1000, efuse_us=5000, rom_us=30_000, firmware_us=60_000
    )
    config.hif.grant_us = 60
    config.hif.event_us = 300
    config.hif.done_us = 20
    config.wifi.scan_us = 800_000
    config.wifi.join_us = 600_000
    config.wifi.auth_fail_us = 900_000
    config.wifi.wake_us = 2000
    config.wifi.wake_fail = 0.7
    config.ip.dhcp_us = 300_000
    config.ip.dns_us = 15_000
    config.air.enabled = True
    return config


def _instant_config() -> Config:
    return Config()


PROFILES: dict[str, Callable[[], Config]] = {"instant": _instant_config, "field": field_config}


def _coerce(key: str, old: Any, value: Any) -> Any:
    try:
        if isinstance(old, bool):
            if isinstance(value, str):
                return {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}[
                    value.lower()
                ]
            return bool(value)
        if isinstance(old, int):
            return int(value, 0) if isinstance(value, str) else int(value)
        if isinstance(old, float):
            return float(value)
        if isinstance(old, bytes):
            return value if isinstance(value, bytes) else str(value).encode()
        if isinstance(old, dict):
            return dict(value)
        if old is None:
            return None if value is None else int(value)
    except (KeyError, TypeError, ValueError):
        wanted = {bool: "true or false", int: "a whole number", float: "a number", dict: "a table"}
        raise ValueError(f"{key}: {value!r} is not {wanted.get(type(old), 'a whole number')}") from None
    return str(value)


def set_value(config: Config, key: str, value: Any) -> None:
    """Set one value by its dotted name, e.g. "air.rssi". Raises ValueError with one line for what is bad."""
    target: Any = config
    *path, last = key.split(".")
    for part in path:
        target = getattr(target, part, None)
        if not is_dataclass(target):
            raise ValueError(f"there is no setting {key!r}")
    if last not in {f.name for f in fields(target)} or is_dataclass(getattr(target, last)):
        raise ValueError(f"there is no setting {key!r}")
    if last == "aps":
        config.aps = [access_point(entry) for entry in value]
        return
    setattr(target, last, _coerce(key, getattr(target, last), value))


def get_value(config: Config, key: str) -> Any:
    """One value by its dotted name. Raises ValueError for a bad key."""
    target: Any = config
    for part in key.split("."):
        if not is_dataclass(target) or part not in {f.name for f in fields(target)}:
            raise ValueError(f"there is no setting {key!r}")
        target = getattr(target, part)
    return target


def access_point(entry: Mapping[str, Any]) -> AccessPoint:
    """An AccessPoint out of a table: ssid, key, bssid (hex), channel, rssi, security, hidden.

    ssid and key may be given as `ssid_hex`, `key_hex` for any bytes. Raises ValueError for unknown names.
    """
    point = AccessPoint(bssid=bytes.fromhex("02aabbccdd01"))
    for key, value in entry.items():
        name = key.removesuffix("_hex")
        if name not in {f.name for f in fields(AccessPoint)}:
            raise ValueError(f"an access point has no {key!r}")
        if key.endswith("_hex") or name == "bssid":
            value = bytes.fromhex(str(value).replace(":", ""))
        setattr(point, name, _coerce(name, getattr(point, name), value))
    if not point.key and point.security == PSK:
        point.security = OPEN
    if not 1 <= len(point.ssid) <= 32:
        raise ValueError(f"SSID of {len(point.ssid)} bytes; 1 to 32 are possible")
    return point


def load(
    profile: str = "instant", path: Path | None = None, settings: Mapping[str, Any] | None = None
) -> Config:
    """A configuration from a profile, a TOML file and single settings, in this order.

    The file has `profile`, top-level values, tables [spi], [air], ... and [[aps]]. Raises ValueError
    with one line (file, key, reason) for whatever is wrong.
    """
    table: dict[str, Any] = {}
    if path is not None:
        try:
            table = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise ValueError(f"{path}: {error}") from None
    profile = str(table.pop("profile", profile))
    if profile not in PROFILES:
        raise ValueError(f"there is no profile {profile!r}; there are {', '.join(PROFILES)}")
    config = PROFILES[profile]()
    for key, value in table.items():
        if isinstance(value, dict):
            for name, inner in value.items():
                set_value(config, f"{key}.{name}", inner)
        else:
            set_value(config, key, value)
    for key, value in (settings or {}).items():
        set_value(config, key, value)
    _ = config.version, config.mac_bytes
    return config
