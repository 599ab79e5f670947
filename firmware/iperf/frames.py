"""Frames: records to the host, one ASCII line each (docs/contracts.md, section 2)."""

import json
import sys

try:
    from binascii import crc32
except ImportError:  # ports built without MICROPY_PY_BINASCII_CRC32

    def crc32(data, crc=0):
        """CRC-32 (IEEE 802.3), bit by bit: no table, since the heap is small."""
        crc ^= 0xFFFFFFFF
        for byte in data:
            crc ^= byte
            for _ in range(8):
                crc = (crc >> 1) ^ (0xEDB88320 if crc & 1 else 0)
        return crc ^ 0xFFFFFFFF


def encode(seq, record):
    """The frame of a record (a dict with at least "k"), as (head, body) of the line."""
    body = json.dumps(record)
    data = body.encode()
    if len(data) != len(body) or b"\x7f" in data:
        from iperf.escape import escape

        body = escape(body)
        data = body.encode()
    return "#U %d %d %08x " % (seq, len(data), crc32(data) & 0xFFFFFFFF), body


class Writer:
    """Counts frames of one job and writes them to `out` (standard output)."""

    def __init__(self, out=None):
        self.seq = 0
        self._out = out or sys.stdout

    def send(self, record):
        """Write one record. Raises OSError when the output fails."""
        head, body = encode(self.seq, record)
        self.seq += 1
        # In parts, since joining them would need a second copy of a long record.
        self._out.write(head)
        self._out.write(body)
        self._out.write("\n")
