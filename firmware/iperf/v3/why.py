"""What went wrong in an iPerf 3 session, in one line each: loaded only then."""

from iperf.errors import IperfError
from iperf.v3 import wire
from iperf.v3.control import Closed


def _code_text(code):
    return {
        6: "number of parallel streams too large", 13: "an option is not implemented there",
        18: "no SCTP support", 20: "block size too large for UDP",
        27: "the total bit rate is over the server's limit", 37: "the test is longer than the server allows",
        106: "it could not read the cookie", 109: "the control connection closed",
        110: "it got an unknown control message", 114: "it could not read the test parameters",
        117: "it could not read the results", 119: "the client terminated", 120: "the server terminated",
        121: "it is busy", 122: "it cannot set no-delay", 123: "it cannot set the MSS",
        125: "it cannot set the type of service", 130: "it cannot set the socket buffer size",
        131: "it does not support that protocol", 134: "it cannot set the congestion control",
        142: "authorization failed", 144: "it received no data for its timeout",
        160: "the test ran longer than the server allows", 203: "it could not connect a stream",
        204: "it could not accept a stream", 208: "a stream has an invalid id",
    }.get(code, "see iperf_api.h")  # fmt: skip


def error_frame(who, frame):
    """The peer error of a SERVER_ERROR frame: two int32, iperf's number and an errno (3.12 sends one in
    one case)."""
    code = int.from_bytes(frame[:4], "big") if len(frame) >= 4 else 0
    errno = int.from_bytes(frame[4:8], "big") if len(frame) >= 8 else 0
    text = "%s reports error %d: %s" % (who, code, _code_text(code))
    if errno:
        text += " (errno %d)" % errno
    return IperfError("peer", text, code)


def rest(ctl, n):
    """n more bytes of an error frame, none when they do not come."""
    try:
        return bytes(ctl.read(n, 2000, "its error number"))
    except (Closed, IperfError):
        return b""


def read_error(ctl):
    """Raise the peer error of the SERVER_ERROR frame (8 bytes; 3.12 sends 4 in one case) that follows."""
    raise error_frame(ctl.who, rest(ctl, 4) + rest(ctl, 4))


def bad_state(who, s, started):
    """What a negative, unexpected or unknown state of the server means."""
    if s == wire.ACCESS_DENIED:
        return IperfError("busy", "%s is busy with another test: try again later" % who)
    if s == wire.SERVER_TERMINATE:
        return IperfError("closed", "%s was stopped by its user" % who)
    if not started:
        return IperfError("wrong-peer", "%s answers %d where iPerf 3 expects a state: it looks like an "
                          "iPerf 2 server (then use version 2)" % (who, s))  # fmt: skip
    return IperfError("protocol", "%s sent the unknown state %d" % (who, s))


def silent(who):
    """No answer to the cookie."""
    return IperfError("wrong-peer", "%s does not answer the iPerf 3 greeting: is it an iPerf 2 server (then "
                      "use version 2), or is it stuck?" % who)  # fmt: skip


def closed(who, state):
    """The server closed the control connection after `state`."""
    if state == 0:
        return IperfError("wrong-peer", "%s closed the connection at the iPerf 3 greeting: is it an iPerf 2 "
                          "server (then use version 2)?" % who)  # fmt: skip
    if state == wire.PARAM_EXCHANGE:
        return IperfError("peer", "%s rejected the test's parameters (it closed the connection); its own "
                          "output says why" % who)  # fmt: skip
    when = {
        wire.CREATE_STREAMS: "before the streams were set up", wire.TEST_START: "before the test began",
        wire.TEST_RUNNING: "during the test", wire.EXCHANGE_RESULTS: "before the results came",
    }.get(state, "too early")  # fmt: skip
    return IperfError("closed", "%s closed the control connection %s: was it stopped?" % (who, when))


def stream_failed(who, e):
    """The socket of a stream raised OSError e."""
    n = e.args[0] if e.args else 0
    if n == 12:
        return IperfError("memory", "the board ran out of memory for the network (ENOMEM)", n)
    return IperfError("closed", "a data connection to %s broke: %s" % (who, e), n)


def no_greeting(who, port, tries, e=None):
    """The UDP greeting found no answer."""
    if e is not None:
        return IperfError("udp-handshake", "%s answers no UDP on port %d (%s)" % (who, port, e))
    return IperfError("udp-handshake", "the UDP greeting was sent %d times and never answered: is UDP "
                      "port %d of %s filtered?" % (tries, port, who))  # fmt: skip
