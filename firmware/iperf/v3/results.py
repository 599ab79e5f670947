"""The results exchange (iperf.md B5)."""

import gc

from iperf.errors import IperfError
from iperf.summary import total
from iperf.v3 import message


def run(client):
    """A client's side of the exchange. Raises IperfError for what the peer cannot have measured."""
    client.close_streams()
    gc.collect()
    message.send(client.ctl, outgoing(client.res))
    odd = incoming(client.res, message.read(client.ctl, 15000, "its results", _most()))
    if odd:
        raise IperfError("protocol", odd)
    client.res.counters = client.layer.counters()


def _most():
    """Largest results JSON that is read: a quarter of the heap."""
    return gc.mem_free() // 4 if hasattr(gc, "mem_free") else 1 << 24


def outgoing(res, text=None, omitted=None):
    """Our results as the JSON that the other side expects: all required keys, seconds for times.

    Losses and order in iperf's arithmetic, in which a duplicate is out of order and hides a loss.
    """
    streams = []
    for s in res.streams:
        streams.append({
            "id": s["id"], "bytes": s["bytes"], "retransmits": 0, "jitter": s["jitter_us"] / 1e6,
            "errors": max(0, s["lost"] - s["dup"]), "omitted_errors": 0, "omitted_packets": 0,
            "packets": s["packets"],
            "start_time": 0, "end_time": s["us"] / 1e6,
        })  # fmt: skip
    r = {"cpu_util_total": 0, "cpu_util_user": 0, "cpu_util_system": 0, "sender_has_retransmits": 0,
         "streams": streams}  # fmt: skip
    if text is not None:
        r["server_output_text"] = text
    return r


def incoming(res, r):
    """Put the peer's results beside ours: per stream, and summed by direction. Returns a sentence on
    what does not fit, or None."""
    ours = {s["id"]: s for s in res.streams}
    sent = []
    received = []
    odd = None
    for t in r.get("streams") or ():
        s = ours.get(t.get("id"))
        if s is None:
            odd = "the peer reports a stream %r that does not exist" % (t.get("id"),)
            continue
        start = t.get("start_time") or 0
        end = t.get("end_time")
        us = int((end - start) * 1e6) if end else s["us"]
        peer = {
            "id": s["id"], "sender": not s["sender"], "bytes": _number(t.get("bytes")) or 0, "us": us,
            "packets": _number(t.get("packets")) or 0, "lost": _number(t.get("errors")) or 0, "ooo": 0,
            "dup": 0, "jitter_us": int((t.get("jitter") or 0) * 1e6), "retries": 0, "enomem": 0,
            "stall_us": 0, "retransmits": _number(t.get("retransmits")),
        }  # fmt: skip
        (received if s["sender"] else sent).append(peer)
        s["peer"] = {k: peer[k] for k in ("bytes", "us", "packets", "lost", "jitter_us", "retransmits")}
    res.peer_sent = total(sent)
    res.peer_received = total(received)
    res.peer_text = r.get("server_output_text")
    if res.peer_text is None and r.get("server_output_json") is not None:
        import json

        res.peer_text = json.dumps(r["server_output_json"])
    if odd is None and len(sent) + len(received) < len(res.streams):
        odd = "the peer reports %d of %d streams" % (len(sent) + len(received), len(res.streams))
    return odd


def _number(x):
    """A number of a results JSON: 3.12 writes -1 as 2**64 - 1."""
    if x is None:
        return None
    if x >= 1 << 63:
        x -= 1 << 64
    return x
