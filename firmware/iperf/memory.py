"""Heap: buffers for a test, and giving back modules that have done their work."""

import gc
import sys

from iperf.errors import IperfError

TCP_LENGTH = 131072  # iperf's own default
# what streams, engine and the exchange of results still take, in bytes; objects of a 64-bit port are larger
_RESERVE = 15000 if sys.maxsize < 1 << 32 else 26000


def forget(*names):
    """Give modules back to the heap (`"v3.params"` is iperf.v3.params); they load again when asked for.
    Only for modules that hold functions and constants: nobody may keep state in them. A board has
    40 KiB; CPython keeps its modules."""
    if sys.implementation.name != "micropython":
        return
    for name in names:
        sys.modules.pop("iperf." + name, None)
        parent, _, leaf = ("iperf." + name).rpartition(".")
        try:
            delattr(sys.modules[parent], leaf)
        except (AttributeError, KeyError):
            pass
    # at once: what comes next shall fill these holes, not lie behind them
    gc.collect()


def forget_all(*keep):
    """Give back every module of the package but these, and but the layers of drivers, which have state."""
    names = [name[6:] for name in sys.modules if name.startswith("iperf.")]
    # the inner ones first: their packages must still be there
    for name in sorted(names, key=len, reverse=True):
        if name not in keep and (not name.startswith("layers") or "socket" in name):
            forget(name)


def stage(name, *args):
    """`run(*args)` of the module iperf.<name>, which is given back when it returns."""
    out = _run(name, args)
    forget(name)
    return out


def _run(name, args):
    # a frame of its own: while it lives, the module cannot go
    __import__("iperf." + name)
    return sys.modules["iperf." + name].run(*args)


def fitting(n, count=1):
    """The length of `count` buffers, at most n bytes each, that leaves room for the test."""
    gc.collect()
    if not hasattr(gc, "mem_free"):
        return n
    return min(n, max(1024, (gc.mem_free() - _RESERVE) // (2 * count)))


def buffer(cfg, count=1):
    """`count` buffers of cfg["length"] bytes; the default length shrinks to what the heap has (said in
    cfg["adapted"]), a chosen one does not. Raises IperfError memory."""
    chosen = cfg["length"] is not None
    n = cfg["length"] if chosen else TCP_LENGTH
    gc.collect()
    if not chosen and hasattr(gc, "mem_free"):
        most = (gc.mem_free() - _RESERVE) // (2 * count)
        while n > most and n > 1024:
            n //= 2
    while True:
        try:
            bufs = [bytearray(n) for _ in range(count)]
            break
        except MemoryError:
            if chosen or n <= 1024:
                raise IperfError("memory", "no memory for %d buffer(s) of %d bytes: take a smaller length "
                                 "or fewer streams" % (count, n)) from None  # fmt: skip
            n //= 2
    if not chosen:
        cfg["length"] = n
        if n != TCP_LENGTH:
            cfg["adapted"].append("length %d instead of %d: the heap has no more" % (n, TCP_LENGTH))
    return bufs
