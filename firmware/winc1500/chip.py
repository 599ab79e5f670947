"""The chip: reset, boot with bounded waits, identity, sleep and wake (fact sheet, section 3)."""

from .compat import const, sleep_ms, ticks_diff, ticks_ms
from .errors import BusError, WincError
from .spi import CONFIG, CONFIG_FAST

# errno: MicroPython's numbers, which are Linux's
_ENODEV = const(19)
_ETIMEDOUT = const(110)

_CHIP_ID = const(0x1000)
_EFUSE = const(0x1014)
_STATE = const(0x108C)
_CPU_RESET = const(0x1400)
_PINMUX = const(0x1408)
_CONFIG = const(0x14A0)
_IRQ_ENABLE = const(0x1A00)
_PMU = const(0x1E48)
_INFO = const(0xC0008)
_MAILBOX = const(0xC000C)
_NO_WAIT = const(0x207BC)

_ROM_READY = 0x10ADD09E
_START = 0xEF522F61
_STARTED = const(0x02532636)
_PMU_VALUE = 0xB78469CE

# Our release for the firmware: built for 19.6.1, content with 19.3.0 (sheet 3.2).
_VERSION = const(0x13301361)
_OLDEST = (19, 4, 4)  # structures of older firmware are not known (sheet 5.9)

_HELP = "; check power, CHIP_EN, RESET_N and that SPI_CFG is high"


