"""Host interface: messages between host and firmware (fact sheet, section 4).

Sending is in two steps, `request` (a buffer in the chip) and `put` (fill it, commit), so that a payload
goes from the caller's buffer to the SPI. Receiving is `poll`: at most one message, handed to the
handler of its group; a handler that returns True keeps the message in the chip ("held") until it
was read: nothing else arrives meanwhile (4.4), so whoever needs the chip spills it first.
"""

from .compat import const, sleep_ms, ticks_diff, ticks_ms
from .errors import BusError, WincError
from .spi import OUT_MAX, SMALL

# errno: MicroPython's numbers, which are Linux's
_ENETDOWN = const(100)
_ENOBUFS = const(105)
_ETIMEDOUT = const(110)

_TX_COMMIT = const(0x106C)
_RX = const(0x1070)
_TX_REQUEST = const(0x1078)
_RX_ADDR = const(0x1084)
_TX_DESC = const(0x108C)
_TX_ADDR = const(0x150400)

_HEADER = const(8)
MAX = const(1596)  # bytes of one message, header included (4.1)
DATA = const(0x80)  # opcode flag "data packet": in 0x108C only (4.3)
_GRANT_MS = const(1000)  # the chip answers a request within this time, or is dead (4.6)
_REREADS = const(4)  # of a block that may have lost a byte
_NUDGE_MS = const(300)
_RECHECK_MS = const(20)  # the IRQ level is not believed for longer than this (12.2)


