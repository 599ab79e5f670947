# ruff: noqa: UP031 (the board's code is full of braces)
"""Whole clients side by side on one firmware: `iperf` over layer socket, and uiperf3 frozen beside it.

Both run their own settings against the same iperf3 server; the payload is what the MAC sent, less headers.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

from upyperf import firmware
from upyperf.errors import UpyperfError
from upyperf.insn.measure import Counter
from upyperf.virtual.qemu import QemuBoard

UIPERF3_PORT = 5201  # fixed in uiperf3
_LENGTH = 16384  # the goals' write size; iperf's own 128 KiB is more than lwIP's send buffer takes at once
_HEADERS = 54  # Ethernet, IPv4 and TCP without options
_CODE = (
    """
def client_run(f):
    gc.collect()
    b0, i0 = lwipstats.cpu()
    m0 = lwipstats.mac()
    try:
        f()
    except KeyboardInterrupt:
        pass
    b1, i1 = lwipstats.cpu()
    m1 = lwipstats.mac()
    n = m1["tx_bytes"] - m0["tx_bytes"] - %d * (m1["tx_frames"] - m0["tx_frames"])
    print("RESULT", n, b1 - b0)
"""
    % _HEADERS
)


def uiperf3_source() -> Path:
    """Where the installed uiperf3 is. Raises UpyperfError `config`."""
    found = importlib.util.find_spec("uiperf3")
    if found is None or not found.origin:
        raise UpyperfError("config", "uiperf3 is not installed: pip install uiperf3")
    return Path(found.origin)


def _server() -> subprocess.Popen[bytes]:
    program = shutil.which("iperf3")
    if not program:
        raise UpyperfError("config", "iperf3 is not here: apt-get install iperf3")
    with socket.socket() as free:
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            free.bind(("127.0.0.1", UIPERF3_PORT))
        except OSError:
            raise UpyperfError(
                "config", f"port {UIPERF3_PORT} is taken, and uiperf3 knows no other"
            ) from None
    server = subprocess.Popen(
        [program, "-s", "-B", "127.0.0.1", "-p", str(UIPERF3_PORT)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    time.sleep(0.5)
    return server


def compare_clients(board: object, options: dict[str, Any], *, seconds: float = 0.3) -> dict[str, float]:
    """Instructions per payload byte of TCP sending: {"iperf": …, "uiperf3": …, "ratio": iperf / uiperf3}.

    seconds: of the board's (virtual) time. iperf runs for `seconds` and for three times that, and the
    difference counts: what a run costs once (the random payload, the parameters) is not a cost per byte.
    uiperf3 knows 10 s only: it is cut short, and has no such cost that would show.
    """
    elf = firmware.build(getattr(board, "name", "qemu-an386"), freeze=[uiperf3_source()])
    with Counter(board, {**options, "firmware": str(elf)}) as counter:
        machine = counter.board
        assert isinstance(machine, QemuBoard)
        host = machine.peer_host
        counter.link.exec(_CODE, 30)

        def run(call: str, cut_s: float | None) -> tuple[int, int]:
            server = _server()
            timer = threading.Timer(cut_s or 0, lambda: os.write(machine._hold, b"\x03"))
            try:
                if cut_s:
                    timer.start()
                said = counter.link.exec(f"client_run(lambda: {call})", 240)
            finally:
                timer.cancel()
                server.terminate()
                server.wait(10)
            words = next(line for line in said.splitlines() if line.startswith("RESULT")).split()
            return int(words[2]), int(words[1])

        counter.link.exec("import iperf, uiperf3", 30)
        begin = time.monotonic()
        short, long = (
            run(f"iperf.client({host!r}, port={UIPERF3_PORT}, time={t}, length={_LENGTH})", None)
            for t in (seconds, 3 * seconds)
        )
        insn, payload = run(f"uiperf3.client({host!r})", max(time.monotonic() - begin, 5.0))
    ours = (long[0] - short[0]) / (long[1] - short[1])
    theirs = insn / payload
    return {"iperf": round(ours, 3), "uiperf3": round(theirs, 3), "ratio": round(ours / theirs, 3)}
