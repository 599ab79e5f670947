"""machine.SPI and machine.Pin over the socket of the WINC simulator (docs/winc-sim.md, section 2).

For MicroPython's unix port and CPython. `connect` names the simulator: "unix:<path>" or
"tcp:<host>:<port>"; without it the environment variable WINC_SIM does.
"""

import os
import socket

_TRANSFER = 0x01
_WRITE = 0x02
_READ = 0x03
_PIN = 0x04
_STATE = 0x05
_WAIT = 0x06
_SPI = 0x07
_HELLO = 0x10
_CONTROL = 0x11
_ERROR = 0x7F
_POSTED = 4  # flag: no reply

PINS = {"cs": 0, "en": 1, "rst": 2, "wake": 3, "irq": None}

_link = None


class Link:
    """The connection; allocates nothing per transfer."""

    def __init__(self, address):
        self.address = address
        kind, _, rest = address.partition(":")
        if kind == "unix":
            s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            where = rest
            if hasattr(socket, "sockaddr"):  # MicroPython wants the packed struct sockaddr_un
                where = b"\x01\x00" + rest.encode() + b"\0"
        elif kind == "tcp":
            host, _, port = rest.rpartition(":")
            s = socket.socket()
            where = socket.getaddrinfo(host, int(port))[0][-1]
        else:
            raise ValueError("simulator address %r: unix:<path> or tcp:<host>:<port>" % address)
        try:
            s.connect(where)
            if kind == "tcp":
                s.setsockopt(6, 1, 1)  # TCP_NODELAY
        except OSError as e:
            s.close()
            raise OSError(e.args[0], "no WINC simulator at %s" % address)
        # CPython's socket has no stream methods of its own
        self._file = s if hasattr(s, "readinto") else s.makefile("rwb", buffering=0)
        self._s = s
        self.pins = 1
        self._head = bytearray(4)
        self._out = bytearray(64)
        self._n = 0  # posted frames that wait for the next transfer
        self._views = {}
        self._outv = memoryview(self._out)

    def close(self):
        if self._s is not None:
            self.flush()
            if self._file is not self._s:
                self._file.close()
            self._s.close()
            self._s = self._file = None

    def _part(self, n):
        v = self._views.get(n)
        if v is None:
            v = self._views[n] = self._outv[:n]
        return v

    def _write(self, buf, n):
        k = self._file.write(buf)
        if k != n:
            buf = memoryview(buf)
            while k < n:
                k += self._file.write(buf[k:])

    def _read(self, buf, n):
        k = self._file.readinto(buf)
        if k != n:
            buf = memoryview(buf)
            while k and k < n:
                m = self._file.readinto(buf[k:n])
                k = k + m if m else 0
            if not k:
                raise OSError(5, "the WINC simulator closed the connection")

    def post(self, op, arg):
        """Queue a frame that has no payload and gets no reply; it leaves with the next one."""
        self.queue(op, arg, b"", 0)

    def queue(self, op, arg, payload, size):
        """The same with up to 8 bytes of payload."""
        if self._n > 40:
            self.flush()
        o = self._out
        n = self._n
        o[n] = op
        o[n + 1] = arg
        o[n + 2] = size
        o[n + 3] = 0
        n += 4
        for i in range(size):
            o[n + i] = payload[i]
        self._n = n + size

    def flush(self):
        n = self._n
        self._n = 0
        if n:
            self._write(self._part(n), n)

    def send(self, op, arg, payload, n):
        o = self._out
        i = self._n
        o[i] = op
        o[i + 1] = arg
        o[i + 2] = n & 0xFF
        o[i + 3] = n >> 8
        self._n = 0
        if payload is not None and i + 4 + n <= 64:
            for k in range(n):
                o[i + 4 + k] = payload[k]
            i += n
            payload = None
        self._write(self._part(i + 4), i + 4)
        if payload is not None:
            self._write(payload, n)

    def reply(self, op, into=None, n=0):
        """Read one reply into a buffer of n bytes; with into None, return its payload."""
        h = self._head
        self._read(h, 4)
        self.pins = h[1]
        k = h[2] | h[3] << 8
        if h[0] != op or (into is not None and k != n):
            text = bytearray(k)
            if k:
                self._read(text, k)
            if h[0] == _ERROR:
                raise OSError(5, "WINC simulator: " + bytes(text).decode())
            raise OSError(5, "WINC simulator: reply %d of %d bytes to request %d" % (h[0], k, op))
        if into is None:
            into = bytearray(k)
        if k:
            self._read(into, k)
        return into

    def hello(self, name="upyperf"):
        import json

        b = name.encode()
        self.send(_HELLO, 0, b, len(b))
        return json.loads(bytes(self.reply(_HELLO)).decode())

    def control(self, **request):
        """CONTROL (docs/winc-sim.md, section 4): link.control(cmd="stats"). Raises ValueError."""
        import json

        b = json.dumps(request).encode()
        self.send(_CONTROL, 0, b, len(b))
        answer = json.loads(bytes(self.reply(_CONTROL)).decode())
        if not answer.get("ok"):
            raise ValueError(answer.get("error"))
        return answer


