"""iperf 2.1's text lines of a result (iperf.md A9)."""

_RULE = "-" * 60
_TCP = "[ ID] Interval       Transfer     Bandwidth"
_UDP = _TCP + "        Jitter   Lost/Total Datagrams"
_BITS = "kmgt"


def lines(res):
    """The report of one test as iperf prints it: settings, connections, intervals, totals, the server's
    report."""
    udp = res.proto == "udp"
    out = _settings(res, udp)
    fmt = res.cfg.get("format") or "a"
    state = [None]  # the header line that stands above

    def row(r, name, total=False):
        counted = udp and not r["sender"]
        head = _UDP if counted and not total else _TCP
        if state[0] != head:
            state[0] = head
            out.append(head)
        out.append(_line(name, r, fmt, counted, total))

    group = []
    for r in res.rows():
        if group and r["start_us"] != group[0]["start_us"]:
            _sum(group, row)
            group = []
        row(r, _name(res, r))
        group.append(r)
    _sum(group, row)
    finals = []
    for s in res.streams:
        r = dict(s)
        r["start_us"], r["end_us"] = 0, s["us"]
        row(r, _name(res, s))
        if udp and s["sender"]:
            out.append("%s Sent %d datagrams" % (_name(res, s, plain=True), s["packets"]))
        elif udp and s["ooo"] + s["dup"]:
            out.append(_late(_name(res, s), s["us"], s["ooo"] + s["dup"]))
        finals.append(r)
    _sum(finals, row)
    sent = [s["packets"] for s in res.streams if s["sender"]]
    if udp and len(sent) > 1:
        out.append("[SUM-%d] Sent %d datagrams" % (len(sent), sum(sent)))
    for s in res.streams:
        if udp and s["sender"]:
            _server_report(res, s, row, out)
    if res.error:
        out.append("iperf: error - %s" % res.error["text"])
    return "\n".join(out)


def _settings(res, udp):
    c = res.cfg
    out = [_RULE]
    proto = "UDP" if udp else "TCP"
    if res.role == "client":
        out.append("Client connecting to %s, %s port %d" % (c["host"], proto, c["port"]))
        if udp and c.get("bandwidth"):
            gap = (c["length"] or 0) * 8e6 / c["bandwidth"]
            out.append("Sending %d byte datagrams, IPG target: %.2f us" % (c["length"], gap))
    else:
        out.append("Server listening on %s port %d" % (proto, c["port"]))
    if c.get("window"):
        out.append("%s: %s" % ("UDP buffer size" if udp else "TCP window size", size(c["window"])))
    out.append(_RULE)
    for i, local, remote in res.conns:
        t = "[%3d] " % i
        if local:
            t += "local %s port %d " % tuple(local[:2])
        out.append(t + "connected with %s port %d" % tuple(remote[:2]) if remote else t + "connected")
    for a in c.get("adapted") or ():
        out.append("note: " + a)
    if res.intervals_dropped:
        out.append("note: the first %d interval rows did not fit in memory" % res.intervals_dropped)
    return out


def _name(res, r, plain=False):
    """[  1], or [ *1] for the direction that comes back on the client's own connection."""
    i = r["id"]
    star = False
    half = len(res.streams) // 2
    if res.mode == "bidir":
        star = r["sender"] if res.role == "server" else not r["sender"]
        if half and res.role == "client":
            i = i if i <= half else i - half
        elif half:
            i = (i + 1) // 2
    elif res.mode == "receive" and res.role == "client":
        star = True
    elif res.mode in ("dual", "tradeoff") and res.role == "server":
        star = r["sender"]
    return "[%3s]" % (("*" if star and not plain else "") + str(i))


