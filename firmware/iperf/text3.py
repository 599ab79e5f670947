"""iperf3's text lines of a result (iperf.md B7)."""

from iperf import units

_RULE = "- " * 25


def lines(res):
    """The report of one test as iperf3 prints it: intervals, then the totals of both ends."""
    udp = res.proto == "udp"
    fmt = res.cfg.get("format") or "a"
    bidir = res.mode == "bidir"
    out = []
    if res.role == "client":
        out.append("Connecting to host %s, port %d" % (res.cfg["host"], res.cfg["port"]))
    for a in res.cfg.get("adapted") or ():
        out.append("note: " + a)
    if res.intervals_dropped:
        out.append("note: the first %d interval rows did not fit in memory" % res.intervals_dropped)
    many = len(res.streams) > 1
    head_due = True
    head = "[ ID]%s Interval           Transfer     Bitrate" % ("[Role]" if bidir else "")
    receiving = any(not s["sender"] for s in res.streams)
    extra = ""
    if udp:
        extra = "         Jitter    Lost/Total Datagrams" if receiving else "         Total Datagrams"
    group = []
    for r in res.rows():
        if head_due:
            out.append(head + extra)
            head_due = False
        if many and group and r["start_us"] != group[0]["start_us"]:
            _sums(out, group, udp, fmt, res, bidir)
            group = []
        out.append(_line(_name(res, r, bidir), r["start_us"], r["end_us"], r, udp, fmt, r["omitted"]))
        group.append(r)
    if many and group:
        _sums(out, group, udp, fmt, res, bidir)
    out.append(_RULE)
    out.append(head + ("         Jitter    Lost/Total Datagrams" if udp else ""))
    for s in res.streams:
        p = s["peer"]
        name = _name(res, s, bidir)
        _ends(out, name, s, p, udp, fmt)
    if len(res.streams) > 1:
        for ours, theirs in ((res.sent, res.peer_received), (res.received, res.peer_sent)):
            if ours:
                ours["sender"] = ours is not res.received and theirs is res.peer_received
                _ends(out, "[SUM]", ours, theirs, udp, fmt)
    if res.error:
        out.append("iperf3: error - %s" % res.error["text"])
    elif res.role == "client":
        if res.peer_text:
            out.append("\nServer output:\n" + res.peer_text)
        out.append("\niperf Done.")
    return "\n".join(out)


def _ends(out, name, s, p, udp, fmt):
    """The sender's line and the receiver's, from ours and the peer's figures."""
    send, recv = (s, p) if s["sender"] else (p, s)
    if send is not None:
        out.append(_line(name, 0, send["us"], send, udp, fmt, False, "sender", sender_end=True))
    if recv is not None:
        out.append(_line(name, 0, recv["us"], recv, udp, fmt, False, "receiver"))


def _name(res, r, bidir):
    n = "[%3d]" % r["id"]
    if bidir:
        n += _role(res, r)
    return n


def _role(res, r):
    return "[%s-%s]" % ("TX" if r["sender"] else "RX", "C" if res.role == "client" else "S")


def _sums(out, group, udp, fmt, res, bidir):
    for sender in (True, False):
        rows = [r for r in group if r["sender"] == sender]
        if len(rows) < 2:
            continue
        s = {k: sum(r[k] for r in rows) for k in ("bytes", "packets", "lost", "ooo")}
        s["sender"] = sender
        s["jitter_us"] = sum(r["jitter_us"] for r in rows) // len(rows)
        name = "[SUM]" + (_role(res, s) if bidir else "")
        out.append(_line(name, rows[0]["start_us"], rows[0]["end_us"], s, udp, fmt, rows[0]["omitted"]))
    out.append(_RULE)


def _line(name, start, end, r, udp, fmt, omitted, tail="", sender_end=False):
    us = end - start
    rate = r["bytes"] * 8e6 / us if us > 0 else 0.0
    t = "%s %6.2f-%-6.2f sec  %s  " % (name, start / 1e6, end / 1e6, units.size(r["bytes"]))
    t += units.rate(rate, fmt)
    if udp:
        lost = r["lost"]
        if r.get("sender") and not tail:
            t += "  %d" % r["packets"]
        else:
            total = r["packets"]
            jit = 0 if sender_end else (r["jitter_us"] or 0) / 1000
            if sender_end:
                lost = 0
            t += "  %5.3f ms  %d/%d (%.2g%%)" % (jit, lost, total, lost * 100 / total if total else 0)
    if omitted:
        t += "  (omitted)"
    return t + ("  " + tail if tail else "")