class Hif:
    """Messages over a `chip.Chip`.

    irq        machine.Pin of IRQN (active low), or None: then register 0x1070 is polled
    shortcuts  True: "RX done" is written without reading the register again. [?] in 4.4: off by default

    Counters: tx, rx (messages), grant_waits (extra reads of 0x1078), buffer_full (no buffer given),
    idle (polls that found nothing), irq_lost (message found though IRQN was high), bad (malformed messages).
    """

    def __init__(self, chip, irq=None, shortcuts=False):
        self.chip = chip
        self.bus = chip.bus
        self.irq = irq
        self.shortcuts = shortcuts
        self.handlers = [None] * 3
        self.held = False
        self.spill = None  # called to read a held message out of the chip; must call done()
        self.may_hold = False
        self.off = False
        self.base = 0  # index of the payload in bus.msg
        self.size = 0  # bytes of the payload of the message at hand
        self._addr = 0
        self._small = 0  # bytes of the message read with its header
        self._seen = False  # register 0x1070 was read again since the message
        self._ra = self._rn = 0  # the last block read into a caller's buffer
        self._rv = None
        self._tx = 0
        self._v = 0
        self._t = ticks_ms()  # of the last look at the register
        self._t_rx = self._t  # of the last message
        self._calm = self.bus.retries  # retries that are accounted for
        self.clear()

    def clear(self):
        self.tx = 0
        self.rx = 0
        self.grant_waits = 0
        self.buffer_full = 0
        self.idle = 0
        self.irq_lost = 0
        self.bad = 0

    # --- host to chip ---

    def request(self, gid, op, n):
        """Ask for a buffer for a message of n bytes, header included; op with DATA where it has data.

        True when granted: `put` must follow. False when the chip has none (4.3 step 4). Messages are
        served while it waits; raises WincError when the chip never answers.
        """
        if self.off:
            raise WincError(_ENETDOWN, "the module is switched off; call active(True)")
        if self.held:
            self.spill()
        if self.chip.sleepy:
            self.chip.wake()
        bus = self.bus
        bus.write(_TX_DESC, gid | op << 8 | n << 16)
        if not bus.write_once(_TX_REQUEST, 2) and not bus.read(_TX_REQUEST) & 2:
            # Written and served, or never written? A new address tells (2.7: not idempotent).
            a = bus.read(_TX_ADDR)
            if a == 0 or a == self._tx:
                bus.write_once(_TX_REQUEST, 2)
        k = 0
        t0 = 0
        while bus.read(_TX_REQUEST) & 2:
            self.grant_waits += 1
            k += 1
            if k == 1:
                t0 = ticks_ms()
            elif k > 4:
                self.poll()  # a flood of messages must not starve the grant (10 #1), nor the reverse
                if ticks_diff(ticks_ms(), t0) > _GRANT_MS:
                    raise WincError(_ETIMEDOUT, "the module gives no transmit buffer; reset it")
                if k > 50:
                    sleep_ms(1)
        a = bus.read(_TX_ADDR)
        if a and not self._plausible(a):
            a = bus.read(_TX_ADDR)
            if a and not self._plausible(a):
                raise BusError("SPI: transmit buffer at %08X: damaged answer" % a)
        if not a:
            self.buffer_full += 1
            if self.chip.sleepy:
                self.chip.sleep()
            return False
        self._tx = a
        return True

    def _plausible(self, a):
        """Message buffers lie in the data RAM or the shared RAM window (3.1)."""
        return 0x30000 <= a <= 0x3FFFF or 0xD0000 <= a <= 0xEFFFF

    def put(self, gid, op, control, data=None, size=0, offset=0):
        """Fill the granted buffer and commit it.

        The control block (`control` bytes, at most 16) is in bus.out[9:]; `data` (exactly `size` bytes)
        goes to `offset` after the header.
        """
        bus = self.bus
        n = _HEADER + (control if data is None and not offset else offset + size)
        o = bus.out
        o[1] = gid
        o[2] = op & 0x7F
        o[3] = n & 0xFF
        o[4] = n >> 8
        o[5] = o[6] = o[7] = o[8] = 0
        a = self._tx
        if size == 1:
            # The chip cannot take a block of 1: send a byte of the gap with it (2.6).
            pair = bus._pair
            pair[1] = data[0]
            bus.write_message(a, _HEADER + control, pair, 2, a + _HEADER + offset - 1)
        elif data is None:
            bus.write_message(a, _HEADER + control)
        else:
            bus.write_message(a, _HEADER + control, data, size, a + _HEADER + offset)
        v = a << 2 | 2
        if not bus.write_once(_TX_COMMIT, v) and bus.read(_TX_COMMIT) != v:
            bus.write_once(_TX_COMMIT, v)
        self.tx += 1
        if self.chip.sleepy:
            self.chip.sleep()

    def message(self, gid, op, payload=b"", timeout_ms=1000):
        """Send a small message; waits for a buffer. Raises WincError(_ENOBUFS) at the timeout."""
        n = len(payload)
        t0 = ticks_ms()
        while not self.request(gid, op, _HEADER + n):
            if not self.poll():
                sleep_ms(1)
            if ticks_diff(ticks_ms(), t0) > timeout_ms:
                raise WincError(_ENOBUFS, "the module's transmit buffers stayed full for %d ms" % timeout_ms)
        if n > OUT_MAX - _HEADER:
            self.put(gid, op, 0, payload, n)
            return
        o = self.bus.out
        for i in range(n):
            o[9 + i] = payload[i]
        self.put(gid, op, n)

    # --- chip to host ---

    def poll(self):
        """Handle at most one message. True when there was one."""
        if self.off:
            return False
        if self.held:
            if self.may_hold:
                return False
            self.spill()
            return True
        irq = self.irq
        if irq is not None and irq():
            # High: nothing there. But an edge or level can be lost, so look from time to time.
            if ticks_diff(ticks_ms(), self._t) < _RECHECK_MS:
                self.idle += 1
                return False
        chip = self.chip
        if chip.sleepy:
            chip.wake()
        self._t = ticks_ms()
        bus = self.bus
        v = bus.read(_RX)
        if not v & 1:
            self.idle += 1
            if v and bus.retries != self._calm:
                self._nudge(v)
            if chip.sleepy:
                chip.sleep()
            return False
        if irq is not None and irq():
            self.irq_lost += 1
        self._v = v & -2
        self._t_rx = self._t
        self._seen = False
        self._rv = None
        if not bus.write_once(_RX, v & -2) and bus.read(_RX) & 1:
            bus.write(_RX, v & -2)
        self.rx += 1
        keep = False
        try:
            keep = self._take(v >> 2 & 0xFFF)
        finally:
            if keep:
                self.held = True
            else:
                self.done()
        return True

    def _nudge(self, v):
        """After trouble on the wire: is the chip still waiting for a "done" that was lost? Nothing would ever
        arrive again. Only then: on a sound wire the register may well keep an old length."""
        if v & 3 or v >> 2 & 0xFFF != self._v >> 2 & 0xFFF:
            return
        if ticks_diff(ticks_ms(), self._t_rx) > _NUDGE_MS:
            self._calm = self.bus.retries
            self.bus.write_once(_RX, v | 2)

    def _take(self, n):
        if n < _HEADER or n > 2048:
            self.bad += 1
            return False
        bus = self.bus
        self._addr = a = bus.read(_RX_ADDR)
        self._small = n if n < SMALL else SMALL
        p = bus.read_small(a, self._small)
        if n <= SMALL:
            for _ in range(_REREADS):
                if not self._lost():
                    break
                p = bus.read_small(a, self._small)
        keep = self._give(p, n)
        # Not read any further, because its header says so: is the header to be believed?
        if n > SMALL and not keep and self._rv is None and self._lost():
            keep = self._give(bus.read_small(a, self._small), n)
        return keep

    def _lost(self):
        """A clock lost in a read shows only in the operation after it, which then fails. So the one of
        done() is made before a message is believed. True when what was read last is in doubt."""
        if self.shortcuts:
            return False
        r = self.bus.retries
        self._v = self.bus.read(_RX)
        self._seen = True
        return self.bus.retries != r

    def _give(self, p, n):
        """Hand the message that starts at bus.msg[p] to its handler; True when it is held."""
        m = self.bus.msg
        size = m[p + 2] | m[p + 3] << 8
        gid = m[p]
        # The register's length may be padded by up to 4 (4.4 step 6); anything else is damage.
        if size < _HEADER or size > n or n - size > 4 or gid > 2 or self.handlers[gid] is None:
            self.bad += 1
            return False
        self.base = p + _HEADER
        self.size = size - _HEADER
        return self.handlers[gid](m[p + 1])

    def read_into(self, offset, view, n):
        """Read n bytes of the payload of the message at hand, from `offset`, into view[:n]."""
        if offset < 0 or offset + n > self.size:
            raise BusError("HIF: message of %d bytes read at %d+%d" % (self.size, offset, n))
        if n == 1:  # not possible as such (2.6): take the byte before it along
            pair = self.bus._pair
            self._block(self._addr + _HEADER + offset - 1, pair, 2)
            view[0] = pair[1]
            return
        self._block(self._addr + _HEADER + offset, view, n)

    def _block(self, a, view, n):
        bus = self.bus
        r = bus.retries
        bus.read_into(a, view, n)
        if bus.retries != r:
            self._doubt()
        self._ra = a
        self._rv = view
        self._rn = n

    def _doubt(self):
        """An operation failed right after a block was read: read that block again, it may lack a byte."""
        bus = self.bus
        if self._rv is not None:
            bus.read_into(self._ra, self._rv, self._rn)
            return
        i = self.base - _HEADER
        old = bytes(bus.msg[i : i + self._small])
        p = bus.read_small(self._addr, self._small)
        if bytes(bus.msg[p : p + self._small]) != old:
            raise BusError("SPI: a message was damaged on the way", bus.seen)
        self.base = p + _HEADER

    def payload(self, n):
        """The first n bytes of the payload, as a new buffer (for messages off the hot path)."""
        if n > self.size:
            n = self.size
        if n <= SMALL - _HEADER:
            return bytes(self.bus.msg[self.base : self.base + n])
        buf = bytearray(n)
        self.read_into(0, buf, n)
        return buf

    def done(self):
        """Give the message back to the chip (4.4 step 8)."""
        bus = self.bus
        self.held = False
        v = self._v
        if not self.shortcuts and not self._seen:
            for _ in range(_REREADS):
                r = bus.retries
                v = bus.read(_RX)
                if bus.retries == r or self._rv is None:
                    break
                self._doubt()
        if v & 1:  # the write that cleared it was lost
            bus.write(_RX, v & -2)
        v = v & -2 | 2
        if not bus.write_once(_RX, v):
            # Repeat only if it is plain that the chip has not seen it: a second "done" could
            # acknowledge the next message unread.
            r = bus.read(_RX)
            if not r & 3 and r >> 2 == v >> 2:
                if self._rv is not None and (self.shortcuts or self._seen):
                    self._doubt()
                bus.write_once(_RX, v)
        self._rv = None
        if self.chip.sleepy:
            self.chip.sleep()
