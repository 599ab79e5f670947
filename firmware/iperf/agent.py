"""The agent: runs jobs for the host and reports them in frames (docs/contracts.md).

Called over the raw REPL: run(job), again(), info(). None of them lets an exception
out: an error is an `error` record, then `done`. What follows a test is iperf.ending's,
so that it takes no memory from the test.
"""

import gc
import json

from iperf.errors import IperfError
from iperf.frames import Writer
from iperf.memory import forget_all

# Events of iperf that become records before the test's end, and their kinds.
_EARLY = {"start": "start", "connected": "connected", "text": "log"}
# What stays on the board between two jobs.
_STAY = ("agent", "errors", "frames", "memory")

_last = None


class _Run:
    """What the last job said: kept so that it can be said again."""

    def __init__(self, ident):
        self.ident = ident
        self.before = []  # start, connected, log
        self.result = None
        self.error = None  # the fields of an `error` record, or the exception that becomes one

    def say(self, out, kind, fields):
        fields["k"] = kind
        fields["run"] = self.ident
        out.send(fields)


def _do(run, job, out):
    import iperf

    options = job.get("options") or {}
    live = bool(job.get("live"))
    role = job.get("role", "client")
    if role not in ("client", "server"):
        raise IperfError("usage", "role is %r: use client or server" % role)

    def on_event(kind, fields):
        if kind == "interval":
            if live:
                run.say(out, kind, fields)
        elif kind == "error":
            # A server's failed test: said once, at the end.
            run.error = fields
        elif kind in _EARLY:
            run.before.append((_EARLY[kind], fields))
            run.say(out, _EARLY[kind], fields)

    options["on_event"] = on_event
    options["live"] = live
    free = _free()
    if role == "client":
        host = options.pop("host", None)
        if not host:
            raise IperfError("usage", "the job names no host")
        run.result = iperf.client(host, **options)
    else:
        served = iperf.server(**options)
        run.result = served[-1] if served else None
    if run.result is not None and run.result.heap is None and free is not None:
        run.result.heap = {"free_before": free, "free_after": _free()}
    return live


def _free():
    gc.collect()
    return gc.mem_free() if hasattr(gc, "mem_free") else None


def run(text):
    """Run the job (JSON text) and send its records."""
    global _last
    _last = None
    out = Writer()
    run = _Run(None)
    live = False
    try:
        job = json.loads(text)
        run.ident = job.get("id")
        live = _do(run, job, out)
    except (Exception, KeyboardInterrupt) as error:
        # The partial result of an aborted test travels on its exception.
        run.result = getattr(error, "result", None)
        run.error = error
    _last = run
    _finish(run, out, live)


def again():
    """Send the records of the last job once more, as if they had not been sent."""
    out = Writer()
    run = _last
    if run is None:
        run = _Run(None)
        run.error = {"kind": "protocol", "text": "nothing ran since the last reset", "errno": None}
    for kind, fields in run.before:
        run.say(out, kind, fields)
    _finish(run, out, False)


def _finish(run, out, live):
    forget_all(*_STAY)
    _end(run, out, live)
    forget_all(*_STAY)


def _end(run, out, live):
    from iperf import ending

    ending.send(run, out, live)


def info():
    """Send one `board` record: what this board is."""
    out = Writer()
    run = _Run(None)
    try:
        from iperf import about

        run.say(out, "board", about.board())
    except Exception as error:
        run.error = error
    _finish(run, out, False)
