"""The UDP client's reverse test, and what it shares with the other modes."""

from iperf import clock
from iperf.memory import forget, stage
from iperf.v2 import layouts
from iperf.v2.udp import UdpClient

_ASK_US = 20000  # between two requests of a reverse test (iperf: up to 20 ms)
_ASK_TIMES = 150
_SLOP_US = 3000000
_IDLE_US = 5000000


class UdpReverse(UdpClient):
    def buffers(self):
        # what comes back has our length, or 2.0's default
        self.rbuf = bytearray(max(self.cfg["length"], 1500))
        return UdpClient.buffers(self)

    def datagram(self):
        datagram = stage("v2.udprequest", self)
        forget("v2.wire")
        return datagram

    def test(self, bufs):
        self._receive([self.inflow(k + 1, s) for k, s in enumerate(self.socks)], bufs)

    def _receive(self, flows, requests):
        e = self.begin(flows, self.time_us and self.time_us + _SLOP_US)
        e.idle_us = _IDLE_US
        e.start()
        asked = refused = 0
        t = clock.ticks_us()
        silent = list(flows)
        while not e.slice():
            for f in list(silent):
                if f.seen():
                    # its time counts from the first datagram
                    silent.remove(f)
                    f.start_us = e.clock.total_us() - f.silent_us()
            if asked <= _ASK_TIMES and clock.ticks_diff(clock.ticks_us(), t) >= 0:
                waiting = [k for k in range(len(flows)) if not flows[k].seen() and not flows[k].done]
                for k in waiting:
                    try:
                        self._ask(flows[k].sock, requests[k])
                    except OSError as error:
                        refused += 1
                        if error.args[0] != 111 or refused > 10:
                            raise
                asked = asked + 1 if waiting else _ASK_TIMES + 1
                t = clock.ticks_add(t, _ASK_US)
                if asked == _ASK_TIMES and len(waiting) == len(flows):
                    self.keep()
                    raise _modes().no_answer(self)
        reason = e.reason
        self.keep()
        self.silent(flows)
        if reason == "idle" and not any(f.fin for f in flows):
            raise _modes().silent(self, _IDLE_US)

    def _ask(self, sock, head):
        n = len(head)
        self.rbuf[:n] = head
        sock.write(memoryview(self.rbuf)[: max(self.cfg["length"], n)])

    def inflow(self, id, sock):
        from iperf.v2.inflow import InFlow  # not before the connections stand

        return InFlow(id, sock, self.rbuf, layouts.NEW, True, answer=False)

    def silent(self, flows):
        """Emit which streams ended without a final datagram."""
        for f in flows:
            if not f.sender and not f.fin:
                self.emit("text", {"text": "stream %d: the final datagram did not come" % f.id})


def _modes():
    from iperf.v2 import modes

    return modes
