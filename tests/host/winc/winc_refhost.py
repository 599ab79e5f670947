"""A small, correct host for the simulated chip, written for these tests only.

It does what the fact sheet says, one operation at a time; tests take single steps out of order.
"""

from __future__ import annotations

import struct
import time

from upyperf.virtual.winc import Chip, Config
from upyperf.virtual.winc.crc import crc7


class NoAnswer(Exception):
    """The chip did not answer as expected."""


class Host:
    def __init__(self, chip: Chip) -> None:
        self.chip = chip
        self.crc = True
        self.session = 0
        self.events: list[tuple[int, int, bytes]] = []

    # SPI

    def command(self, body: bytes) -> None:
        self.chip.transfer(body + bytes((crc7(body),)) if self.crc else body)

    def byte(self) -> int:
        return self.chip.transfer(b"\0")[0]

    def echo(self, command: int) -> int:
        for _ in range(12):
            if self.byte() == command:
                return self.byte()
        raise NoAnswer(f"no echo of 0x{command:02X}")

    def header(self) -> None:
        for _ in range(10):
            if self.byte() & 0xF0 == 0xF0:
                return
        raise NoAnswer("no data header")

    def read(self, addr: int) -> int:
        raw = addr <= 0xFF
        body = (
            b"\xc4" + bytes((addr >> 8 | 0x80, addr & 255, 0)) if raw else b"\xca" + addr.to_bytes(3, "big")
        )
        self.command(body)
        if self.echo(body[0]):
            raise NoAnswer("error state")
        self.header()
        data = self.chip.transfer(bytes(4))
        if self.crc and not raw:
            self.chip.transfer(bytes(2))
        return int.from_bytes(data, "little")

    def write(self, addr: int, value: int) -> None:
        if addr <= 0x30:
            body = b"\xc3" + bytes((addr >> 8 | 0x80, addr & 255)) + value.to_bytes(4, "big")
        else:
            body = b"\xc9" + addr.to_bytes(3, "big") + value.to_bytes(4, "big")
        self.command(body)
        state = self.echo(body[0])
        if state:
            raise NoAnswer(f"state {state}")

    def read_block(self, addr: int, size: int) -> bytes:
        self.command(b"\xc8" + addr.to_bytes(3, "big") + size.to_bytes(3, "big"))
        state = self.echo(0xC8)
        if state:
            raise NoAnswer(f"state {state}")
        self.header()
        return self.chip.transfer(bytes(size))

    def write_block(self, addr: int, data: bytes, order: int = 3) -> None:
        self.command(b"\xc7" + addr.to_bytes(3, "big") + len(data).to_bytes(3, "big"))
        state = self.echo(0xC7)
        if state:
            raise NoAnswer(f"state {state}")
        self.chip.transfer(bytes((0xF0 | order,)) + data)
        answer = self.chip.transfer(bytes(3))
        if answer[1:] != b"\xc3\x00":
            raise NoAnswer(f"data response {answer.hex()}")

    def spi_reset(self) -> None:
        self.command(b"\xcf\xff\xff\xff")
        self.chip.transfer(bytes(3))

    # Boot

    def power(self) -> None:
        for pin in ("en", "rst"):
            self.chip.set_pin(pin, 0)
        self.chip.set_pin("en", 1)
        self.chip.set_pin("rst", 1)
        self.chip.set_pin("cs", 0)
        self.crc = True

    def crc_off(self) -> None:
        self.write(0xE824, 0x52)
        self.crc = False

    def wait(self, addr: int, good, tries: int = 100) -> int:
        for _ in range(tries):
            value = self.read(addr)
            if good(value):
                return value
            time.sleep(0.001)
        raise NoAnswer(f"0x{addr:X} stays 0x{value:X}")

    def rom(self) -> None:
        self.power()
        self.crc_off()
        self.wait(0x1014, lambda v: v >> 31)
        self.read(0x207BC)
        self.wait(0xC000C, lambda v: v == 0x10ADD09E)

    def start(self) -> None:
        self.write(0x108C, 0x13301361)
        self.write(0x14A0, 0x102)
        assert self.read(0x14A0) == 0x102
        self.write(0xC000C, 0xEF522F61)
        self.wait(0x108C, lambda v: v == 0x02532636)
        self.write(0x108C, 0)

    def irq_on(self) -> None:
        self.write(0x1408, self.read(0x1408) | 0x100)
        self.write(0x1A00, self.read(0x1A00) | 0x10000)

    def boot(self) -> None:
        self.rom()
        self.start()
        self.irq_on()

    # HIF

    def grant(self, gid: int, op: int, size: int) -> int:
        self.write(0x108C, gid | op << 8 | size << 16)
        self.write(0x1078, 2)
        self.wait(0x1078, lambda v: not v & 2)
        return self.read(0x150400)

    def send(
        self, gid: int, op: int, control: bytes = b"", data: bytes | None = None, offset: int = 0
    ) -> None:
        size = 8 + (len(control) if data is None else offset + len(data))
        addr = self.grant(gid, op, size)
        if not addr:
            raise NoAnswer("no buffer")
        self.write_block(addr, struct.pack("<BBHI", gid, op & 0x7F, size, 0))
        if control:
            self.write_block(addr + 8, control)
        if data:
            self.write_block(addr + 8 + offset, data if len(data) > 1 else data + b"\0")
        self.write(0x106C, addr << 2 | 2)

    def event(self) -> tuple[int, int, bytes] | None:
        value = self.read(0x1070)
        if not value & 1:
            return None
        self.write(0x1070, value & ~1)
        addr, size = self.read(0x1084), value >> 2 & 0xFFF
        raw = self.read_block(addr, size)
        self.write(0x1070, self.read(0x1070) | 2)
        gid, op, length = struct.unpack_from("<BBH", raw)
        return gid, op, raw[8:length]

    def wait_event(self, gid: int, op: int, timeout: float = 2.0) -> bytes:
        """The next event of this kind; the ones before it are kept in self.events."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            got = self.event()
            if got is None:
                time.sleep(0.0005)
                continue
            if got[:2] == (gid, op):
                return got[2]
            self.events.append(got)
        raise NoAnswer(f"no event {gid}/{op:#x} in {timeout} s; got {[e[:2] for e in self.events]}")

    # Wi-Fi

    def old_connect(self, ssid: bytes, key: bytes, security: int = 2) -> None:
        body = key.ljust(65, b"\0") + bytes((security, 0, 0)) + struct.pack("<H", 255)
        self.send(1, 40, body + ssid.ljust(33, b"\0") + b"\1" + bytes(4))

    def new_connect(self, ssid: bytes, key: bytes) -> None:
        block = bytes((len(key),)) + key.ljust(64, b"\0") + bytes(43) if key else b""
        head = struct.pack(
            "<HBBB32sB6sB3x", 44 + len(block), 3, 255, len(ssid), ssid, 0, bytes(6), 2 if key else 1
        )
        if key:
            self.send(1, 59 | 0x80, head, block, 48)
        else:
            self.send(1, 59, head)

    def join(self, ssid: bytes = b"upyperf", key: bytes = b"throughput") -> bytes:
        if self.chip.config.version >= (19, 6, 0):
            self.new_connect(ssid, key)
        else:
            self.old_connect(ssid, key)
        assert self.wait_event(1, 44)[:2] == b"\1\0"
        return self.wait_event(1, 50)

    # Sockets

    def next_session(self) -> int:
        self.session += 1
        return self.session

    @staticmethod
    def addr(ip: str, port: int) -> bytes:
        return struct.pack("<H", 2) + struct.pack(">H", port) + bytes(map(int, ip.split(".")))

    def bind(self, sock: int, port: int, session: int) -> int:
        self.send(2, 0x41, self.addr("0.0.0.0", port) + struct.pack("<bBH", sock, 0, session))
        return struct.unpack("<bbH", self.wait_event(2, 0x41))[1]

    def listen(self, sock: int, session: int) -> int:
        self.send(2, 0x42, struct.pack("<bBH", sock, 1, session))
        return struct.unpack("<bbH", self.wait_event(2, 0x42))[1]

    def connect(self, sock: int, port: int, session: int, ip: str = "127.0.0.1") -> int:
        self.send(2, 0x44, self.addr(ip, port) + struct.pack("<bBH", sock, 0, session))
        return struct.unpack("<bb", self.wait_event(2, 0x44)[:2])[1]

    def post_send(
        self, sock: int, data: bytes, session: int, to: bytes = bytes(8), op: int | None = None
    ) -> None:
        udp = sock >= 7
        op = op or (0x47 if udp else 0x45)
        control = struct.pack("<bBH", sock, 0, len(data)) + to + struct.pack("<HH", session, 0)
        self.send(2, op | 0x80, control, data, 68 if udp else 80)

    def sent(self, op: int = 0x45) -> tuple[int, int, int]:
        sock, _, status, session, _ = struct.unpack("<bBhHH", self.wait_event(2, op))
        return sock, status, session

    def recv_command(self, sock: int, session: int, timeout_ms: int = 1000, size: int = 1460) -> None:
        body = struct.pack("<IbBH", timeout_ms, sock, 0, session)
        if self.chip.config.version >= (19, 6, 4):
            body += struct.pack("<HH", size, 0)
        self.send(2, 0x48 if sock >= 7 else 0x46, body)

    def received(self, op: int = 0x46) -> tuple[int, bytes, int]:
        raw = self.wait_event(2, op)
        status, offset, _, _, session = struct.unpack_from("<hHbBH", raw, 8)
        return status, raw[offset : offset + status] if status > 0 else b"", session

    def close(self, sock: int, session: int) -> None:
        self.send(2, 0x49, struct.pack("<bBH", sock, 0, session))


def ready(**settings) -> Host:
    """A host with a booted, strict chip that has joined its network."""
    host = booted(**settings)
    host.join()
    return host


def booted(**settings) -> Host:
    settings.setdefault("strict", True)
    host = Host(Chip(Config(**settings)))
    host.boot()
    return host


def raw_host(**settings) -> Host:
    """A host with a chip that has no power yet; violations are only recorded."""
    return Host(Chip(Config(**settings)))
