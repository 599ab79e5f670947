"""The agent: runs jobs for the host and reports them in frames (docs/contracts.md).

Called over the raw REPL: run(job), again(), info(). None of them lets an exception
out: an error is an `error` record, then `done`.
"""

import gc
import json

from iperf.errors import IperfError
from iperf.frames import Writer
from iperf.memory import forget

# Events of iperf that become records before the test's end, and their kinds.
_EARLY = {"start": "start", "connected": "connected", "text": "log"}

_last = None


class _Run:
    """What the last job said: kept so that it can be said again."""

    def __init__(self, ident):
        self.ident = ident
        self.before = []  # start, connected, log
        self.result = None
        self.error = None

    def say(self, out, kind, fields=None):
        record = dict(fields) if fields else {}
        record["k"] = kind
        record["run"] = self.ident
        out.send(record)

    def rest(self, out, live):
        """What follows the test itself: intervals (unless sent live), result, error, done."""
        if self.result is not None:
            if not live:
                for row in self.result.rows():
                    self.say(out, "interval", row)
            fields = _without_intervals(self.result)
            self.say(out, "result", fields)
            if fields.get("error") and not self.error:
                self.error = dict(fields["error"])
        if self.error:
            self.say(out, "error", self.error)
        status = "error" if self.error else "ok"
        self.say(out, "done", {"status": status, "records": out.seq + 1})


def _without_intervals(result):
    fields = result.to_dict(False)
    fields.pop("intervals", None)
    return fields


def describe(error):
    """The fields of an `error` record for any exception."""
    if isinstance(error, IperfError):
        return {"kind": error.kind, "text": error.text, "errno": error.errno}
    if isinstance(error, MemoryError):
        return {
            "kind": "memory",
            "text": "the board ran out of memory (%s); use a smaller length, window or "
            "number of streams, or reset the board" % error,
            "errno": None,
        }
    if isinstance(error, KeyboardInterrupt):
        return {"kind": "interrupted", "text": "interrupted by the host", "errno": None}
    number = error.errno if isinstance(error, OSError) else None
    text = "%s: %s" % (type(error).__name__, error)
    return {"kind": "protocol", "text": text, "errno": number if isinstance(number, int) else None}


def _do(run, job, out):
    import iperf

    options = dict(job.get("options") or {})
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
            run.error = dict(fields)
        elif kind in _EARLY:
            fields = dict(fields)
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
        run.error = describe(error)
    _last = run
    gc.collect()
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
    try:
        run.rest(out, live)
    except (Exception, KeyboardInterrupt) as error:
        run.say(out, "error", describe(error))
        run.say(out, "done", {"status": "error", "records": out.seq + 1})


def info():
    """Send one `board` record: what this board is."""
    out = Writer()
    run = _Run(None)
    try:
        from iperf import about

        run.say(out, "board", about.board())
    except Exception as error:
        run.error = describe(error)
    forget("about")
    _finish(run, out, False)
