"""JSON over the control connection: four bytes of length, then the text."""

import json

from iperf.errors import IperfError
from iperf.v3 import wire


def send(ctl, obj):
    """Length and text in one write: 3.12 gives up on a text that comes later (P3)."""
    text = json.dumps(obj).encode()
    n = len(text)
    ctl.write(bytes((n >> 24, n >> 16 & 255, n >> 8 & 255, n & 255)) + text)


def read(ctl, timeout_ms, what, most):
    """A JSON object of at most `most` bytes. Raises Closed, IperfError protocol or peer."""
    h = ctl.read(4, timeout_ms, what)
    if h[0] == wire.SERVER_ERROR:  # an error frame where a length was due
        from iperf.v3 import why

        raise why.error_frame(ctl.who, bytes(h[1:]) + why.rest(ctl, 1) + why.rest(ctl, 4))
    n = h[0] << 24 | h[1] << 16 | h[2] << 8 | h[3]
    if n > most:
        if bytes(h).isdigit():
            raise IperfError("wrong-peer", "%s speaks iPerf 2, not iPerf 3" % ctl.who)
        raise IperfError("protocol", "%s announces %s of %d bytes: more than the %d that fit here"
                         % (ctl.who, what, n, most))  # fmt: skip
    try:
        obj = json.loads(str(ctl.read(n, timeout_ms, what), "utf-8"))
    except ValueError:
        obj = None
    if not isinstance(obj, dict):
        raise IperfError("protocol", "%s sent %s that are no JSON object" % (ctl.who, what))
    return obj
