"""Structures on the wire, by firmware version (fact sheet 5 and appendix B). All little-endian."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass

Version = tuple[int, int, int]

TCP_DATA_OFFSET = 80
UDP_DATA_OFFSET = 68
TCP_IDS = range(0, 7)
UDP_IDS = range(7, 11)


def ip_bytes(text: str) -> bytes:
    """Four bytes in network order. Raises ValueError for anything but a dotted quad."""
    try:
        return socket.inet_pton(socket.AF_INET, text)
    except OSError:
        raise ValueError(f"{text!r} is not an IPv4 address") from None


def ip_text(raw: bytes) -> str:
    """The dotted quad of four bytes."""
    return ".".join(str(byte) for byte in raw[:4])


def ip_config_size(version: Version) -> int:
    """Length of the address structure: 16, 20 or 24 bytes."""
    if version <= (19, 4, 4):
        return 16
    return 20 if version < (19, 6, 0) else 24


def ip_config(version: Version, ip: bytes, gateway: bytes, dns: bytes, mask: bytes, lease: int) -> bytes:
    """The address structure of op 50 (and of op 10, to the chip)."""
    size = ip_config_size(version)
    if size == 16:
        return ip + gateway + dns + mask
    if size == 20:
        return ip + gateway + dns + mask + struct.pack("<I", lease)
    return ip + gateway + dns + bytes(4) + mask + struct.pack("<I", lease)


def parse_ip_config(raw: bytes) -> tuple[bytes, bytes, bytes, bytes]:
    """(address, gateway, DNS, netmask) out of a structure of 16, 20 or 24 bytes."""
    mask = raw[16:20] if len(raw) == 24 else raw[12:16]
    return raw[0:4], raw[4:8], raw[8:12], mask


def rev_struct(version: Version, chip_id: int) -> bytes:
    """The firmware revision block in the chip's RAM (fact sheet 3.4)."""
    raw = struct.pack("<I6B", chip_id, *version, 19, 3, 0)
    raw += b"Jan  1 2020\0" + b"12:00:00\0" + b"\0" + struct.pack("<H", 1) + bytes(6)
    return raw[:32] if version <= (19, 4, 4) else raw


def recv_sizes(version: Version) -> tuple[int, ...]:
    """Legal lengths of the recv command."""
    return (8, 12) if version >= (19, 6, 4) else (8,)


def ap_config_size(version: Version) -> int:
    """Length of the payload of "AP on"."""
    if version <= (19, 4, 4):
        return 72
    return 136 if version < (19, 6, 0) else 148


def pack_addr(ip: bytes, port: int) -> bytes:
    """An 8-byte socket address."""
    return struct.pack("<H", 2) + struct.pack(">H", port) + ip[:4]


def parse_addr(raw: bytes) -> tuple[int, str, int]:
    """(family, dotted quad, port) out of an 8-byte socket address."""
    return struct.unpack_from("<H", raw)[0], ip_text(raw[4:8]), struct.unpack_from(">H", raw, 2)[0]


@dataclass(frozen=True)
class SendCommand:
    """Control part of send and sendto."""

    sock: int
    size: int
    family: int
    ip: str
    port: int
    session: int

    @classmethod
    def parse(cls, raw: bytes) -> SendCommand:
        sock, _, size = struct.unpack_from("<bBH", raw)
        family, ip, port = parse_addr(raw[4:12])
        return cls(sock, size, family, ip, port, struct.unpack_from("<H", raw, 12)[0])


@dataclass(frozen=True)
class RecvCommand:
    """recv and recvfrom. timeout_ms None: forever. size None: the command has no buffer size."""

    timeout_ms: int | None
    sock: int
    session: int
    size: int | None

    @classmethod
    def parse(cls, raw: bytes) -> RecvCommand:
        timeout, sock, _, session = struct.unpack_from("<IbBH", raw)
        size = struct.unpack_from("<H", raw, 8)[0] if len(raw) >= 12 else None
        return cls(None if timeout == 0xFFFFFFFF else timeout, sock, session, size)


def send_reply(sock: int, status: int, session: int) -> bytes:
    """Reply to send and sendto, 8 bytes."""
    return struct.pack("<bBhHH", sock, 0, status, session, 0)


def recv_reply(peer: bytes, status: int, offset: int, sock: int, session: int, data: bytes) -> bytes:
    """Reply to recv and recvfrom: 16 bytes, then data at `offset` from the start of the payload."""
    head = peer + struct.pack("<hHbBH", status, offset, sock, 0, session)
    return head + bytes(offset - 16) + data if data else head


def status_reply(sock: int, status: int, session: int) -> bytes:
    """Reply to bind and listen, 4 bytes."""
    return struct.pack("<bbH", sock, status, session)


def scan_result(index: int, rssi: int, auth: int, channel: int, bssid: bytes, ssid: bytes) -> bytes:
    """One network, 44 bytes."""
    return struct.pack("<BbBB6s33sB", index, rssi, auth, channel, bssid, ssid, 0)


def connection_info(ssid: bytes, security: int, ip: bytes, bssid: bytes, rssi: int, channel: int) -> bytes:
    """Connection info, 48 bytes."""
    return struct.pack("<33sB4s6sbBH", ssid, security, ip, bssid, rssi, channel, 0)


@dataclass(frozen=True)
class ConnectRequest:
    """What a connect message of either format asks for."""

    ssid: bytes
    security: int
    key: bytes
    channel: int
    bssid: bytes | None


def parse_old_connect(raw: bytes) -> ConnectRequest:
    """Op 40, 108 bytes."""
    security = raw[65]
    if security == 3:
        key = raw[2 : 2 + max(0, raw[1] - 1)]
    else:
        key = raw[:65].split(b"\0")[0]
    return ConnectRequest(
        raw[70:103].split(b"\0")[0], security, b"" if security == 1 else key,
        struct.unpack_from("<H", raw, 68)[0], None,
    )  # fmt: skip


def parse_new_connect(raw: bytes) -> ConnectRequest:
    """Op 59: 48 bytes, then the block of credentials."""
    security = raw[44]
    block = raw[48:]
    key = b""
    if security == 2:
        key = block[1 : 1 + block[0]]
    elif security == 3:
        key = block[2 : 2 + block[1]]
    bssid = bytes(raw[38:44]) if raw[37] & 1 else None
    return ConnectRequest(bytes(raw[5 : 5 + raw[4]]), security, bytes(key), raw[3], bssid)


NEW_CONNECT_BLOCK = {1: 0, 2: 108, 3: 16}