def _line(name, r, fmt, counted, total):
    """One interval or total; the line of a sum has no jitter."""
    us = r["end_us"] - r["start_us"]
    bits = r["bytes"] * 8e6 / us if us > 0 else 0.0
    t = "%s %.4f-%.4f sec  %s  %s" % (name, r["start_us"] / 1e6, r["end_us"] / 1e6, size(r["bytes"], fmt),
                                      rate(bits, fmt))  # fmt: skip
    if not counted:
        return t
    if not total:
        j = r["jitter_us"]
        t += "  %6s ms" % ("n/a" if j is None else "%.3f" % (j / 1e3))
    lost, n = max(0, r["lost"] - r.get("dup", 0)), r["packets"]
    return t + "%s %d/%d (%s%%)" % ("  " if total else "", lost, n, _percent(lost, n))


def _percent(lost, total):
    """As %.2g prints it (MicroPython's % has its own ideas of g)."""
    if not total:
        return "-nan"
    p = 100.0 * lost / total
    if p >= 99.5:
        return "1e+02"
    if p >= 9.95 or not p:
        return "%.0f" % p
    if p >= 0.995:
        return _trim("%.1f" % p)
    digits = 2
    q = p
    while q < 0.0995 and digits < 6:
        q *= 10
        digits += 1
    return _trim("%.*f" % (digits, p))


def _trim(t):
    while t.endswith("0"):
        t = t[:-1]
    return t[:-1] if t.endswith(".") else t


def _late(name, us, n):
    return "%s 0.0000-%.4f sec  %d datagrams received out-of-order" % (name, us / 1e6, n)


def _sum(rows, row):
    """The [SUM] line of two or more streams of one direction."""
    for sender in (True, False):
        of = [r for r in rows if bool(r["sender"]) == sender]
        if len(of) < 2:
            continue
        s = {k: sum(r[k] for r in of) for k in ("bytes", "packets", "lost")}
        s["start_us"] = min(r["start_us"] for r in of)
        s["end_us"] = max(r["end_us"] for r in of)
        s["sender"] = sender
        s["dup"] = sum(r.get("dup", 0) for r in of)
        row(s, "[SUM]", True)


def _server_report(res, s, row, out):
    p = s["peer"]
    if p is None:
        waits = not (res.mode == "bidir" or (res.mode == "send" and res.role == "server"))
        if waits:
            out.append("%s Server Report: n/a (none came)" % _name(res, s, plain=True))
        return
    name = _name(res, s)
    out.append("%s Server Report:" % _name(res, s, plain=True))
    r = dict(p)
    r["start_us"], r["end_us"], r["sender"] = 0, p["us"], False
    row(r, name)
    if p.get("ooo"):
        out.append(_late(name, p["us"], p["ooo"]))


def _number(v):
    """Four characters, as iperf 2.1."""
    if v < 0.9995:
        return "%4.3f" % v
    if v < 9.995:
        return "%4.2f" % v
    if v < 99.95:
        return "%4.1f" % v
    return "%4.0f" % v


def _adapt(v, step):
    i = 0
    while v >= step and i < 4:
        v /= step
        i += 1
    return _number(v) + " " + ("", "K", "M", "G", "T")[i]


def size(n, fmt="a"):
    """Bytes in steps of 1024: "1.25 MBytes", or in the step that iperf's -f names."""
    i = _BITS.find(fmt.lower()) + 1
    if not i:
        return _adapt(float(n), 1024) + "Bytes"
    return _number(n / 1024**i) + " " + fmt.upper() + "Bytes"


def rate(bits, fmt="a"):
    """A rate in the unit of iperf's -f: a k m g t bits (steps of 1000), A K M G T bytes (1024)."""
    if fmt == "A":
        return _adapt(bits / 8, 1024) + "Bytes/sec"
    i = _BITS.find(fmt.lower()) + 1
    if not i:
        return _adapt(bits, 1000) + "bits/sec"
    if fmt.islower():
        return _number(bits / 1000**i) + " " + fmt.upper() + "bits/sec"
    return _number(bits / 8 / 1024**i) + " " + fmt + "Bytes/sec"
