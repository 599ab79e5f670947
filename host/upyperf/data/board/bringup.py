# Runs on the board (sent over the REPL): brings one interface up and prints "#N <json>" lines.
def _up(nic, kind, ssid, key, static, timeout_s, down):
    import json
    import time

    def say(**fields):
        print("#N " + json.dumps(fields))

    def state():
        try:
            return nic.status()
        except Exception:
            return None

    def address():
        try:
            return nic.ifconfig()
        except Exception:
            return ("0.0.0.0", "", "", "")

    def name(status):
        try:
            import network

            for n in dir(network):
                if n.startswith("STAT_") and getattr(network, n) == status:
                    return n
        except ImportError:
            pass
        return None

    start = time.ticks_ms()

    def left():
        return timeout_s * 1000 - time.ticks_diff(time.ticks_ms(), start)

    try:
        nic.active(True)
        if static:
            nic.ifconfig(tuple(static))
        if kind == "wlan" and not nic.isconnected():
            nic.connect(ssid, key)
    except Exception as e:
        say(ok=False, why="error", text="%s: %s" % (type(e).__name__, e))
        return
    shown = None
    dhcp_error = None
    while left() > 0:
        status = state()
        if status != shown:
            shown = status
            say(status=status, name=name(status), left_s=left() // 1000)
        linked = kind == "wlan" or status not in down
        if kind == "lan" and linked and not static and address()[0] == "0.0.0.0":
            try:
                nic.ifconfig("dhcp")
            except Exception as e:  # "timeout waiting for DHCP to get IP address"; the link may come late
                dhcp_error = "%s" % e
        ip = address()
        if ip[0] not in ("", "0.0.0.0") and linked and (kind == "lan" or nic.isconnected()):
            say(ok=True, ip=ip[0], mask=ip[1], gateway=ip[2], dns=ip[3], status=status)
            return
        if kind == "wlan" and name(status) in ("STAT_WRONG_PASSWORD",):
            break
        time.sleep_ms(200)
    status = state()
    why = "no-address"
    if kind == "wlan":
        if not nic.isconnected():
            why = "no-link"
    elif status in down:
        why = "no-link"
    say(ok=False, why=why, status=status, name=name(status), text=dhcp_error)
