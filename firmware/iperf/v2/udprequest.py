"""What the UDP client asks the server for."""

from iperf.v2 import wire


def run(client):
    """A datagram whose header says what is asked for; every one of the test carries it."""
    cfg, kind = client.cfg, client.kind
    # of a request only the header: it is sent from the receive buffer
    buf = bytearray(wire.UDP_HEAD_LEN if kind == "reverse" else max(cfg["length"], 16))
    at = 12 if cfg["old"] else 16
    flags = 0 if cfg["old"] or cfg["compat"] else wire.SEQNO64
    upper = 0
    if kind == "reverse":
        buf[3] = 1  # a 2.2 server overhears a request with number 0
    if kind in ("reverse", "full_duplex"):
        flags |= wire.V2 | wire.UDPTESTS
        upper |= wire.REVERSE if kind == "reverse" else wire.FULL_DUPLEX | wire.NO_FIN
    else:
        flags |= wire.V1 | (wire.RUN_NOW if kind == "dual" else 0)
    extended = not cfg["compat"]
    if extended:
        # the rate stands in the extension: without it a 2.1 server answers unpaced
        flags |= wire.EXTEND | wire.LEN | wire.UDP_HEAD_LEN << 1
    wire.put_v1(buf, at, flags, cfg["parallel"], cfg["listen_port"], cfg["length"], cfg["bandwidth"],
                client.amount)  # fmt: skip
    if extended:
        wire.put_extension(buf, at + wire.V1_LEN, upper, cfg["bandwidth"], cfg["tos"] or 0)
    return buf
