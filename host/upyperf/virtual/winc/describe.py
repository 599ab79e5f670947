"""Messages of the host interface in words. Lengths tell the firmware's version (fact sheet 5)."""

from __future__ import annotations

import struct
from collections.abc import Callable

from . import ops, structs

AUTH = {1: "open", 2: "WPA/WPA2 PSK", 3: "WEP", 4: "802.1X"}
STATES = {0: "disconnected", 1: "connected", 2: "roamed"}
JOIN_ERRORS = {1: "AP not found", 2: "join failed", 3: "wrong key", 4: "association failed", 5: "in progress"}
SOCKET_ERRORS = {
    -1: "bad address", -2: "address in use", -3: "too many TCP sockets", -4: "too many UDP sockets",
    -6: "bad argument", -7: "too many listeners", -9: "invalid", -11: "address required", -12: "aborted",
    -13: "timeout", -14: "buffer full",
}  # fmt: skip


def _status(value: int, good: str = "OK") -> str:
    return good if value >= 0 else f"{value} {SOCKET_ERRORS.get(value, 'error')}"


def _addr(raw: bytes) -> str:
    _, ip, port = structs.parse_addr(raw)
    return f"{ip}:{port}"


def _text(raw: bytes) -> str:
    return repr(raw.split(b"\0")[0].decode("utf-8", "backslashreplace"))


def _ip_config(p: bytes) -> str:
    ip, gateway, dns, mask = (structs.ip_text(x) for x in structs.parse_ip_config(p))
    return f"{ip} mask {mask} gateway {gateway} DNS {dns} ({len(p)} bytes)"


def _new_connect(p: bytes) -> str:
    key = "" if p[44] == 1 else f", key of {p[48]} bytes" if len(p) > 48 else ", no key"
    return f"SSID {_text(p[5 : 5 + p[4]])}, {AUTH.get(p[44], p[44])}{key}"


def _old_connect(p: bytes) -> str:
    return f"SSID {_text(p[70:103])}, {AUTH.get(p[65], p[65])}"


def _scan_result(p: bytes) -> str:
    rssi = struct.unpack_from("b", p, 1)[0]
    return f"{p[0]}: {_text(p[10:43])} channel {p[3]} {rssi} dBm {AUTH.get(p[2], p[2])}"


def _state(p: bytes) -> str:
    error = f", {JOIN_ERRORS.get(p[1], p[1])}" if p[1] else ""
    return f"{STATES.get(p[0], p[0])}{error}"


def _send(p: bytes) -> str:
    command = structs.SendCommand.parse(p)
    to = f" to {command.ip}:{command.port}" if command.sock >= 7 else ""
    return f"socket {command.sock} session {command.session}, {command.size} bytes{to}"


def _recv(p: bytes) -> str:
    command = structs.RecvCommand.parse(p)
    limit = "for ever" if command.timeout_ms is None else f"for {command.timeout_ms} ms"
    size = f", buffer of {command.size}" if command.size is not None else ""
    return f"socket {command.sock} session {command.session} {limit}{size}"


def _sent(p: bytes) -> str:
    sock, _, status, session = struct.unpack_from("<bBhH", p)
    return f"socket {sock} session {session}: {_status(status, f'{status} bytes')}"


def _received(p: bytes) -> str:
    status, offset, sock, _, session = struct.unpack_from("<hHbBH", p, 8)
    what = "peer closed" if status == 0 else _status(status, f"{status} bytes at {offset} from {_addr(p)}")
    return f"socket {sock} session {session}: {what}"


def _bound(p: bytes) -> str:
    sock, status = struct.unpack_from("<bb", p)
    return f"socket {sock}: {_status(status)}"


def _session(p: bytes, at: int) -> str:
    sock, _, session = struct.unpack_from("<bBH", p, at)
    return f"socket {sock} session {session}"


def _ping(p: bytes) -> str:
    rtt, good, bad, error = struct.unpack_from("<IHHB", p, 8)
    what = {0: "OK", 1: "unreachable", 2: "timeout"}.get(error, str(error))
    return f"{structs.ip_text(p)}: {what}, {rtt} ms, {good} answered, {bad} lost"


_OUT: dict[tuple[int, int], Callable[[bytes], str]] = {
    (1, 40): _old_connect,
    (1, 59): _new_connect,
    (1, 16): lambda p: "all channels" if p[0] in (0, 255) else f"channel {p[0]}",
    (1, 18): lambda p: f"number {p[0]}",
    (1, 7): _text,
    (1, 45): lambda p: f"mode {p[0]}",
    (2, 10): _ip_config,
    (2, 0x41): lambda p: f"{_session(p, 8)} to {_addr(p)}",
    (2, 0x42): lambda p: f"{_session(p, 0)} backlog {p[1]}",
    (2, 0x44): lambda p: f"{_session(p, 8)} to {_addr(p)}",
    (2, 0x45): _send,
    (2, 0x47): _send,
    (2, 0x46): _recv,
    (2, 0x48): _recv,
    (2, 0x49): lambda p: _session(p, 0),
    (2, 0x4A): _text,
    (2, 0x4F): lambda p: f"socket {p[4]} option {p[5]} = {struct.unpack_from('<I', p)[0]}",
    (2, 0x52): lambda p: structs.ip_text(p),
}
_IN: dict[tuple[int, int], Callable[[bytes], str]] = {
    (1, 4): lambda p: f"{struct.unpack_from('b', p)[0]} dBm",
    (1, 6): lambda p: f"{_text(p[:33])}, {structs.ip_text(p[34:])}, {struct.unpack_from('b', p, 44)[0]} dBm",
    (1, 17): lambda p: f"{p[0]} found" if struct.unpack_from("b", p, 1)[0] == 0 else "failed",
    (1, 19): _scan_result,
    (1, 44): _state,
    (1, 50): _ip_config,
    (2, 0x41): _bound,
    (2, 0x42): _bound,
    (2, 0x43): lambda p: f"socket {p[8]}: new socket {p[9]} from {_addr(p)}",
    (2, 0x44): _bound,
    (2, 0x45): _sent,
    (2, 0x47): _sent,
    (2, 0x46): _received,
    (2, 0x48): _received,
    (2, 0x4A): lambda p: f"{_text(p[:64])} is {structs.ip_text(p[64:])}",
    (2, 0x52): _ping,
}


def describe(gid: int, op: int, payload: bytes, to_chip: bool) -> str:
    """One line about a message: its name and what it says."""
    name = f"{ops.GROUPS.get(gid, f'group {gid}')} {ops.name(gid, op)}"
    detail = (_OUT if to_chip else _IN).get((gid, op & 0x7F))
    if detail is None:
        return f"{name}, {len(payload)} bytes" if payload else name
    try:
        return f"{name}: {detail(payload)}"
    except (struct.error, IndexError):
        return f"{name}: cut short, only {len(payload)} bytes"
