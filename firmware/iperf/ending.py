"""What the agent sends when a test is over: intervals, result, error, done."""

from iperf.errors import IperfError

# what an IperfError can be
KINDS = (
    "usage", "unsupported", "memory", "refused", "unreachable", "timeout", "busy", "closed",
    "peer", "wrong-peer", "udp-handshake", "network-down", "protocol", "interrupted",
)  # fmt: skip


def send(run, out, live):
    """Send the rest of a job's records; intervals only when they were not sent live."""
    try:
        _send(run, out, live)
    except (Exception, KeyboardInterrupt) as error:
        run.say(out, "error", describe(error))
        run.say(out, "done", {"status": "error", "records": out.seq + 1})


def _send(run, out, live):
    if isinstance(run.error, BaseException):
        run.error = describe(run.error)
    result = run.result
    if result is not None:
        if not live:
            for row in result.rows():
                run.say(out, "interval", row)
        fields = result.to_dict(False)
        fields.pop("intervals", None)
        run.say(out, "result", fields)
        if fields.get("error") and not run.error:
            run.error = dict(fields["error"])
    if run.error:
        run.say(out, "error", run.error)
    run.say(out, "done", {"status": "error" if run.error else "ok", "records": out.seq + 1})


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
