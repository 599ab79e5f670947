"""iPerf 2 and iPerf 3 for MicroPython (and CPython): client and server, TCP and UDP.

    import iperf
    print(iperf.client("192.168.1.5"))                      # iPerf 3, TCP, 10 s
    print(iperf.client("192.168.1.5", udp=True, bandwidth="10M", reverse=True))
    print(iperf.client("192.168.1.5", version=2, dual=True))
    iperf.server()                                           # serves iperf3 until Ctrl-C

Options are iperf's, with its defaults; `iperf.options` lists them. Both calls return a Result
(a server: the list of its tests' results). Raises iperf.errors.IperfError.
"""

__version__ = "0.1.0"


def client(host, *, version=3, on_event=None, live=False, **kw):
    """Run one test against a server. `on_event(kind, dict)` hears of start, connected, interval (only
    with live=True) and text; nothing is printed here."""
    from iperf import options
    from iperf.layers import get

    cfg = options.client(host, version, kw)
    layer = get(cfg["layer"])
    options.check_layer(cfg, layer)
    m = _role(version, "client")
    return m.run(cfg, layer, on_event or _deaf, live)


def server(*, version=3, on_event=None, live=False, **kw):
    """Serve tests: for ever, one (one_off=True) or `tests` of them. Returns the list of results (the
    last eight)."""
    from iperf import options
    from iperf.layers import get

    cfg = options.server(version, kw)
    layer = get(cfg["layer"])
    options.check_layer(cfg, layer)
    m = _role(version, "server")
    return m.run(cfg, layer, on_event or _deaf, live)


def _deaf(kind, data):
    pass


def _role(version, role):
    name = "iperf.v%d" % version
    return getattr(getattr(__import__(name + "." + role), "v%d" % version), role)


def Client(*args, **kw):
    """The class of iperf3-python, which this is not: says what to call (micropython-lib#776)."""
    from iperf.errors import IperfError

    raise IperfError("usage", "this is upyperf's iperf, not iperf3-python: call iperf.client(host, udp=True, …) "
                     "or iperf.server(…)")  # fmt: skip


Server = TestResult = Client
