"""Errors of the driver. Every one is an OSError: args are (errno, one line of text).

errno values are MicroPython's (py/mperrno.h), which are Linux's.
"""

from .compat import const

EIO = const(5)
EAGAIN = const(11)
ENOMEM = const(12)
EBUSY = const(16)
ENODEV = const(19)
EINVAL = const(22)
EMFILE = const(24)
EMSGSIZE = const(90)
EOPNOTSUPP = const(95)
EADDRINUSE = const(98)
ENETDOWN = const(100)
ECONNABORTED = const(103)
ECONNRESET = const(104)
ENOBUFS = const(105)
EISCONN = const(106)
ENOTCONN = const(107)
ETIMEDOUT = const(110)
ECONNREFUSED = const(111)
EHOSTUNREACH = const(113)
EALREADY = const(114)
EINPROGRESS = const(115)
EBADF = const(9)
NO_HOST = const(-2)  # what MicroPython's getaddrinfo raises for a name that nobody knows


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
        super().__init__(EIO, text)
        self.seen = seen
        self.state = state


# Socket status of the chip (sheet 5.8) -> errno. 0 and -13 mean different things to each caller.
def from_chip(status):
    if status == -2:
        return EADDRINUSE
    if status in (-3, -4, -7):
        return EMFILE
    if status == -12:
        return ECONNRESET
    if status == -13:
        return ETIMEDOUT
    if status == -14:
        return ENOBUFS
    if status == -9:
        return EBADF
    return EINVAL
