"""SPI protocol of the ATWINC15x0: registers and blocks, retried (fact sheet, section 2).

link.py makes the SPI calls, frames.py frames and answers; this is what the other layers use.
"""

from .compat import const, sleep_ms
from .errors import BusError
from .frames import OUT_MAX, SMALL, Frames, crc7

CONFIG = const(0xE824)  # SPI protocol register (sheet 2.4)
CONFIG_FAST = const(0x52)  # 8 KiB packets, both CRCs off

_RESET = const(0xCF)
_TRIES = const(5)  # of one operation, with a CF between (the vendor makes 10; sheet 2.7)


class Bus(Frames):
    """The one owner of SPI and chip select.

    spi  an initialised machine.SPI: mode 0, MSB first (sheet 1)
    cs   a machine.Pin, active low, or None when the SPI drives it

    Counters (all since `clear()`): calls (SPI calls), bytes (clocked), us (time inside the SPI
    calls), ops (protocol operations), resyncs (CF frames after a failure), retries (operations repeated).
    """

    def read(self, addr):
        """Value of the register at `addr` (unsigned, 32 bit). Raises BusError."""
        k = 0
        while True:
            try:
                v = self._read(addr)
                if not self._once_more(k):
                    return v
            except BusError:
                self._again(k)
            k += 1

    def write(self, addr, value):
        """Write a register whose write may be repeated without harm. Raises BusError."""
        k = 0
        while True:
            try:
                self._write(addr, value)
                if not self._once_more(k):
                    return
            except BusError:
                self._again(k)
            k += 1

    def write_once(self, addr, value):
        """Write a register with a side effect: False when it is not known whether it was written.

        The link is synchronised again then; the caller looks at the chip before it repeats (sheet 2.7).
        """
        try:
            self._write(addr, value)
            return not self.late
        except BusError:
            self._again(0)
            return False

    def write_mute(self, addr, value):
        """Write a register to which the chip gives no answer: the global reset (sheet 2.7)."""
        self._write(addr, value, False)

    def write_message(self, addr, n, data=None, size=0, where=0):
        """Write out[1:1+n] to `addr` and, when given, data (size bytes, as it is) to `where`.

        Both n and size are at least 2: the chip cannot do 1 (sheet 2.6). Raises BusError.
        """
        k = 0
        while True:
            try:
                self._write_message(addr, n, data, size, where)
                if not self._once_more(k):
                    return
            except BusError:
                self._again(k)
            k += 1

    def read_small(self, addr, n):
        """Read 2 <= n <= SMALL bytes into `msg`; returns the index of the first. Raises BusError."""
        k = 0
        while True:
            try:
                p = self._read_block(addr, None, n)
                if not self._once_more(k):
                    return p
            except BusError:
                self._again(k)
            k += 1

    def read_into(self, addr, view, n):
        """Read n >= 2 bytes into view[:n], in place. Raises BusError."""
        k = 0
        while True:
            try:
                self._read_block(addr, view, n)
                if not self._once_more(k):
                    return
            except BusError:
                self._again(k)
            k += 1

    def _once_more(self, k):
        """Whether an operation that has succeeded is in doubt: a frame that lost a byte on the way is
        complete, and wrong, one zero later, which looks like filler that is longer than ever before."""
        if not self.late or k >= _TRIES - 1:
            return False
        self.late = False
        return True

    def _again(self, k):
        """After an operation has failed k times before: synchronise, or give up with a readable error."""
        if k >= _TRIES - 1:
            raise BusError(self._why(), self.seen)
        self.retries += 1
        self.resync(k == _TRIES - 2)

    def _why(self):
        if self.seen == 0 or self.seen == 0xFF:
            return (
                "no answer from the module: MISO stays at %02X; check power, CHIP_EN, RESET_N, that SPI_CFG"
                " is high, the CS and MISO wires; then reset it: active(False), active(True)" % self.seen
            )
        return (
            "garbled answers from the module (%02X); check SPI mode 0, a lower clock, short wires"
            % self.seen
        )

    def resync(self, flush=False):
        """Reset the chip's SPI parser with CF frames (sheet 2.7). True when the chip answered.

        With `flush`, first give a chip that still waits for the rest of a packet what it waits for: a
        frame with a damaged length can leave up to 8 KiB to be swallowed. Zeros: they begin no packet.
        """
        x = self._x
        for k in range(12 if flush else 3):
            if k > 2:
                for i in range(16):
                    x[i] = 0
                for _ in range(64):
                    self._write_out(self._view(self._xv, x, 16), 16)
            self.resyncs += 1
            sleep_ms(1)
            if self.cs is not None:
                self.cs(0)
            try:
                self._write_out(self._cf, 4)
                if self.crc:
                    x[0] = 0xAA
                    self._write_out(self._view(self._xv, x, 1), 1)
                self._readinto(self._view(self._xv, x, 8), 8)
            finally:
                self._end()
            sleep_ms(1)
            for i in range(7):
                if x[i] == _RESET and not x[i + 1] & 0x0F:
                    return True
        return False


__all__ = ("CONFIG", "CONFIG_FAST", "OUT_MAX", "SMALL", "Bus", "crc7")
