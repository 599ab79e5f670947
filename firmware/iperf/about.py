"""What this board is: loaded only to answer that."""

import gc
import sys

from iperf.layers import NAMES


def board():
    """The fields of the `board` record (docs/contracts.md, section 2)."""
    implementation = sys.implementation
    gc.collect()
    fields = {
        "micropython": _version(implementation),
        "machine": getattr(implementation, "_machine", sys.platform),
        "platform": sys.platform,
        "mpy": getattr(implementation, "_mpy", None),
        "heap_free": gc.mem_free() if hasattr(gc, "mem_free") else None,
        "heap_alloc": gc.mem_alloc() if hasattr(gc, "mem_alloc") else None,
        "freq_hz": _frequency(),
        "unique_id": _unique_id(),
        "iperf": _package_version(),
        "lwip": None,
    }
    fields["layers"] = layers = []
    for name in NAMES:
        caps = _caps(name)
        if caps is not None:
            layers.append(name)
            fields["lwip"] = fields["lwip"] or caps.get("lwip")
    fields["nics"], fields["rssi"] = _nics()
    gc.collect()
    return fields


def _version(implementation):
    parts = [str(part) for part in tuple(implementation.version)[:3]]
    text = ".".join(parts)
    extra = tuple(implementation.version)[3:]
    if extra and extra[0]:
        text += "-" + str(extra[0])
    return "%s %s" % (implementation.name, text)


def _package_version():
    import iperf

    return getattr(iperf, "__version__", None)


def _caps(name):
    try:
        module = __import__("iperf.layers." + name, None, None, ("caps",))
        return module.caps()
    except Exception:  # a layer whose driver or module the firmware lacks
        return None


def _frequency():
    try:
        import machine

        value = machine.freq()
        return value[0] if isinstance(value, tuple) else value
    except Exception:
        return None


def _unique_id():
    try:
        from binascii import hexlify

        import machine

        return hexlify(machine.unique_id()).decode()
    except Exception:
        return None


def _nics():
    """The network interfaces that are up: (list of {"name", "ip"}, RSSI in dBm or None)."""
    try:
        import network
    except ImportError:
        return [], None
    nics = []
    rssi = None
    station = getattr(network, "STA_IF", 0)
    for name, args in (("WLAN", (station,)), ("LAN", ())):
        try:
            nic = getattr(network, name)(*args)
            if nic.isconnected():
                nics.append({"name": name, "ip": nic.ifconfig()[0]})
                if name == "WLAN":
                    rssi = nic.status("rssi")
        except Exception:  # absent, not configured, or without this status
            pass
    return nics, rssi if isinstance(rssi, int) else None
