"""The begin of a TCP connection at the server: which client it is and what it asks for."""

from iperf import clock
from iperf.v2 import request
from iperf.v2.common import POLLIN

_FIRST_US = 4000000  # as iperf 2.1, which however serves nobody else meanwhile
_REST_US = 1000000

WAIT, READY, GONE, STRAY = 0, 1, 2, 3


class Hello:
    """A connection of which the first bytes are still to come. `step()` returns

    WAIT    for more
    READY   `request` says what is asked for, `have` bytes were read
    GONE    it was closed, broke or stayed silent: `why`
    STRAY   an iPerf 3 client (`why`)
    """

    def __init__(self, sock, remote, poller):
        self.sock = sock
        self.remote = remote
        self.buf = bytearray(64)
        self.have = 0
        self.need = 4
        self.why = ""
        self.request = None
        self.began = clock.ticks_us()
        self.bound = _FIRST_US
        self.cookie = False
        poller.register(sock, POLLIN)

    def step(self):
        while self.have < self.need:
            try:
                n = self.sock.readinto(memoryview(self.buf)[self.have : self.need])
            except OSError as e:
                return self._gone("reset the connection (errno %d)" % (e.args[0] if e.args else 0))
            if n is None:
                if clock.ticks_diff(clock.ticks_us(), self.began) > self.bound:
                    return self._enough("sent %d bytes and then nothing" % self.have)
                return WAIT
            if n == 0:
                return self._enough("closed after %d bytes" % self.have)
            self.have += n
            if self.have == 4:
                self._first()
            elif self.cookie and not request.may_be_cookie(self.buf, self.have):
                break
        if self.cookie and self.have == request.COOKIE_LEN and request.may_be_cookie(self.buf, self.have):
            self.why = "it is an iPerf 3 client: serve version 3 for it (port 5201), or use iperf (2) there"
            return STRAY
        return self._ready()

    def _first(self):
        """Four bytes are there: flags, or the begin of an iPerf 3 cookie, or payload."""
        flags = request.Request(self.buf, 0, 4).flags
        n = request.header_len(flags)
        if n:
            self.need = n
            if n > len(self.buf):
                self.buf = self.buf + bytes(n - len(self.buf))
        elif request.may_be_cookie(self.buf, 4):
            self.cookie = True
            self.need = request.COOKIE_LEN
        self.bound = _REST_US
        self.began = clock.ticks_us()  # the test began here

    def _enough(self, why):
        """The rest does not come. What there is counts as a test once the flags are there, as in iperf."""
        if self.have < 4:
            return self._gone(why)
        return self._ready()

    def _ready(self):
        # an incomplete header says nothing: then it is payload
        whole = self.have >= self.need and not self.cookie
        self.request = request.Request(self.buf, 0, self.have if whole else 0)
        return READY

    def _gone(self, why):
        self.why = why
        return GONE
