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
    cfg, layer = _checked("client", version, kw, host)
    return _role(version, "client").run(cfg, layer, on_event or _deaf, live)


def server(*, version=3, on_event=None, live=False, **kw):
    """Serve tests: for ever, one (one_off=True) or `tests` of them. Returns the list of results (the
    last eight)."""
    cfg, layer = _checked("server", version, kw)
    return _role(version, "server").run(cfg, layer, on_event or _deaf, live)


def _checked(role, version, kw, host=None):
    """(options, layer). The tables and texts of the check, 10 KiB, go before the protocol comes: this
    function's own frame must be gone too, it holds the module."""
    out = _check(role, version, kw, host)
    from iperf.memory import forget

    forget("options", "units", "layers.socket_open")
    return out


def _check(role, version, kw, host):
    from iperf import options
    from iperf.layers import get

    cfg = options.client(host, version, kw) if role == "client" else options.server(version, kw)
    layer = get(cfg["layer"])
    options.check_layer(cfg, layer)
    return cfg, layer


def _deaf(kind, data):
    pass


def _role(version, role):
    name = "iperf.v%d" % version
    return getattr(getattr(__import__(name + "." + role), "v%d" % version), role)


def Client(*args, **kw):
    """The class of iperf3-python, which this is not: says what to call (micropython-lib#776)."""
    from iperf.errors import IperfError

    raise IperfError("usage", "this is upyperf's iperf, not iperf3-python: call iperf.client(host, udp=True) "
                     "or iperf.server()")  # fmt: skip


Server = TestResult = Client
