"""A scripted SPI bus: it checks every MOSI byte and answers with the MISO bytes of the script.

The scripts are written from the byte examples of the WINC1500 fact sheet, without the driver.
"""


class ScriptEnd(Exception):
    pass


class Pin:
    """A pin that remembers its level and its edges."""

    def __init__(self, level=1):
        self.level = level
        self.log = []

    def __call__(self, *args):
        if not args:
            return self.level
        self.level = args[0]
        self.log.append(args[0])


class SPI:
    """Plays `add`ed transactions as one byte stream; fails on the first MOSI byte that differs."""

    def __init__(self):
        self.mosi = bytearray()
        self.miso = bytearray()
        self.at = 0
        self.calls = 0
        self.longest_write = 0

    def add(self, mosi, miso):
        """MOSI and MISO of one stretch, same length, as bytes or hex text."""
        if isinstance(mosi, str):
            mosi = bytes.fromhex(mosi.replace(" ", ""))
        if isinstance(miso, str):
            miso = bytes.fromhex(miso.replace(" ", ""))
        assert len(mosi) == len(miso), (len(mosi), len(miso))
        self.mosi += mosi
        self.miso += miso
        return self

    def _step(self, out, into):
        n = len(out) if out is not None else len(into)
        for i in range(n):
            sent = out[i] if out is not None else 0
            if self.at >= len(self.mosi):
                raise ScriptEnd("byte %02X after the end of the script" % sent)
            want = self.mosi[self.at]
            if sent != want:
                raise AssertionError("byte %d: sent %02X, the script wants %02X" % (self.at, sent, want))
            if into is not None:
                into[i] = self.miso[self.at]
            self.at += 1
        self.calls += 1

    def write(self, buf):
        self.longest_write = max(self.longest_write, len(buf))
        self._step(buf, None)

    def readinto(self, buf, fill=0):
        assert fill == 0  # sheet 1: MOSI is 0 while reading
        self._step(None, buf)

    def write_readinto(self, out, into):
        assert len(out) == len(into)
        self._step(out, into)

    # --- transactions of the protocol (sheet 2), CRC off ---

    def read(self, addr, value, fe=0, fx=0):
        t = b"\xca" + addr.to_bytes(3, "big")
        n = fe + 3 + fx + 4
        answer = b"\xca\0" + bytes(fx) + b"\xf3" + value.to_bytes(4, "little")
        return self.add(t + bytes(n), bytes(4 + fe) + answer)

    def put(self, addr, value, fe=0):
        t = b"\xc9" + addr.to_bytes(3, "big") + value.to_bytes(4, "big")
        return self.add(t + bytes(fe + 2), bytes(8 + fe) + b"\xc9\0")

    def store(self, addr, data):
        n = len(data)
        self.add(b"\xc7" + addr.to_bytes(3, "big") + n.to_bytes(3, "big") + b"\0\0", bytes(7) + b"\xc7\0")
        return self.add(b"\xf3" + data + bytes(3), bytes(n + 1) + b"\x55\xc3\0")

    def load(self, addr, data, fe=0, fx=0):
        n = len(data)
        t = b"\xc8" + addr.to_bytes(3, "big") + n.to_bytes(3, "big")
        return self.add(t + bytes(fe + 3 + fx + n), bytes(7 + fe) + b"\xc8\0" + bytes(fx) + b"\xf3" + data)

    def resync(self, answer=True):
        return self.add("cfffffff" + "00" * 8, "00000000" + ("00cf00" if answer else "000000") + "00" * 5)

    # --- messages (sheet 4) ---

    def send(self, gid, op, length, addr, header_and_control, data=None, offset=0, grants=1):
        """Host to chip; `op` with bit 7 where the message has data."""
        self.put(0x108C, gid | op << 8 | length << 16)
        self.put(0x1078, 2)
        for _ in range(grants - 1):
            self.read(0x1078, 2)
        self.read(0x1078, 0)
        self.read(0x150400, addr)
        self.store(addr, header_and_control)
        if data is not None:
            self.store(addr + 8 + offset, data)
        return self.put(0x106C, addr << 2 | 2)

    def event(self, gid, op, payload, addr=0x38000, reads=(), done=True, pad=0):
        """Chip to host; `reads` are (offset in the payload, length) read after the first 24 bytes."""
        n = len(payload) + 8
        value = n + pad << 2 | 1
        self.read(0x1070, value).put(0x1070, value & ~1)
        self.read(0x1084, addr)
        whole = bytes((gid, op)) + n.to_bytes(2, "little") + bytes(4) + payload + bytes(pad)
        self.load(addr, whole[:24])
        for offset, k in reads:
            self.load(addr + 8 + offset, payload[offset : offset + k])
        if done:
            self.done(n, pad)
        return self

    def done(self, n, pad=0):
        value = n + pad << 2
        return self.read(0x1070, value).put(0x1070, value | 2)

    def quiet(self):
        """A poll that finds nothing."""
        return self.read(0x1070, 0)

    def finished(self):
        assert self.at == len(self.mosi), "%d of %d bytes were sent" % (self.at, len(self.mosi))


def header(gid, op, length):
    return bytes((gid, op)) + length.to_bytes(2, "little") + bytes(4)


def boot_script(spi, fw=(19, 7, 7), chip=0x001003A0, efuse_polls=1, mac=b"\xf8\xf0\x05\x12\x34\x56"):
    """The whole start-up after a hardware reset (sheet 3.2, 3.4, appendix A)."""
    spi.add("C900E82400000052 5C 0000", "000000000000000000 C900")
    spi.read(0x1000, chip).read(0x1000, chip)
    for _ in range(efuse_polls - 1):
        spi.read(0x1014, 0)
    spi.read(0x1014, 0x80000000).read(0x207BC, 0).read(0xC000C, 0x10ADD09E)
    spi.put(0x108C, 0x13301361)
    config = 0x102 if chip & 0xFFF >= 0x3A0 else 0x100
    spi.put(0x14A0, config).read(0x14A0, config)
    spi.put(0xC000C, 0xEF522F61)
    spi.read(0x108C, 0).read(0x108C, 0x02532636).put(0x108C, 0)
    spi.read(0x1408, 0).put(0x1408, 0x100)
    spi.read(0x1A00, 0).put(0x1A00, 0x10000)
    spi.read(0xC0008, 0x1000)
    spi.load(0x31000, b"\x00\x20\x00\x00\x00\x30\x00\x00")
    rev = bytearray(32)
    rev[4:7] = bytes(fw)
    rev[7:10] = b"\x13\x03\x00"
    spi.load(0x33000, rev)
    return spi.load(0x32000, mac)


def module(fw=(19, 7, 7), irq=None, connected=True, **options):
    """(SPI, winc1500.driver.Module) that has booted and, with `connected`, has an address."""
    from winc1500 import wifi
    from winc1500.driver import Module

    spi = SPI()
    boot_script(spi, fw)
    name = b"winc-123456"
    spi.send(1, 7, 56, 0x37000, header(1, 7, 56), name + bytes(48 - len(name)))
    m = Module(spi, Pin(), Pin(), Pin(), irq, **options)
    m.start()
    spi.finished()
    if connected:
        m.wifi.state = wifi.GOT_IP
        m.wifi.associated = True
        m.wifi.ip = b"\x0a\x00\x00\x05"
    m.clear_counters()
    spi.calls = 0
    return spi, m
