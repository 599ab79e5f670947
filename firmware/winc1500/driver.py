"""One WINC15x0: its layers put together, its power, its counters."""

import gc

from .chip import Chip
from .compat import const
from .errors import WincError
from .hif import Hif
from .sockets import Stack
from .spi import Bus
from .wifi import Wifi

# errno: MicroPython's numbers, which are Linux's
_ENETDOWN = const(100)


class Module:
    """The module behind an SPI bus and up to four pins.

    spi   machine.SPI, mode 0, MSB first; 48 MHz at most
    cs, rst, en, irq  machine.Pin; only cs is a must. irq with a pull-up
    overread, shortcuts  see spi.Bus and hif.Hif
    config  word for register 0x14A0, None = the usual one (sheet 3.2)

    wifi and stack are None until `start()`.
    """

    def __init__(
        self, spi, cs=None, rst=None, en=None, irq=None, *, overread=True, shortcuts=False, config=None
    ):
        if cs is not None:
            cs(1)
        self.bus = Bus(spi, cs, overread)
        self.chip = Chip(self.bus, en, rst)
        self.config = config
        self.name = ""
        self.pm = 0
        self._irq = irq
        self._shortcuts = shortcuts
        self.hif = None
        self.wifi = None
        self.stack = None

    @property
    def running(self):
        return self.stack is not None

    def start(self):
        """Reset and boot, about 0.1 to 1 s. Raises WincError with what to check."""
        if self.stack is not None:
            return
        try:
            self.chip.boot(self.config)
        except OSError:
            self.chip.off()
            raise
        self.hif = Hif(self.chip, self._irq, self._shortcuts)
        self.wifi = Wifi(self.hif, self.chip.fw)
        self.stack = Stack(self.hif, self.wifi)
        # Without a name some firmwares send an empty one to the DHCP server (10 #15).
        mac = self.chip.mac
        self.name = self.name or "winc-%02x%02x%02x" % (mac[3], mac[4], mac[5])
        self.wifi.hostname(self.name)
        self.pm = 0
        gc.collect()  # booting leaves holes; what comes after lives long

    def stop(self):
        """Fail every socket and power the module down."""
        if self.stack is not None:
            self.stack.fail_all("the module was switched off")
            self.hif.off = True
            self.wifi.state = 0
        self.hif = self.wifi = self.stack = None
        self.chip.off()

    def need(self):
        """The socket stack. Raises WincError when the module does not run."""
        if self.stack is None:
            raise WincError(_ENETDOWN, "the module is off; call active(True) and connect() first")
        return self.stack

    def counters(self):
        """Counters of all layers: counts, bytes and us since the start or `clear_counters()`."""
        b = self.bus
        d = {
            "spi_calls": b.calls,
            "spi_bytes": b.bytes,
            "spi_us": b.us,
            "spi_ops": b.ops,
            "spi_resyncs": b.resyncs,
            "spi_retries": b.retries,
        }
        h = self.hif
        if h is not None:
            s = self.stack
            d.update(
                {
                    "hif_tx": h.tx,
                    "hif_rx": h.rx,
                    "hif_waits": h.grant_waits,
                    "hif_idle": h.idle,
                    "hif_bad": h.bad,
                    "irq_lost": h.irq_lost,
                    "buffer_full": h.buffer_full,
                    "sent": s.sent,
                    "received": s.received,
                    "send_full": s.full,
                    "copied": s.copied,
                    "stale": s.stale + self.wifi.stale,
                }
            )
        return d

    def clear_counters(self):
        self.bus.clear()
        if self.hif is not None:
            self.hif.clear()
            self.stack.clear()
