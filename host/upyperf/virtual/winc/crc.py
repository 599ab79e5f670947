"""CRC7 of SPI commands and CRC16 of SPI data packets (fact sheet 2.2)."""

from __future__ import annotations


def _table7() -> bytes:
    rows = bytearray()
    for value in range(256):
        crc = value
        for _ in range(8):
            crc = (crc << 1) ^ (0x12 if crc & 0x80 else 0)
        rows.append(crc & 0xFF)
    return bytes(rows)


def _table16() -> list[int]:
    rows = []
    for value in range(256):
        crc = value << 8
        for _ in range(8):
            crc = ((crc << 1) ^ 0x1021 if crc & 0x8000 else crc << 1) & 0xFFFF
        rows.append(crc)
    return rows


_T7 = _table7()
_T16 = _table16()


def crc7(data: bytes | bytearray) -> int:
    """The CRC byte that follows a command: x^7 + x^3 + 1, initial 0x7F, shifted left by one."""
    crc = 0x7F << 1
    for byte in data:
        crc = _T7[crc ^ byte]
    return crc


def crc16(data: bytes | bytearray | memoryview) -> int:
    """CRC-CCITT of a data packet: polynomial 0x1021, initial 0xFFFF."""
    crc = 0xFFFF
    for byte in data:
        crc = ((crc << 8) & 0xFFFF) ^ _T16[(crc >> 8) ^ byte]
    return crc
