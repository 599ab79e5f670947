"""The module as a network interface: MicroPython's network.WLAN, and OpenMV's network.WINC.

    nic = network.WINC()            # OpenMV: connect() waits and raises
    nic = network.WLAN()            # MicroPython: connect() returns at once, isconnected() tells
"""

from . import module as _find
from .compat import const, ticks_diff, ticks_ms
from .errors import WincError
from .wifi import (
    CONNECT_FAIL,
    CONNECTING,
    GOT_IP,
    IDLE,
    NO_AP_FOUND,
    NO_IP,
    WRONG_PASSWORD,
    address,
    text,
)
from .wifi import OPEN as _OPEN
from .wifi import WEP as _WEP
from .wifi import WPA_PSK as _WPA_PSK

# errno: MicroPython's numbers, which are Linux's
_EINVAL = const(22)
_EOPNOTSUPP = const(95)

STA_IF = const(0)
AP_IF = const(1)

# cyw43's numbers
STAT_IDLE = IDLE
STAT_CONNECTING = CONNECTING
STAT_GOT_IP = GOT_IP
STAT_CONNECT_FAIL = CONNECT_FAIL
STAT_NO_AP_FOUND = NO_AP_FOUND
STAT_WRONG_PASSWORD = WRONG_PASSWORD

_WAIT_MS = const(60000)
_PARAMETERS = ("mac", "ssid", "essid", "channel", "security", "hostname", "pm")


def _name(ssid):
    """An SSID as text, or as bytes where it is none."""
    try:
        return ssid.decode()
    except UnicodeError:
        return ssid


def _extra():
    from . import wifi_extra

    return wifi_extra


