"""The UDP client: the plain test, and how its streams end."""

from iperf.v2 import wire
from iperf.v2.udp import UdpClient


class UdpSend(UdpClient):
    def datagram(self):
        """A datagram of a plain test. The numbers begin at 0, as 2.0's, which every version counts right."""
        cfg = self.cfg
        buf = bytearray(cfg["length"])
        at = 12 if cfg["old"] else 16
        flags = 0 if cfg["old"] or cfg["compat"] else wire.SEQNO64
        if cfg["old"] and len(buf) >= at + wire.V1_LEN:
            wire.put_v1(buf, at, flags, cfg["parallel"], cfg["port"], 0, cfg["bandwidth"], self.amount)
        elif flags and len(buf) >= at + wire.V1_LEN:
            wire.put_v1(buf, at, flags, cfg["parallel"], 0, 0, 0, 0)
        elif flags and len(buf) >= 20:
            buf[16] = flags >> 24
        return buf

    def senders(self, bufs):
        from iperf.flow import Flow  # not before the connections stand

        cfg = self.cfg
        h = wire.header(wire.OLD if cfg["old"] else wire.NEW, not cfg["old"] and not cfg["signed"], 0)
        return [Flow(k + 1, self.socks[k], True, bufs[k], h, cfg["bandwidth"]) for k in range(len(bufs))]

    def test(self, bufs):
        e = self.begin(self.senders(bufs), self.time_us)
        e.start()
        while not e.slice():
            pass
        self.end_senders()
        self.finals(True)
        self.keep()
        self.finish()

    def finals(self, wait):
        """Send the first final datagram of every stream."""
        from iperf.v2.fin import Fin

        for f in self.flows:
            if f.sender:
                self.fins.append(Fin(f, self.cfg["signed"], wait))

    def finish(self):
        """The handshakes at the end, while nothing else moves."""
        while self.busy():
            self.step()
            self.poller.wait(5)

    def busy(self):
        return bool(self.fins)

    def step(self):
        """One look at every handshake."""
        for h in list(self.fins):
            if h.step():
                self.fins.remove(h)
                self.over.append(h)

    def books(self):
        """Put the server's reports into the result."""
        peers = []
        for h in self.over + self.fins:
            for s in self.res.streams:
                if s["sender"] and s["id"] == h.flow.id:
                    h.close_books(s)
                    if s["peer"]:
                        peers.append(s["peer"])
                    elif h.wait:
                        self.emit("text", {"text": "stream %d: no server report came (n/a)" % h.flow.id})
        if peers:
            p = {k: sum(q[k] for q in peers) for k in ("bytes", "packets", "lost", "ooo")}
            p["us"] = max(q["us"] for q in peers)
            p["jitter_us"] = sum(q["jitter_us"] for q in peers) // len(peers)
            self.res.peer_received = p