def connect(address=None):
    """The link to the simulator, opened once."""
    global _link
    if _link is None or (address and _link.address != address):
        if address is None:
            address = os.getenv("WINC_SIM")
            if not address:
                raise OSError(19, "no WINC simulator: set WINC_SIM to unix:<path> or tcp:<host>:<port>")
        if _link is not None:
            _link.close()
        _link = Link(address)
    return _link


def disconnect():
    global _link
    if _link is not None:
        link = _link
        _link = None
        link.close()


class SPI:
    """machine.SPI: the first argument may be the simulator's address."""

    MSB = 0
    LSB = 1

    def __init__(self, where=None, baudrate=10000000, **kw):
        self._l = connect(where if isinstance(where, str) else None)
        self._count = bytearray(3)
        self.init(baudrate, **kw)

    def init(self, baudrate=10000000, *, polarity=0, phase=0, bits=8, firstbit=0, **pins):
        payload = baudrate.to_bytes(4, "little") + bytes((polarity, phase, bits, firstbit))
        self._l.send(_SPI, 0, payload, 8)

    def deinit(self):
        self._l.flush()

    def write(self, buf):
        """Posted: nothing comes back, so nothing is waited for. A few bytes leave with the next frame."""
        n = len(buf)
        if n <= 8:
            self._l.queue(_WRITE, _POSTED, buf, n)
        else:
            self._l.send(_WRITE, _POSTED, buf, n)

    def readinto(self, buf, fill=0):
        n = len(buf)
        c = self._count
        c[0] = n & 255
        c[1] = n >> 8
        c[2] = fill
        self._l.send(_READ, 0, c, 3)
        self._l.reply(_READ, buf, n)

    def read(self, n, fill=0):
        buf = bytearray(n)
        self.readinto(buf, fill)
        return bytes(buf)

    def write_readinto(self, out, into):
        n = len(out)
        self._l.send(_TRANSFER, 0, out, n)
        self._l.reply(_TRANSFER, into, n)


class Pin:
    """machine.Pin for "cs", "en", "rst", "wake" (outputs) and "irq" (input)."""

    IN = 0
    OUT = 1
    PULL_UP = 1
    IRQ_FALLING = 2

    def __init__(self, name, mode=None, pull=None, value=None):
        self._l = connect()
        self._pin = PINS[name]
        self._level = 1
        if value is not None:
            self(value)

    def __call__(self, value=None):
        if value is None:
            if self._pin is not None:
                return self._level
            self._l.send(_STATE, 0, None, 0)
            self._l.reply(_STATE, b"", 0)
            return self._l.pins & 1
        self._level = value
        self._l.post(_PIN, self._pin << 1 | (1 if value else 0))
        if self._pin:  # CS goes along with the next transfer, power and reset take effect now
            self._l.flush()

    value = __call__

    def on(self):
        self(1)

    def off(self):
        self(0)
