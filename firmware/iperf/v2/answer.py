"""The server report that the sender of an iPerf 2 datagram stream gets."""

from iperf import clock, hot
from iperf.v2 import report, wire

_SILENCE_US = 500000  # a report that nobody asks for again so long has arrived (2.0 asks every 250 ms)
_LINGER_US = 3000000


def put_report(flow, buf, us):
    """Write the server report of a stream, which took `us`; returns its length."""
    lost, ooo, datagrams = flow.iperf_counts()
    return report.put_report(buf, flow.layout, flow.total(hot.C_BYTES), us, lost, ooo, datagrams,
                             flow.jitter_us())  # fmt: skip


class Report:
    """Answers the final datagram: sends the report, and again for every further one, until it is quiet."""

    def __init__(self, flow, us):
        self.sock = flow.sock
        self.buf = bytearray(report.REPORT_LEN)
        at = 12 if flow.layout == wire.OLD else 16
        if flow.layout != wire.NEW or flow.header.o[1] < 0:
            self.buf[:at] = memoryview(flow.buf)[:at]  # 2.0 expects its own header back
        self.n = put_report(flow, self.buf, us)
        self.view = memoryview(self.buf)[: self.n]
        self.begun = self.heard = clock.ticks_us()
        self._send()

    def _send(self):
        try:
            self.sock.write(self.view)
        except OSError:
            return False  # nobody is there any more
        return True

    def step(self):
        """Answer what came; True when it is over."""
        now = clock.ticks_us()
        try:
            while self.sock.recv_datagram(16) is not None:
                self.heard = now
                if not self._send():
                    return True
                if clock.ticks_diff(clock.ticks_us(), now) > 5000:
                    break
        except OSError:
            return True
        quiet = clock.ticks_diff(now, self.heard) > _SILENCE_US
        return quiet or clock.ticks_diff(now, self.begun) > _LINGER_US
