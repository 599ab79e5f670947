"""The parameters of a test as a client sends them (iperf.md B2)."""

from iperf.v3 import message

VERSION = "3.12"  # the behaviour that we follow


def run(client):
    """Send a client's parameters."""
    client.quota = quota(client.cfg)
    message.send(client.ctl, from_options(client.cfg))


def from_options(cfg):
    """What a client sends. Booleans are exactly true: from 3.18 on servers check the type."""
    udp = cfg["udp"]
    p = {
        "udp" if udp else "tcp": True, "omit": int(cfg["omit"] or 0),
        "time": 0 if cfg["num_bytes"] or cfg["blocks"] else int(cfg["time"]),
        "num": cfg["num_bytes"] or 0, "blockcount": cfg["blocks"] or 0, "parallel": cfg["parallel"],
        "len": cfg["length"], "pacing_timer": 1000, "client_version": VERSION,
    }  # fmt: skip
    if cfg["bandwidth"]:
        p["bandwidth"] = cfg["bandwidth"]
    for key, name in (("reverse", "reverse"), ("bidir", "bidirectional"), ("nodelay", "nodelay")):
        if cfg[key]:
            p[name] = True
    for key, name in (("window", "window"), ("mss", "MSS"), ("tos", "TOS"), ("title", "title"),
                      ("extra_data", "extra_data")):  # fmt: skip
        if cfg[key]:
            p[name] = cfg[key]
    for key in ("get_server_output", "udp_counters_64bit", "repeating_payload"):
        if cfg[key] and (udp or key != "udp_counters_64bit"):
            p[key] = 1
    return p


def quota(cfg):
    """Bytes that end the test, 0 for a test by time."""
    if cfg["num_bytes"]:
        return cfg["num_bytes"]
    if cfg["blocks"]:
        return cfg["blocks"] * cfg["length"]
    return 0
