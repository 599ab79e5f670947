"""The end of a datagram stream that we sent: the final datagram and the wait for the server's report."""

from struct import pack_into, unpack_from

from iperf import clock, hot
from iperf.v2 import report

_RETRY_US = 10000  # between two final datagrams, as iperf 2.1
_GIVE_UP_US = 2000000
_BLIND = 5  # copies where nobody answers: iperf's own client crashes when the only one is lost


class Fin:
    """Sends the final datagram of a flow, again and again until the server's report comes.

    report  (bytes, us, lost, ooo, datagrams, jitter_us) or None
    """

    def __init__(self, flow, sign_magnitude, wait):
        self.flow = flow
        self.sock = flow.sock
        self.report = None
        report.put_fin(flow.buf, flow.header.o, sign_magnitude)
        self.wait = wait
        self.begun = self.sent = clock.ticks_us()
        self.tries = 0
        self._send()

    def _send(self):
        self.sent = clock.ticks_us()
        self.tries += 1
        self._stamp()
        try:
            self.sock.write(self.flow.buf)
        except OSError as e:
            return bool(e.args) and e.args[0] in (11, 12, 105)  # full: the next try may pass
        return True

    def _stamp(self):
        """Bring the time stamp up to date: the server takes this datagram into its jitter."""
        p = self.flow.p
        us = p[hot.P_USEC] + clock.ticks_diff(self.sent, p[hot.P_TICK])
        p[hot.P_TICK] = self.sent
        p[hot.P_USEC] = us % 1000000
        s = unpack_from(">I", self.flow.buf, 4)[0]
        pack_into(">II", self.flow.buf, 4, s + us // 1000000, us % 1000000)

    def step(self):
        """Look for the report; True when it is over."""
        if not self.wait and self.tries >= _BLIND:
            return True
        now = clock.ticks_us()
        try:
            while self.wait:  # else what comes there is a stream's
                answer = self.sock.recv_datagram(256)
                if answer is None:
                    break
                self.report = report.get_report(answer, len(answer))
                if self.report is not None:
                    return True
                if clock.ticks_diff(clock.ticks_us(), now) > 5000:
                    break
        except OSError:
            return True
        if clock.ticks_diff(now, self.begun) > _GIVE_UP_US:
            return True
        if clock.ticks_diff(now, self.sent) >= _RETRY_US:
            return not self._send()
        return False

    def close_books(self, stream):
        """Put the report into the STREAM dict of its flow."""
        if self.report is None:
            return
        nbytes, us, lost, ooo, datagrams, jitter_us = self.report
        stream["peer"] = {
            "bytes": nbytes, "us": us, "packets": datagrams, "lost": lost, "ooo": ooo,
            "jitter_us": jitter_us,
        }  # fmt: skip
