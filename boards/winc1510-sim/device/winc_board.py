"""Wiring of the board winc1510-sim: the WINC simulator that WINC_SIM names."""

import os

import winc1500
from winc_sim import SPI, Pin

winc1500.setup(
    SPI(baudrate=int(os.getenv("WINC_SPI_HZ") or 20000000)),
    cs=Pin("cs", Pin.OUT, value=1),
    rst=Pin("rst", Pin.OUT),
    en=Pin("en", Pin.OUT),
    irq=None if os.getenv("WINC_NO_IRQ") else Pin("irq", Pin.IN, Pin.PULL_UP),
)
