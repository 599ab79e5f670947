"""Errors of the driver. Every one is an OSError: args are (errno, one line of text).

errno values are MicroPython's (py/mperrno.h), which are Linux's. Each file has those it uses as private
constants: a public name would cost RAM in every module that imports it.
"""

from .compat import const

_EBADF = const(9)
_EIO = const(5)
_EINVAL = const(22)
_EMFILE = const(24)
_EADDRINUSE = const(98)
_ECONNRESET = const(104)
_ENOBUFS = const(105)
_ETIMEDOUT = const(110)


class WincError(OSError):
    """A failure with an errno and a line of text: the cause and the next step."""

    def __init__(self, errno, text):
        super().__init__(errno, text)
        self.text = text


class BusError(WincError):
    """The SPI link failed after all retries (sheet 2.7).

    `seen` is the last byte that stood where the answer should have begun: 0x00 and 0xFF point to a
    module that does not drive MISO at all; `state` is the chip's own error code, or None.
    """

    def __init__(self, text, seen=None, state=None):
        super().__init__(_EIO, text)
        self.seen = seen
        self.state = state


# Socket status of the chip (sheet 5.8) -> errno. 0 and -13 mean different things to each caller.
def from_chip(status):
    if status == -2:
        return _EADDRINUSE
    if status in (-3, -4, -7):
        return _EMFILE
    if status == -12:
        return _ECONNRESET
    if status == -13:
        return _ETIMEDOUT
    if status == -14:
        return _ENOBUFS
    if status == -9:
        return _EBADF
    return _EINVAL
