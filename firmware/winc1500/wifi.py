"""Wi-Fi: join a network, get an address, know the state of the link (fact sheet 5.1).

Struct layouts follow the firmware version (5.9), the IP configuration its own length (5.1).
"""

from .compat import const, sleep_ms, ticks_diff, ticks_ms
from .errors import WincError
from .hif import DATA

# errno: MicroPython's numbers, which are Linux's
_EIO = const(5)
_EINVAL = const(22)
_EOPNOTSUPP = const(95)
_ENETDOWN = const(100)
_ETIMEDOUT = const(110)
_EHOSTUNREACH = const(113)

_WIFI = const(1)
_IP = const(2)

# Security types (5.1)
OPEN = const(1)
WPA_PSK = const(2)
WEP = const(3)

# States of the link. The numbers are cyw43's STAT_ values.
IDLE = const(0)
CONNECTING = const(1)
NO_IP = const(2)
GOT_IP = const(3)
CONNECT_FAIL = const(-1)
NO_AP_FOUND = const(-2)
WRONG_PASSWORD = const(-3)

_NO_IP4 = b"\0\0\0\0"
_ASSOC_MS = const(30000)  # 4.6
_DHCP_MS = const(30000)
_STALE_MS = const(1500)


def text(ip):
    return "%d.%d.%d.%d" % (ip[0], ip[1], ip[2], ip[3])


def address(s):
    """Four bytes of a dotted IPv4 address, or None when it is none."""
    parts = s.split(".")
    if len(parts) != 4:
        return None
    out = bytearray(4)
    for i in range(4):
        p = parts[i]
        if not p.isdigit() or len(p) > 3 or int(p) > 255:
            return None
        out[i] = int(p)
    return bytes(out)


def s8(b):
    return b - 256 if b > 127 else b


def cstr(b):
    n = b.find(b"\0")
    return bytes(b if n < 0 else b[:n])


def to_bytes(s, what, longest):
    if isinstance(s, str):
        s = s.encode()
    s = bytes(s)
    if len(s) > longest:
        raise WincError(_EINVAL, "%s is %d bytes long, %d are allowed" % (what, len(s), longest))
    return s


