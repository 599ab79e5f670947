"""Runs the streams of a test: slices, intervals, the end by time, bytes or word of the peer.

Protocol files make Flows, give them to an Engine together with their control connection,
and call `run()`; all waiting happens here, so that nothing can wait without a bound.
"""

from iperf import clock, hot
from iperf.flow import MANY
from iperf.ring import Ring

try:
    from micropython import const
except ImportError:

    def const(x):
        return x


POLLIN = const(1)
POLLOUT = const(4)

_SLICE_US = const(20000)  # longest time without a look at the control connection
_SPIN_US = const(2000)  # pacing waits up to this by itself: poll() knows whole milliseconds only
_OPS = const(16)  # datagrams in a turn when several streams share the loop


class Engine:
    """Moves data on `flows` until something ends it.

    poller     of the layer
    time_us    length of the test, 0 = no limit;  omit_us: left out at its start
    quota      bytes over all flows of one direction, 0 = no limit
    interval_us, on_row   0 = no rows; on_row(row) is called for each when live output was asked for
    watch      pairs (sock, call) watched beside the data: call() returns True to end the run
    idle_us    end with reason "idle" when no byte moved on any flow for so long, 0 = never

    Attributes: slice_us, longest time of one turn of a flow; at, the flow that moved last (the one whose
    socket raised, when slice() raises OSError).
    """

    def __init__(self, poller, flows, time_us=0, omit_us=0, quota=0, interval_us=0, rows=64, on_row=None,
                 watch=(), idle_us=0):  # fmt: skip
        self.poller = poller
        self.flows = flows
        # as (seconds, rest) and (hi, lo): nothing in the loop may leave small integers
        self._time = (time_us // 1000000, time_us % 1000000)
        self._omit = (omit_us // 1000000, omit_us % 1000000)
        self._quota = (quota >> 29, quota & MANY)
        self.limited = time_us > 0
        self.quota = quota > 0
        self.interval_us = interval_us
        self.ring = Ring(rows if interval_us else 1)
        self.on_row = on_row
        self.watch = watch
        self.idle_us = idle_us
        self.clock = clock.Elapsed()
        self.omitting = omit_us > 0
        self.reason = None
        self.slice_us = _SLICE_US
        self.at = None
        self._live = 0
        self._watched = 0
        self._row_s = 0
        self._row_us = 0
        self._next_s = 0
        self._next_us = 0
        self._idle_s = 0
        self._idle_mark = 0

    # -- the run

    def start(self):
        """Start the clock; senders may send from here on."""
        self.clock.start()
        self._live = len(self.flows)
        n = 0
        for f in self.flows:
            if f.sender:
                # parallel paced streams take turns instead of sending all at once
                f.begin(f.p[hot.P_GAP] * n // max(1, len(self.flows)) if f.paced else 0)
                n += 1
            self._listen(f)
        for s, _ in self.watch:
            self.poller.register(s, POLLIN)
        self._set_next_row()

    def run(self):
        """Until time, quota, the peer's word, or all streams ended. Returns the reason: "time", "quota",
        "control", "eof", "fin", "idle"; totals are in the flows. Raises OSError of a socket."""
        self.start()
        while not self.slice():
            pass
        self.finish()
        return self.reason

    def add(self, f):
        """Let one more flow join the running test."""
        self.clock.update()
        f.start_us = self.clock.total_us()
        self.flows.append(f)
        self._live += 1
        f.begin()
        self._listen(f)

    def end(self, f, code=hot.EOF):
        """End one flow, the others go on."""
        if not f.done:
            self._ended(f, code)

    def end_in(self, us):
        """Let the run end by time `us` from now; 0: no such end."""
        self.clock.update()
        t = self.clock.total_us() + us
        self._time = (t // 1000000, t % 1000000)
        self.limited = us > 0

    def slice(self):
        """One round over all flows; True when the run is over."""
        ck = self.clock
        now = ck.update()
        left = self._left()
        if left <= 0:
            if self.omitting:
                self._end_omit()
                return False
            self.reason = "time"
            return True
        if self.interval_us:
            to_row = ck.until(self._next_s, self._next_us, _SLICE_US)
            if to_row <= 0:
                self._rows()
                return False
            if to_row < left:
                left = to_row
        t_end = clock.ticks_add(now, left if left < self.slice_us else self.slice_us)
        flows = self.flows
        single = self._live == 1
        wait = _SLICE_US
        busy = False
        alive = 0
        for f in flows:
            if f.done:
                continue
            alive += 1
            if self.quota and self._cap(f):
                self.reason = "quota"
                return True
            if f.quota and f.cap(f.to_go()):
                self._ended(f, hot.QUOTA)
                continue
            self.at = f
            k = f.step(t_end, _SPIN_US if single else 0, MANY if single else _OPS)
            if k == hot.WAIT:
                if f.p[hot.P_WAIT] < wait:
                    wait = f.p[hot.P_WAIT]
            elif k == hot.BLOCK:
                if f.sender and not f.want:
                    f.want = True
                    self._listen(f)
            elif k == hot.EOF or k == hot.FIN:
                self._ended(f, k)
            elif k == hot.NOMEM or k == hot.REFUSED:
                if wait > 1000:
                    wait = 1000
                if k == hot.REFUSED:
                    self._refused(f)
            elif k == hot.FAIL:
                raise OSError(f.lo[hot.C_ERRNO])
            else:
                busy = True
            if f.want and k != hot.BLOCK and not f.done:
                f.want = False
                self._listen(f)
        self._live = alive
        if not alive:
            self.reason = "fin" if self.flows and self.flows[0].fin else "eof"
            return True
        ms = 0
        if not busy:
            # what is left of the slice, and not beyond the moment when a paced block is due
            left = clock.ticks_diff(t_end, clock.ticks_us())
            if wait < left:
                left = wait
            ms = left // 1000
            if ms <= 0:
                if left > 0 and wait < _SLICE_US and not single:
                    clock.sleep_us(left)
                ms = 0
        if not busy or self._watch_due(now):
            self.poller.wait(ms)
            for s, call in self.watch:
                if s.ready and call():
                    ck.update()
                    self.reason = "control"
                    return True
        if self.idle_us:
            return self._idle()
        return False

    def finish(self):
        """Last rows, and the streams' end time; the sockets leave the poller."""
        ck = self.clock
        ck.update()
        for f in self.flows:
            self.poller.unregister(f.sock)
        for s, _ in self.watch:
            self.poller.unregister(s)
        if self.interval_us:
            # no row for the moment between the last data and the end
            rest = (ck.s - self._row_s) * 1000000 + ck.us - self._row_us
            if rest * 10 > self.interval_us or any(f.moved() for f in self.flows):
                self._rows()
        for f in self.flows:
            if not f.end_us:
                f.end_us = self.clock.total_us()

    # -- parts

    def _watch_due(self, now):
        """While data flow without a pause: look at the watched sockets once in a slice."""
        if not self.watch:
            return False
        if clock.ticks_diff(now, self._watched) < _SLICE_US and self._watched:
            return False
        self._watched = now or 1
        return True

    def _left(self):
        if self.omitting:
            t = self._omit
        elif self.limited:
            t = self._time
        else:
            return _SLICE_US
        return self.clock.until(t[0], t[1], _SLICE_US)

    def _cap(self, f):
        """Bound the next slice by what is left of the quota in its direction; True when nothing is."""
        if self.omitting:
            left = MANY
        else:
            hi, lo = self._quota
            for g in self.flows:
                if g.sender == f.sender:
                    hi -= g.hi[hot.C_BYTES]
                    lo -= g.lo[hot.C_BYTES]
                    if lo < 0:
                        lo += 0x20000000
                        hi -= 1
            if hi < 0 or (hi == 0 and lo == 0):
                return True
            left = MANY if hi else lo
        return f.cap(left)

    def _listen(self, f):
        """Tell the poller what the flows of f's socket (two may share one) wait for."""
        flags = 0
        alive = False
        for g in self.flows:
            if g.sock is f.sock and not g.done:
                alive = True
                if not g.sender:
                    flags |= POLLIN
                elif g.want:
                    flags |= POLLOUT
        if alive:
            self.poller.register(f.sock, flags)
        else:
            self.poller.unregister(f.sock)

    def _refused(self, f):
        """Between two of its sockets a server (iperf 2, with -P) refuses a datagram or two; more of them
        say that nobody listens. Raises OSError ECONNREFUSED."""
        f.refused += 1
        if f.refused >= 5 and not f.hi[hot.C_PKTS] and f.lo[hot.C_PKTS] < 4 * f.refused:
            raise OSError(111)

    def _ended(self, f, k):
        f.done = True
        f.fin = k == hot.FIN
        self.clock.update()
        f.end_us = self.clock.total_us()
        self._listen(f)

    def _end_omit(self):
        if self.interval_us:
            self._rows()
        self.omitting = False
        self.clock.start()
        for f in self.flows:
            f.reset()
        self._row_s = self._row_us = 0
        self._next_s = self._next_us = 0
        self._set_next_row()

    def _set_next_row(self):
        us = self._next_us + self.interval_us
        self._next_s += us // 1000000
        self._next_us = us % 1000000

    def _rows(self):
        """One row per flow for the time since the last; an interval that nothing ran in still has one."""
        ck = self.clock
        s, us = ck.s, ck.us
        if s == self._row_s and us == self._row_us:
            return
        for f in self.flows:
            lo = f.lo[hot.C_BYTES] - f.mark_lo[hot.C_BYTES]
            hi = f.hi[hot.C_BYTES] - f.mark_hi[hot.C_BYTES]
            if lo < 0:
                lo += 0x20000000
                hi -= 1
            if f.done and not hi and not lo and not f.since_mark(f.counted):
                continue
            # no shorthand for f.since_mark: a bound method is a heap object
            self.ring.put(f.id, f.sender, self.omitting, self._row_s, self._row_us, s, us, hi, lo,
                          f.since_mark(f.counted), f.since_mark(hot.C_LOST), f.since_mark(hot.C_OOO),
                          f.jitter_us(), f.since_mark(hot.C_RETRY), f.since_mark(hot.C_NOMEM))  # fmt: skip
            f.mark()
            if self.on_row is not None:
                self.on_row(self.ring.last())
        self._row_s = s
        self._row_us = us
        while ck.until(self._next_s, self._next_us, 1) <= 0:
            self._set_next_row()

    def _idle(self):
        n = 0
        for f in self.flows:
            n = (n + f.lo[hot.C_BYTES] + f.hi[hot.C_BYTES]) & MANY
        if n != self._idle_mark:
            self._idle_mark = n
            self._idle_s = self.clock.s
        elif (self.clock.s - self._idle_s) * 1000000 > self.idle_us:
            self.reason = "idle"
            return True
        return False

    def rows(self):
        """The interval rows kept, oldest first (a list of dicts: after the test)."""
        return [self.ring.row(k) for k in range(len(self.ring))]
