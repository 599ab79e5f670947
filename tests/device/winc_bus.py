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
        return self.add(t + bytes(n), bytes(4 + fe) + b"\xca\0" + bytes(fx) + b"\xf3" + value.to_bytes(4, "little"))

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
        """Chip to host; `reads` are (offset in the payload, length) of what is read after the first 24 bytes."""
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
