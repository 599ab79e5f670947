"""Wi-Fi beyond joining a network: scan, information, settings, access point (fact sheet 5.2-5.4).

Functions over a wifi.Wifi, in a file of their own: a board that only joins a network need not load them.
"""

from .compat import const
from .errors import WincError
from .hif import DATA
from .wifi import CONNECTING, GOT_IP, IDLE, NO_IP, OPEN, WEP, WPA_PSK, cstr, s8, text, to_bytes

# errno: MicroPython's numbers, which are Linux's
_EIO = const(5)
_EBUSY = const(16)
_EINVAL = const(22)
_EOPNOTSUPP = const(95)

_WIFI = const(1)


def scan(wifi, channel=None, passive_ms=0, timeout_ms=10000):
    """List of (ssid, bssid, channel, RSSI in dBm, security, hidden). Raises WincError."""
    if wifi.state == CONNECTING:
        raise WincError(_EBUSY, "a scan is not possible while connecting")
    if wifi.ap:
        raise WincError(_EBUSY, "a scan is not possible in access point mode")
    found, state = wifi.ask(16, bytes((channel or 255, 0, passive_ms & 255, passive_ms >> 8)), 17, timeout_ms)
    if state < 0:
        raise WincError(_EIO, "the module's scan failed (%d)" % state)
    out = []
    for i in range(found):
        p = wifi.ask(18, bytes((i, 0, 0, 0)), 19)
        ssid = cstr(p[10:43])
        out.append((ssid, bytes(p[4:10]), p[3], s8(p[1]), p[2], not ssid))
    return out


def info(wifi):
    """(ssid, security, ip, bssid, RSSI in dBm, channel or None) of the connection."""
    p = wifi.ask(5, b"", 6)
    channel = p[45] if wifi.fw >= (19, 6, 0) else None
    return cstr(p[0:33]), p[33], text(p[34:38]), bytes(p[38:44]), s8(p[44]), channel


def set_mac(wifi, mac):
    wifi.hif.message(_WIFI, 2, bytes(mac) + b"\0\0")


def power_save(wifi, mode, broadcast=True):
    """0 none, 1 automatic, 2 H-automatic, 3 deep automatic, 4 manual (3.5)."""
    wifi.hif.message(_WIFI, 45, bytes((mode, 1 if broadcast else 0, 0, 0)))
    wifi.hif.chip.power_save(mode != 0)


def power_profile(wifi, mode):
    """1 auto, 2 and 3 low, 4 high; before any connect (4.5)."""
    wifi.hif.message(_WIFI, 22, bytes((mode, 0, 0, 0)))


def tx_power(wifi, level):
    """1 high, 2 medium, 3 low (5.3)."""
    wifi.hif.message(_WIFI, 23, bytes((level, 0, 0, 0)))


def region(wifi, mask):
    """Channels to scan: bit k = channel k+1 (5.2)."""
    wifi.hif.message(_WIFI, 21, bytes((mask & 255, mask >> 8, 0, 0)))


def sntp(wifi, on):
    wifi.hif.message(_WIFI, 12 if on else 13)


def time(wifi, timeout_ms=2000):
    """(year, month, day, hour, minute, second) UTC from the module, or None when it has no time."""
    p = wifi.ask(26, b"", 27, timeout_ms)
    y = p[0] | p[1] << 8
    return (y, p[2], p[3], p[4], p[5], p[6]) if y >= 2000 else None


def set_time(wifi, seconds):
    """Set the module's clock, in seconds since 1970."""
    b = bytes((seconds & 255, seconds >> 8 & 255, seconds >> 16 & 255, seconds >> 24))
    wifi.hif.message(_WIFI, 11, b)


# --- access point (5.4) ---


def start_ap(wifi, ssid, key=None, security=None, channel=1, ip=b"\xc0\xa8\x01\x01", hidden=False):
    """Serve an access point for one client; the module's DHCP server gives it x.x.x.100."""
    ssid = to_bytes(ssid, "the SSID", 32)
    key = to_bytes(key, "the key", 63) if key else b""
    if security is None:
        security = WPA_PSK if key else OPEN
    wifi.check_key(key, security)
    if not ssid or b"\0" in ssid:
        raise WincError(_EINVAL, "the SSID of an access point is 1 to 32 bytes without a zero byte")
    if not 1 <= channel <= 14:
        raise WincError(_EINVAL, "channel %d: 1 to 14 are allowed" % channel)
    old = wifi.fw < (19, 5, 0)
    new = wifi.fw >= (19, 6, 0)
    if old and security == WPA_PSK:
        raise WincError(_EOPNOTSUPP, "firmware %d.%d.%d has no WPA access point: update it" % wifi.fw)
    p = bytearray(72 if old else 148 if new else 136)
    p[0 : len(ssid)] = ssid
    p[33] = channel - 1 if old else channel
    p[34] = 1
    p[35] = len(key)
    if security == WEP:
        p[36 : 36 + len(key)] = key
    elif key:
        p[69 : 69 + len(key)] = key
    p[63] = security
    p[64] = 1 if hidden else 0
    p[65:69] = ip
    if new:
        p[136:140] = ip
        p[140:144] = ip
        p[144:148] = b"\xff\xff\xff\0"
    if wifi.state in (CONNECTING, NO_IP, GOT_IP):
        wifi.disconnect()
    wifi.hif.message(_WIFI, 70 | (DATA if new else 0), p)
    wifi.ap = True
    wifi.client = None
    wifi.ssid = ssid
    wifi.ip = wifi.gw = wifi.dns = ip
    wifi.mask = b"\xff\xff\xff\0"
    wifi.state = GOT_IP
    wifi.associated = True


def stop_ap(wifi):
    if wifi.ap:
        wifi.hif.message(_WIFI, 71)
        wifi.ap = False
        wifi.fail(IDLE, "access point stopped")
