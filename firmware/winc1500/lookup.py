"""Names and echo requests: one query at a time each (fact sheet 5.6, 5.10). Loaded when first used."""

from .compat import const, ticks_diff, ticks_ms
from .errors import WincError
from .wifi import GOT_IP, text

# errno: MicroPython's numbers, which are Linux's
_NO_HOST = const(-2)
_EINVAL = const(22)
_ETIMEDOUT = const(110)
_EALREADY = const(114)

_DNS = const(0x4A)
_PING = const(0x52)


def resolve(stack, name, timeout_ms=15000):
    """Four bytes of the IP address of a name. Raises WincError."""
    stack.need_link()
    b = name.encode()
    if not b or len(b) > 63:
        raise WincError(_EINVAL, "a host name has 1 to 63 characters, not %d" % len(b))
    if stack.dns is not None:
        raise WincError(_EALREADY, "a name is being resolved already")
    stack.dns = b
    stack.dns_ip = None
    try:
        stack.command(_DNS, b + b"\0")
        t0 = ticks_ms()
        while stack.dns_ip is None:
            if ticks_diff(ticks_ms(), t0) > timeout_ms:
                raise WincError(_ETIMEDOUT, "no DNS answer for %s in %d ms" % (name, timeout_ms))
            stack.idle(stack.service())
    finally:
        stack.dns = None
    if stack.dns_ip == b"\0\0\0\0":
        if stack.wifi.state != GOT_IP:
            stack.need_link()
        raise WincError(_NO_HOST, "no address is known for the name %s" % name)
    return stack.dns_ip


def ping(stack, host, count=1, ttl=64, timeout_ms=5000):
    """(round trip in ms, answers, losses) of `count` echo requests sent by the module."""
    ip = stack.resolve(host)
    stack.need_link()
    stack.pong = None
    mark = stack.session()
    stack.command(
        _PING, ip + bytes((mark & 0xFF, mark >> 8, 0, 0, count & 0xFF, count >> 8, ttl, 0))
    )
    t0 = ticks_ms()
    while True:
        p = stack.pong
        if p is not None:
            if p[4] | p[5] << 8 == mark:
                break
            stack.pong = None  # of an earlier ping that was given up
        if ticks_diff(ticks_ms(), t0) > timeout_ms * count:
            raise WincError(_ETIMEDOUT, "no answer to the ping of %s" % text(ip))
        stack.idle(stack.service())
    return p[8] | p[9] << 8 | p[10] << 16 | p[11] << 24, p[12] | p[13] << 8, p[14] | p[15] << 8
