"""What to add to a board's error: what this PC knows about the cause, and the next step."""

from __future__ import annotations

import contextlib
import socket
import time

from upyperf.records import ErrorInfo, Test

PROBE_S = 2.0
_PROGRAM = {2: "iperf (iPerf 2)", 3: "iperf3"}


def identify(host: str, port: int, timeout: float = PROBE_S) -> int | None:
    """Which iPerf serves TCP at host:port: 2, 3, or None when it cannot be told.

    Sends 37 zero bytes: to iperf3 that is a cookie, which it answers with one byte; iPerf 2
    takes zeros for payload (its safest first bytes) and stays silent. One test of a one-off
    server is used up, so this is asked only after a failure.
    """
    with contextlib.suppress(OSError), socket.create_connection((host, port), timeout=timeout) as connection:
        connection.settimeout(timeout)
        connection.sendall(bytes(37))
        start = time.monotonic()
        try:
            answer = connection.recv(1)
        except TimeoutError:
            return 2
        if answer in (b"\x09", b"\xff"):
            return 3
        # iPerf 2 would have waited for the rest of its 128 KiB.
        return 2 if time.monotonic() - start > timeout / 2 else None
    return None


def wrong_peer(test: Test, host: str, port: int) -> ErrorInfo | None:
    """The error, when the server at host:port is of the other iPerf generation (case P9)."""
    found = identify(host, port)
    if found is None or found == test.version:
        return None
    return ErrorInfo(
        kind="wrong-peer",
        text=f"{host} port {port} is served by {_PROGRAM[found]}, but the test is iPerf {test.version}: "
        f"start {_PROGRAM[test.version].split()[0]} -s there, or test with version {found} "
        f"(iperf3 listens on 5201, iPerf 2 on 5001)",
    )


def improve(error: ErrorInfo, test: Test, host: str, port: int, remote: bool) -> ErrorInfo:
    """The board's error with what the PC can add. `remote`: the server is not ours."""
    if remote and error.kind in ("timeout", "closed", "protocol", "peer"):
        better = wrong_peer(test, host, port)
        if better is not None:
            return better
    hint = ""
    if error.kind == "refused" and remote:
        program = _PROGRAM[test.version].split()[0]
        hint = f"is {program} -s running at {host}, on port {port}?"
    elif error.kind == "timeout" and test.proto == "udp" and not remote:
        hint = f"a firewall may drop UDP to port {port} though TCP passes"
    elif error.kind == "timeout":
        hint = f"a firewall may drop port {port}, or {host} is another machine's address"
    elif error.kind == "unreachable" and error.text.startswith("cannot resolve"):
        # A name, not a route (the text is firmware/iperf/layers/socket_open.py's).
        hint = "check the spelling, or give the address: a board asks the DNS server that DHCP named"
        if ":" in host:
            hint = "an IPv6 address needs -6"
    elif error.kind == "unreachable":
        hint = f"board and {host} are not in one network; check the board's address and gateway"
    if not hint or hint in error.text:
        return error
    return error.model_copy(update={"text": f"{error.text} ({hint})"})
