"""The exchange of results of our iPerf 3 server (iperf.md B5)."""

from iperf.errors import IperfError
from iperf.v3 import message, results, wire
from iperf.v3.control import Closed
from iperf.v3.server import most


def run(test):
    """Take the client's results and send ours. Raises IperfError for what the client cannot have measured."""
    ctl = test.ctl
    res = test.res
    # iperf3's client reads whole blocks to the end in -R: only EOF gets it out of a partial one
    test.close_streams()
    ctl.send_state(wire.EXCHANGE_RESULTS)
    odd = results.incoming(res, message.read(ctl, 15000, "its results", most() * 2))
    text = res.text() if test.cfg["get_server_output"] else None
    message.send(ctl, results.outgoing(res, text))
    ctl.send_state(wire.DISPLAY_RESULTS)
    res.counters = test.layer.counters()
    try:
        ctl.state(10000, "its goodbye")
    except (Closed, IperfError):
        pass  # the results are exchanged: how it leaves does not matter
    if odd:
        raise IperfError("protocol", odd)