class Wifi:
    """Association and addresses of the module. `on_down` is called when the link or its address is lost."""

    def __init__(self, hif, fw):
        self.hif = hif
        self.fw = fw
        hif.handlers[_WIFI] = self._event
        self.on_down = None
        self.state = IDLE
        self.reason = ""  # of the last failure, one line
        self.ip = self.gw = self.dns = self.mask = _NO_IP4
        self.static = None  # (ip, mask, gw, dns) as bytes, or None for DHCP
        self.lease = 0  # s
        self.ssid = b""
        self.ap = False
        self.client = None  # IP of the access point's client
        self.conflict = None
        self.stale = 0  # DISCONNECTED events that belonged to an earlier attempt
        self.associated = False
        self._t = 0
        self._failed = None  # error code of the attempt before this one
        self._failed_t = 0
        self._suspect = None  # failure that may belong to the attempt before
        self._suspect_t = 0
        self.static_due = False
        self._dhcp_off = False  # the chip starts with DHCP on
        self._reply = {}

    # --- events (called inside hif.poll: only takes notes, sends nothing) ---

    def _event(self, op):
        h = self.hif
        if op == 44:
            p = h.payload(4)
            self._changed(p[0], p[1])
        elif op == 50:
            self._got_ip(h.payload(24))
        elif op == 61:
            if self.state == NO_IP:
                self.fail(CONNECT_FAIL, "no answer from a DHCP server: set a static address")
        elif op == 52:
            self.conflict = text(h.payload(4))
        elif op == 17:
            p = h.payload(4)
            self._reply[17] = (p[0], s8(p[1]))
        elif op in (4, 6, 19, 27):
            self._reply[op] = h.payload(48)
        return False

    def _changed(self, state, error):
        if self.ap:  # a client came or went
            if not state:
                self.client = None
            return
        if state:  # connected, or roamed to another access point
            self._suspect = None
            if self.state == IDLE:
                self.stale += 1  # a late answer to an attempt that was given up
                return
            self.associated = True
            if state == 2 and self.state == GOT_IP:
                return
            self._t = ticks_ms()
            if self.state != GOT_IP:
                self.state = NO_IP
            if self.static:
                self.static_due = True
            return
        if self.state == CONNECTING and not self.associated:
            if error == 0 or (error == self._failed and ticks_diff(ticks_ms(), self._failed_t) < 5000):
                # The event names no attempt: this may be the end of the one before (openmv #3271).
                # It counts only if nothing better comes within a while.
                if self._suspect is None:
                    self._suspect = error
                    self._suspect_t = ticks_ms()
                else:
                    self.stale += 1
                return
            self._refused(error)
            return
        was = self.state
        if was in (GOT_IP, NO_IP):
            self.fail(CONNECT_FAIL, "the access point dropped the link; connect again")
        elif was < 0:
            self.stale += 1
        self.associated = False

    def _refused(self, error):
        self._failed = error
        self._failed_t = ticks_ms()
        if error == 3:
            self.fail(WRONG_PASSWORD, "the access point refused the key")
        elif error == 1:
            self.fail(NO_AP_FOUND, "no access point of that name found")
        elif error == 5:
            self.fail(CONNECT_FAIL, "another connection attempt is running; disconnect first")
        else:
            self.fail(CONNECT_FAIL, "joining the access point failed (code %d)" % error)

    def fail(self, state, reason):
        self.state = state
        self.reason = reason
        self.ip = self.gw = self.dns = self.mask = _NO_IP4
        if self.on_down:
            self.on_down(reason)

    def _got_ip(self, p):
        n = len(p)
        if n < 16:
            self.hif.bad += 1
            return
        if self.ap:
            self.client = text(p)
            return
        if not self.associated or self.static:
            self.stale += 1
            return
        old = self.ip
        self.ip = bytes(p[0:4])
        self.gw = bytes(p[4:8])
        self.dns = bytes(p[8:12])
        i = 16 if n >= 24 else 12  # 19.6 put the second DNS before the mask (5.1)
        self.mask = bytes(p[i : i + 4])
        i += 4
        if n >= i + 4:
            self.lease = p[i] | p[i + 1] << 8 | p[i + 2] << 16 | p[i + 3] << 24
        if self.state == GOT_IP and old != self.ip and self.on_down:
            self.on_down("the DHCP server gave another address")  # open sockets are bound to the old one
        self.state = GOT_IP

    # --- what must be sent from outside an event ---

    def service(self):
        """Send what events have made due, and let deadlines pass."""
        if self.static_due:
            self.static_due = False
            ip, mask, gw, dns = self.static
            self.hif.message(_IP, 10, self._ip_struct(ip, mask, gw, dns))
            self.ip, self.mask, self.gw, self.dns = ip, mask, gw, dns
            self.state = GOT_IP  # no event follows (5.1)
        if self._suspect is not None and ticks_diff(ticks_ms(), self._suspect_t) > _STALE_MS:
            e = self._suspect
            self._suspect = None
            if self.state == CONNECTING:
                self._refused(e)
        if self.state == CONNECTING and ticks_diff(ticks_ms(), self._t) > _ASSOC_MS:
            self.fail(CONNECT_FAIL, "the access point did not answer in %d s" % (_ASSOC_MS // 1000))
        elif self.state == NO_IP and ticks_diff(ticks_ms(), self._t) > _DHCP_MS:
            self.fail(CONNECT_FAIL, "no answer from a DHCP server in %d s" % (_DHCP_MS // 1000))

    def _ip_struct(self, ip, mask, gw, dns):
        if self.fw >= (19, 6, 0):
            return ip + gw + dns + _NO_IP4 + mask + _NO_IP4
        if self.fw >= (19, 5, 0):
            return ip + gw + dns + mask + _NO_IP4
        return ip + gw + dns + mask

    def ask(self, op, payload, reply, timeout_ms=5000):
        """Send a request and wait for its reply message; the reply's payload. Raises WincError."""
        self._reply.pop(reply, None)
        self.hif.message(_WIFI, op, payload)
        t0 = ticks_ms()
        while reply not in self._reply:
            if not self.hif.poll():
                sleep_ms(1)
            if ticks_diff(ticks_ms(), t0) > timeout_ms:
                raise WincError(_ETIMEDOUT, "no answer to request %d in %d ms" % (op, timeout_ms))
        return self._reply.pop(reply)

    # --- station ---

    def connect(self, ssid, key=None, security=None, channel=None, bssid=None):
        """Start to join a network; `state` tells how it goes.

        ssid: 1-32 bytes (str or bytes); key: 8-63 characters or 64 hex digits, WEP 5 or 13 characters
        or 10 or 26 hex digits, None for an open network; channel None = any. Raises WincError.
        """
        ssid = to_bytes(ssid, "the SSID", 32)
        if not ssid:
            raise WincError(_EINVAL, "the SSID is empty")
        key = to_bytes(key, "the key", 64) if key else b""
        if security is None:
            security = WPA_PSK if key else OPEN
        self.check_key(key, security)
        new = self.fw >= (19, 6, 0)
        if not new and b"\0" in ssid:
            raise WincError(_EINVAL, "firmware %d.%d.%d takes no SSID with a zero byte" % self.fw)
        if self.state in (CONNECTING, NO_IP, GOT_IP):
            self.disconnect()
        while self.hif.poll():  # what is left of an earlier attempt belongs to it
            pass
        if bool(self.static) != self._dhcp_off:
            self._dhcp_off = bool(self.static)
            self.hif.message(_IP, 12 if self._dhcp_off else 11)
        self._begin(ssid)
        if new:
            self._connect_new(ssid, key, security, channel, bssid)
        else:
            self._connect_old(ssid, key, security)

    def check_key(self, key, security):
        n = len(key)
        if security == OPEN:
            if n:
                raise WincError(_EINVAL, "a key was given for an open network")
        elif security == WPA_PSK:
            if n < 8:
                raise WincError(_EINVAL, "a WPA key has 8 to 63 characters or 64 hex digits, not %d" % n)
            if n == 64:
                for c in key:
                    if c not in b"0123456789abcdefABCDEF":
                        raise WincError(_EINVAL, "a WPA key of 64 characters must be hex digits")
        elif security == WEP:
            if n not in (5, 10, 13, 26):
                raise WincError(_EINVAL, "a WEP key has 5 or 13 characters, or 10 or 26 hex digits")
        else:
            raise WincError(_EOPNOTSUPP, "security type %d is not supported: OPEN, WPA_PSK or WEP" % security)

    def _begin(self, ssid):
        self.ssid = ssid
        self.state = CONNECTING
        self.reason = ""
        self.ap = False
        self.associated = False
        self.static_due = False
        self._suspect = None
        self._t = ticks_ms()

    def _connect_new(self, ssid, key, security, channel, bssid):
        """Operation 59, from firmware 19.6 (5.1). Fields past the strings are zero."""
        sizes = {OPEN: 0, WPA_PSK: 108, WEP: 16}
        n = sizes[security]
        p = bytearray(48 + n)
        p[0] = 44 + n
        p[3] = channel or 0xFF
        p[4] = len(ssid)
        p[5 : 5 + len(ssid)] = ssid
        if bssid:
            p[37] = 1
            p[38:44] = bssid
        p[44] = security
        if security == WPA_PSK:
            p[48] = len(key)
            p[49 : 49 + len(key)] = key
        elif security == WEP:
            key = self._wep(key)
            p[49] = len(key)
            p[50 : 50 + len(key)] = key
        self.hif.message(_WIFI, 59 | (DATA if n else 0), p)

    def _connect_old(self, ssid, key, security):
        """Operation 40, up to firmware 19.5 (5.1)."""
        p = bytearray(108)
        if security == WEP:
            p[1] = len(key) + 1
            p[2 : 2 + len(key)] = key
        else:
            p[0 : len(key)] = key
        p[65] = security
        p[68] = 255  # any channel: older firmwares disagree on how to count (5.1)
        p[70 : 70 + len(ssid)] = ssid
        p[103] = 1  # do not store
        self.hif.message(_WIFI, 40, p)

    def _wep(self, key):
        if len(key) in (5, 13):
            return key
        return bytes([int(key[i : i + 2], 16) for i in range(0, len(key), 2)])

    def wait(self, timeout_ms):
        """Wait until the link has an address. Raises WincError with the reason when it fails."""
        t0 = ticks_ms()
        while True:
            if not self.hif.poll():
                sleep_ms(2)
            self.service()
            if self.state == GOT_IP:
                return
            if self.state < 0:
                e = {NO_AP_FOUND: _EHOSTUNREACH, WRONG_PASSWORD: _EIO}.get(self.state, _ENETDOWN)
                raise WincError(e, self.reason)
            if self.state == IDLE:
                raise WincError(_ENETDOWN, "not connecting")
            if ticks_diff(ticks_ms(), t0) > timeout_ms:
                what = "the access point" if self.state == CONNECTING else "a DHCP server"
                raise WincError(_ETIMEDOUT, "no answer from %s in %d ms" % (what, timeout_ms))

    def disconnect(self, timeout_ms=2000):
        """Leave the network. The end is awaited, so that its event meets no later attempt."""
        was = self.state
        self.state = IDLE
        self._suspect = None
        self.static_due = False
        if was in (GOT_IP, NO_IP) and self.on_down:
            self.on_down("disconnected")
        self.ip = self.gw = self.dns = self.mask = _NO_IP4
        if was not in (CONNECTING, NO_IP, GOT_IP):
            return
        associated = self.associated
        self.associated = True
        self.hif.message(_WIFI, 43)
        t0 = ticks_ms()
        while self.associated and ticks_diff(ticks_ms(), t0) < (timeout_ms if associated else 200):
            if not self.hif.poll():
                sleep_ms(1)
        self.associated = False

    def rssi(self, timeout_ms=2000):
        """Signal strength in dBm."""
        return s8(self.ask(3, b"", 4, timeout_ms)[0])

    def hostname(self, name):
        b = to_bytes(name, "the host name", 47)
        self.hif.message(_WIFI, 7, b + bytes(48 - len(b)))
