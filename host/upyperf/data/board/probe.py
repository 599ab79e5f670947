# Runs on the board: a few round trips over TCP to the PC, then "#N <json>".
def _probe(host, port, count, timeout_s):
    import json
    import socket
    import time

    out = {"ok": False, "rtt_us": [], "errno": None}
    s = None
    try:
        address = socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM)[0]
        s = socket.socket(address[0], socket.SOCK_STREAM)
        s.settimeout(timeout_s)
        s.connect(address[-1])
        for _ in range(count):
            t = time.ticks_us()
            s.send(b"x")
            if s.recv(1) != b"x":
                break
            out["rtt_us"].append(time.ticks_diff(time.ticks_us(), t))
        out["ok"] = True
    except Exception as e:
        out["errno"] = getattr(e, "errno", None)
        out["text"] = "%s: %s" % (type(e).__name__, e)
    if s:
        s.close()
    print("#N " + json.dumps(out))