class Chip:
    """Reset, boot and identity of the module behind a `spi.Bus`.

    en, rst  machine.Pin outputs (CHIP_EN active high, RESET_N active low), None where not wired
    After `boot()`: id (chip id), fw and fw_min (tuples), mac (6 bytes), ms (duration of the boot)
    """

    def __init__(self, bus, en=None, rst=None):
        self.bus = bus
        self.en = en
        self.rst = rst
        self.id = 0
        self.fw = (0, 0, 0)
        self.fw_min = (0, 0, 0)
        self.fw_build = b""
        self.mac = b"\0\0\0\0\0\0"
        self.ms = 0
        self.sleepy = False  # power save is on: wake before use
        self._awake = True

    # --- reset and power ---

    def off(self):
        """Hold the module in reset, powered down where EN is wired."""
        if self.rst is not None:
            self.rst(0)
        if self.en is not None:
            self.en(0)
        self.sleepy = False

    def reset(self):
        """Hardware reset with the timing of sheet section 1."""
        self.off()
        sleep_ms(10)
        if self.en is not None:
            self.en(1)
            sleep_ms(12)
        if self.rst is not None:
            self.rst(1)
            sleep_ms(12)
        self.bus.crc = True
        self._awake = True

    def _link(self):
        """Switch CRC off and prove the link (sheet 2.5). Raises WincError."""
        bus = self.bus
        crc = True
        for k in range(4):
            bus.crc = crc
            try:
                bus._write(CONFIG, CONFIG_FAST)
                bus.crc = False
                bus._read(_CHIP_ID)
                return
            except BusError as e:
                seen = e.seen
                state = e.state
            # The chip may never have been reset: then it wants no CRC. CF works in both modes.
            bus.crc = False
            bus.resync()
            crc = k & 1 == 1
        if state is not None:
            raise BusError("the module refuses commands (state %02X); check SPI mode 0 and the clock" % state)
        bus.seen = seen
        raise BusError(bus._why(), seen)

    def _identify(self):
        v = 0
        for _ in range(3):
            v = self.bus.read(_CHIP_ID)
            if v & 0xFF0 in (0x3A0, 0x2B0):
                self.id = v & 0xFFF0FFFF | 0x50000  # as the vendor counts them (sheet 3.1)
                return
            sleep_ms(1)
        raise WincError(
            _ENODEV, "chip id %08X is not a WINC15x0's; check SPI mode 0, a lower clock, short wires" % v
        )

    def _until(self, addr, mask, want, limit_ms, pause_ms, what):
        """Poll a register with a pause between reads (the chip gives bus errors without: sheet 1)."""
        t0 = ticks_ms()
        while True:
            v = self.bus.read(addr)
            if v & mask == want:
                return
            if ticks_diff(ticks_ms(), t0) > limit_ms:
                raise WincError(_ETIMEDOUT, "boot: %s in %d ms (%X reads %08X)" % (what, limit_ms, addr, v))
            sleep_ms(pause_ms)

    # --- boot ---

    def boot(self, config=None):
        """Reset the chip, start its firmware, read who it is. Takes up to about 8 s.

        config: the word for 0x14A0 (sheet 3.2), or None for the usual one of this chip.
        Raises WincError (BusError included) with one line that says what to check.
        """
        t0 = ticks_ms()
        bus = self.bus
        self.reset()
        self._link()
        self._identify()
        if self.rst is None and self.en is None:
            self._soft_reset()
        self._until(_EFUSE, 0x80000000, 0x80000000, 1000, 1, "the chip did not load its efuse" + _HELP)
        if not bus.read(_NO_WAIT) & 1:
            self._until(_MAILBOX, 0xFFFFFFFF, _ROM_READY, 2000, 1, "the boot ROM did not report")
        bus.write(_STATE, _VERSION)
        if config is None:
            config = 0x102 if self.id & 0xFFF >= 0x3A0 else 0x100  # bit 1: PMU of revisions >= 3A0
        v = 0
        for _ in range(5):
            bus.write(_CONFIG, config)
            v = bus.read(_CONFIG)
            if v == config:
                break
        else:
            # The vendor loops here for ever; seen with poor SPI edges (sheet 3.2 step 7).
            raise BusError(
                "register 14A0 reads %X after writing %X: bad SPI signals; lower the clock, shorten the wires"
                % (v, config)
            )
        if not bus.write_once(_MAILBOX, _START) and bus.read(_MAILBOX) == _ROM_READY:
            bus.write_once(_MAILBOX, _START)
        self._until(_STATE, 0xFFFFFFFF, _STARTED, 5000, 2, "the firmware did not start")
        bus.write(_STATE, 0)
        bus.write(_PINMUX, bus.read(_PINMUX) | 0x100)
        bus.write(_IRQ_ENABLE, bus.read(_IRQ_ENABLE) | 0x10000)
        self._read_identity()
        self.ms = ticks_diff(ticks_ms(), t0)

    def _soft_reset(self):
        """With neither pin wired the chip may still run an old session: reset it by register (3.3)."""
        bus = self.bus
        bus.write_mute(_CPU_RESET, 0)
        sleep_ms(50)
        bus.crc = True
        self._link()
        bus.write(_PMU, _PMU_VALUE)

    def _block(self, pointer, n):
        buf = bytearray(n)
        self.bus.read_into(pointer & 0xFFFF | 0x30000, buf, n)
        return buf

    def _read_identity(self):
        """Firmware version and MAC address through registers (sheet 3.4)."""
        p = 0
        for _ in range(20):  # the pointer can come a moment after the start word
            p = self.bus.read(_INFO)
            if p:
                break
            sleep_ms(5)
        if not p:
            raise WincError(
                _ENODEV, "the module's firmware is 19.3.0 or older: update it with the vendor's tool"
            )
        info = self._block(p, 8)
        rev = self._block(info[4] | info[5] << 8, 32)
        self.fw = (rev[4], rev[5], rev[6])
        self.fw_min = (rev[7], rev[8], rev[9])
        self.fw_build = bytes(rev[10:31])
        if self.fw < _OLDEST:
            raise WincError(
                _ENODEV,
                "firmware %d.%d.%d is too old (19.4.4 or newer is needed): update the module" % self.fw,
            )
        self.mac = bytes(self._block(info[0] | info[1] << 8, 6))

    # --- sleep and wake: only once a power-save mode was asked for (sheet 3.5) ---

    def power_save(self, on):
        """Note that the chip may sleep from now on: it does so unless it is told to wake."""
        if on != self.sleepy:
            self.sleepy = on
            self._awake = not on

    def wake(self):
        """Wake the chip if it may sleep. Raises WincError when it does not come up."""
        if not self.sleepy or self._awake:
            return
        bus = self.bus
        for _ in range(3):
            bus.write(0x0B, bus.read(0x0B) | 1)
            bus.write(0x01, bus.read(0x01) | 2)
            for _ in range(5):
                if bus.read(0x0F) & 4:
                    # Clocked accesses can fail right after clockless ones: always CF once (2.7).
                    bus.resync()
                    self._awake = True
                    return
                sleep_ms(2)
        raise WincError(_ETIMEDOUT, "the module does not wake from sleep; set power save off")

    def sleep(self):
        """Let the chip sleep, unless it is busy with us."""
        if not self.sleepy or not self._awake:
            return
        bus = self.bus
        for _ in range(4):
            if not bus.read(0x10) & 1:
                bus.write(0x01, bus.read(0x01) & 0xFFFFFFFD)
                bus.write(0x0B, bus.read(0x0B) & 0xFFFFFFFE)
                self._awake = False
                return
            sleep_ms(1)