class WINC:
    """OpenMV's class. Every instance speaks for the one module of `winc1500.setup`.

    Addresses are dotted strings, MAC addresses 6 bytes in the order they are written, RSSI in dBm.
    Failures raise OSError with (errno, text).
    """

    OPEN = _OPEN
    WPA_PSK = _WPA_PSK
    WEP = _WEP
    MODE_STA = 0
    MODE_AP = 1
    MODE_P2P = 2
    MODE_BSP = 3
    MODE_FIRMWARE = 4
    IF_STA = 0
    IF_AP = 1
    PM_NONE = 0
    PM_POWERSAVE = 2
    PM_PERFORMANCE = 1

    def __init__(self, mode=MODE_STA):
        if mode not in (0, 1):
            raise WincError(_EOPNOTSUPP, "mode %r is not supported: MODE_STA or MODE_AP" % (mode,))
        self._mode = mode
        self._m = _find()

    @property
    def module(self):
        """The driver.Module behind it: layers and counters."""
        return self._m

    def _wifi(self):
        m = self._m
        if m.stack is None:
            m.need()
        # Let waiting events in: status must not be old news.
        for _ in range(8):
            if not m.stack.service():
                break
        m.wifi.service()
        return m.wifi

    def active(self, flag=None):
        """Whether the module runs; active(True) boots it, active(False) powers it down."""
        if flag is None:
            return self._m.running
        if flag:
            self._m.start()
        else:
            self._m.stop()

    def connect(self, ssid=None, key=None, *, security=None, channel=None, bssid=None, timeout_ms=_WAIT_MS):
        """Join a network and wait for the address (in AP mode: start the access point)."""
        self.start(ssid, key, security, channel, bssid)
        if self._mode == 0:
            self._m.wifi.wait(timeout_ms)

    def start(self, ssid, key=None, security=None, channel=None, bssid=None):
        """`connect` without the wait."""
        if ssid is None:
            raise WincError(_EINVAL, "an SSID is needed")
        self._m.start()
        if self._mode == 1:
            _extra().start_ap(self._m.wifi, ssid, key, security, channel or 1)
        else:
            self._m.wifi.connect(ssid, key, security, channel, bssid)

    def start_ap(self, ssid, key=None, *, security=None, channel=1, hidden=False, ip="192.168.1.1"):
        self._m.start()
        a = address(ip)
        if a is None:
            raise WincError(_EINVAL, "not an IPv4 address: %s" % ip)
        _extra().start_ap(self._m.wifi, ssid, key, security, channel, a, hidden)

    def disconnect(self):
        if self._m.running:
            w = self._m.wifi
            if w.ap:
                _extra().stop_ap(w)
            else:
                w.disconnect()

    def isconnected(self):
        """Associated and with an address; in AP mode: a client is there."""
        if not self._m.running:
            return False
        w = self._wifi()
        return w.client is not None if w.ap else w.state == GOT_IP

    def status(self, param=None):
        """State of the link, one of the STAT_ numbers; status('rssi') in dBm; status('stations')."""
        if param is None:
            if not self._m.running:
                return STAT_IDLE
            s = self._wifi().state
            return CONNECTING if s == NO_IP else s
        if param == "rssi":
            return self.rssi()
        if param == "stations":
            return self.connected_sta()
        raise WincError(_EINVAL, "unknown status parameter %r" % (param,))

    @property
    def reason(self):
        """One line on why the last attempt or the link failed."""
        return self._m.wifi.reason if self._m.running else ""

    def scan(self, channel=None):
        """List of (ssid, bssid, channel, RSSI, security, hidden)."""
        return _extra().scan(self._wifi(), channel)

    def rssi(self):
        return self._wifi().rssi()

    def connected_sta(self):
        w = self._wifi()
        return [w.client] if w.client else []

    def wait_for_sta(self, timeout_ms=_WAIT_MS):
        t0 = ticks_ms()
        while True:
            c = self.connected_sta()
            if c or ticks_diff(ticks_ms(), t0) > timeout_ms:
                return c
            self._m.stack.idle(False)

    def netinfo(self):
        """(RSSI in dBm, security, ssid, bssid text, ip)"""
        ssid, security, ip, mac, rssi, _ = _extra().info(self._wifi())
        return rssi, security, _name(ssid), ":".join(["%02x" % b for b in mac]), ip

    def ping(self, host, count=1, ttl=64):
        """(round trip in ms, answers, losses)"""
        return self._m.need().ping(host, count, ttl)

    def time(self):
        """UTC of the module's SNTP client: (year, month, day, hour, minute, second), or None."""
        return _extra().time(self._wifi())

    def fw_version(self):
        """(firmware major, minor, patch, least driver major, minor, patch, chip id)"""
        self._m.need()
        c = self._m.chip
        return c.fw + c.fw_min + (c.id,)

    def counters(self):
        return self._m.counters()

    # --- addresses ---

    def ifconfig(self, conf=None):
        """(ip, mask, gateway, DNS); a tuple sets a static address for the next connect, 'dhcp' undoes it."""
        if conf is None:
            if not self._m.running:
                return ("0.0.0.0",) * 4
            w = self._wifi()
            return text(w.ip), text(w.mask), text(w.gw), text(w.dns)
        self._m.start()
        w = self._m.wifi
        if conf == "dhcp":
            w.static = None
            return
        out = []
        for s in conf:
            a = address(s)
            if a is None:
                raise WincError(_EINVAL, "not an IPv4 address: %s" % s)
            out.append(a)
        if len(out) != 4:
            raise WincError(_EINVAL, "four addresses are needed: ip, mask, gateway, DNS")
        w.static = tuple(out)

    def ipconfig(self, param=None, **kw):
        """MicroPython's ipconfig: 'addr4', 'gw4', 'dhcp4', 'has_dhcp4', 'dns'; addr4=, gw4=, dhcp4=, dns=."""
        if param is None and not kw:
            raise WincError(_EINVAL, "a parameter is needed")
        ip, mask, gw, dns = self.ifconfig()
        if param is not None:
            w = self._m.wifi
            if param == "addr4":
                return ip, mask
            if param == "gw4":
                return gw
            if param == "dns":
                return dns
            if param == "dhcp4":
                return w is None or w.static is None
            if param == "has_dhcp4":
                return w is not None and w.static is None and w.state == GOT_IP
            raise WincError(_EINVAL, "unknown parameter %r" % (param,))
        old = self._m.wifi.static if self._m.wifi else None
        if old:
            ip, mask, gw, dns = [text(a) for a in old]
        for k in kw:
            v = kw[k]
            if k == "addr4":
                if isinstance(v, str):
                    v, _, bits = v.partition("/")
                    if bits:
                        n = 0xFFFFFFFF << 32 - int(bits) & 0xFFFFFFFF
                        mask = text((n >> 24, n >> 16 & 255, n >> 8 & 255, n & 255))
                    ip = v
                else:
                    ip, mask = v
            elif k == "gw4":
                gw = v
            elif k == "dns":
                dns = v
            elif k == "dhcp4":
                if v:
                    self.ifconfig("dhcp")
                    return
            else:
                raise WincError(_EINVAL, "unknown parameter %r" % (k,))
        self.ifconfig((ip, mask, gw, dns))

    def config(self, *args, **kw):
        """config('mac'), 'ssid', 'channel', 'security', 'hostname', 'pm'; config(hostname=, pm=, power=,
        txpower=, mac=, sntp=, region=)

        With an SSID as the first argument it is OpenMV's other name of `connect`.
        """
        if len(args) == 1 and not kw and args[0] in _PARAMETERS:
            return self._get(args[0])
        if args or "key" in kw:
            return self.connect(*args, **kw)
        self._m.start()
        w = self._m.wifi
        for k in kw:
            v = kw[k]
            if k in ("hostname", "dhcp_hostname"):
                w.hostname(v)
                self._m.name = v
            elif k == "pm":
                _extra().power_save(w, v)
                self._m.pm = v
            elif k == "power":
                _extra().power_profile(w, v)
            elif k == "txpower":
                _extra().tx_power(w, v)
            elif k == "mac":
                _extra().set_mac(w, v)
            elif k == "sntp":
                _extra().sntp(w, v)
            elif k == "region":
                _extra().region(w, v)
            else:
                raise WincError(_EINVAL, "unknown setting %r" % (k,))

    def _get(self, k):
        self._m.start()
        w = self._m.wifi
        if k == "mac":
            return self._m.chip.mac
        if k in ("ssid", "essid"):
            return _name(w.ssid)
        if k == "hostname":
            return self._m.name
        if k == "pm":
            return self._m.pm
        info = _extra().info(self._wifi())
        return info[5] if k == "channel" else info[1]


class WLAN(WINC):
    """MicroPython's class: connect() starts an attempt and returns."""

    SEC_OPEN = _OPEN
    SEC_WPA_WPA2 = _WPA_PSK
    SEC_WEP = _WEP

    def __init__(self, interface=STA_IF):
        super().__init__(1 if interface == AP_IF else 0)

    def connect(self, ssid=None, key=None, *, security=None, channel=None, bssid=None):
        self.start(ssid, key, security, channel, bssid)

    def config(self, *args, **kw):
        if self._mode == 1 and ("ssid" in kw or "essid" in kw):
            ssid = kw.get("ssid") or kw.get("essid")
            return self.start_ap(
                ssid,
                kw.get("key") or kw.get("password"),
                security=kw.get("security"),
                channel=kw.get("channel", 1),
                hidden=kw.get("hidden", False),
            )
        return super().config(*args, **kw)


def install():
    """Make `import network` find this module: on boards whose only network is the WINC1500."""
    import sys

    sys.modules["network"] = sys.modules[__name__]
