"""ATWINC1500/1510 Wi-Fi module over machine.SPI, in pure MicroPython.

    import winc1500
    from machine import SPI, Pin
    winc1500.setup(SPI(1, 20_000_000), cs=Pin("A4", Pin.OUT), rst=Pin("B0", Pin.OUT), irq=Pin("B1", Pin.IN))
    from winc1500 import network, socket
    nic = network.WINC()
    nic.connect("ssid", "key")
    s = socket.socket(); s.connect(("192.0.2.1", 80))

Layers, from below: spi, chip, hif, wifi, sockets; driver puts them together, network and socket give
them MicroPython's names. Facts cite the sections of the project's WINC1500 fact sheet.
"""

__version__ = "0.1.0"

_module = None


def setup(spi, cs=None, rst=None, en=None, irq=None, **options):
    """Say where the module is wired (see driver.Module); it is started by active(True) or connect()."""
    global _module
    from .driver import Module

    if _module is not None and _module.running:
        _module.stop()
    _module = Module(spi, cs, rst, en, irq, **options)
    return _module


def module():
    """The module that `setup` was told of; a file winc_board.py on the board may do it when imported."""
    if _module is None:
        try:
            import winc_board  # noqa: F401
        except ImportError:
            pass
        if _module is None:
            from .errors import WincError

            enodev = 19
            raise WincError(enodev, "no WINC1500 wiring: call winc1500.setup(spi, cs=..., rst=...) first")
    return _module
