"""Groups, opcodes and which messages carry data (fact sheet 4.2, 4.3, 4.5)."""

from __future__ import annotations

import struct

MAIN, WIFI, IP, HIF, OTA, SSL = 0, 1, 2, 3, 4, 5
DATA_BIT = 0x80
MAX_MESSAGE = 1596
HEADER = 8
MAX_SEND = 1400

WIFI_OPS: dict[int, str] = {
    1: "restart", 2: "set MAC", 3: "RSSI request", 4: "RSSI", 5: "connection info request",
    6: "connection info", 7: "device name", 8: "start provisioning", 9: "provisioning info",
    10: "stop provisioning", 11: "set time", 12: "SNTP on", 13: "SNTP off", 14: "memory recover",
    15: "custom IE", 16: "scan", 17: "scan done", 18: "scan result request", 19: "scan result",
    20: "scan options", 21: "scan region", 22: "power profile", 23: "TX power", 24: "battery voltage",
    25: "logs", 26: "time request", 27: "time", 28: "Ethernet TX", 29: "Ethernet RX",
    30: "multicast MAC", 31: "random request", 32: "random", 33: "scan SSID list", 34: "gains",
    35: "passive scan", 36: "auto rate", 37: "SNTP config", 38: "gain index", 39: "delete stored AP",
    40: "connect (old)", 41: "connect stored", 42: "stored result", 43: "disconnect", 44: "state changed",
    45: "power save", 50: "IP configuration", 52: "IP conflict", 57: "listen interval", 58: "doze",
    59: "connect", 60: "connect parameters", 61: "DHCP failure", 70: "AP on", 71: "AP off",
    72: "AP restart", 105: "roaming", 106: "XO sleep", 107: "stop scan",
}  # fmt: skip

IP_OPS: dict[int, str] = {
    10: "static IP", 11: "DHCP on", 12: "DHCP off", 0x41: "bind", 0x42: "listen", 0x43: "accept",
    0x44: "connect", 0x45: "send", 0x46: "recv", 0x47: "sendto", 0x48: "recvfrom", 0x49: "close",
    0x4A: "DNS", 0x4B: "SSL connect", 0x4C: "SSL send", 0x4D: "SSL recv", 0x4E: "SSL close",
    0x4F: "setsockopt", 0x50: "SSL create", 0x51: "SSL setsockopt", 0x52: "ping", 0x53: "SSL ciphers",
    0x54: "SSL bind", 0x55: "SSL expiry check", 0x56: "secure connect", 0x57: "ALPN connect",
}  # fmt: skip

GROUPS = {
    MAIN: "main", WIFI: "Wi-Fi", IP: "IP", HIF: "HIF", OTA: "OTA", SSL: "SSL", 6: "crypto", 7: "sigma",
    8: "internal",
}  # fmt: skip

SETTLED_DATA_OPS = {
    (WIFI, 8), (WIFI, 15), (WIFI, 28), (WIFI, 31), (WIFI, 33),
    (IP, 0x45), (IP, 0x47), (IP, 0x4C),
}  # fmt: skip


def name(gid: int, op: int) -> str:
    """A readable name of a message."""
    op &= 0x7F
    table = {WIFI: WIFI_OPS, IP: IP_OPS}.get(gid, {})
    return table.get(op, f"{GROUPS.get(gid, f'group {gid}')} op {op}")


def is_data(gid: int, op: int, version: tuple[int, int, int], control: bytes) -> bool:
    """Whether this message must carry the data bit (fact sheet 4.3)."""
    op &= 0x7F
    if (gid, op) in SETTLED_DATA_OPS:
        return True
    if (gid, op) == (WIFI, 59):
        return version >= (19, 6, 0) and len(control) > 44 and control[44] != 1
    if (gid, op) == (WIFI, 70):
        return version >= (19, 6, 0)
    return False


def flood_events(count: int) -> list[tuple[int, int, bytes]]:
    """Harmless events that nobody asked for: times and signal strengths."""
    time_event = struct.pack("<H6B", 2026, 1, 2, 3, 4, 5, 0)
    both = ((WIFI, 27, time_event), (WIFI, 4, struct.pack("<bBBB", -60, 0, 0, 0)))
    return [both[i % 2] for i in range(count)]
