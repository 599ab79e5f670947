"""Whole runs over sockets that misbehave as lwIP's do (field cases M1, M2, M3, M12), against iperf3."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from harness import device, ours, programs
from peers import available

# Each data write in turn: would block, ENOBUFS, ENOMEM, half of the block; once it blocks for 1.5 s.
_SHIM = """
import sys, json, time
sys.path.insert(0, %(firmware)r)
import iperf.layers.socket as layer
real = layer.Sock
calls = [0]
class Shim(real):
    def __init__(self, s, remote=None):
        super().__init__(s, remote)
        send = self.write
        def write(buf):
            if len(buf) < 1000:  # the control connection, the greeting
                return send(buf)
            calls[0] += 1
            k = calls[0]
            if k == 301:
                time.sleep(1.5)
            elif k %% 50 == 10:
                return None
            elif k %% 50 == 20:
                raise OSError(105)
            elif k %% 50 == 30:
                raise OSError(12)
            elif k %% 50 == 40 and %(partial)r:
                return send(memoryview(buf)[:len(buf) // 2])
            return send(buf)
        self.write = write
layer.Sock = Shim
"""
_LEAK = """
import sys, json, gc, os
sys.path.insert(0, %(firmware)r)
import iperf
kw = json.loads(%(options)r)
def fds():
    return len(os.listdir("/proc/self/fd"))
def used():
    gc.collect()
    return gc.mem_alloc() if hasattr(gc, "mem_alloc") else 0
marks = []
sent = 0
for k in range(%(runs)d):
    sent += iperf.client(**kw).to_dict()["sent"]["bytes"]
    if k in (19, %(runs)d - 1):
        marks.append((fds(), used()))
print(json.dumps({"marks": marks, "sent": sent}))
"""


@pytest.fixture(params=ours.INTERPRETERS)
def interpreter(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def python(interpreter: str) -> str:
    return sys.executable if interpreter == "cpython" else device.micropython()


def newest() -> Any:
    return [p for p in available() if p.program == "iperf3"][-1]


@pytest.mark.parametrize("udp", [False, True])
def test_a_run_through_every_failure_of_send(interpreter: str, udp: bool) -> None:
    options = {"host": programs.LOOPBACK, "time": 4, "length": 1400, "udp": udp, "bandwidth": "4M"}
    with programs.server(newest()) as real:
        program = ours._command(interpreter, "client", {**options, "port": real.port})[-1]
        shim = _SHIM % {"firmware": str(ours.FIRMWARE), "partial": not udp}
        done = subprocess.run(
            [python(interpreter), "-c", shim + program], capture_output=True, text=True, timeout=60
        )
    result = ours.parse(done.stdout).ok
    sent, received = result["sent"], result["peer_received"]
    assert 4e6 <= sent["us"] <= 4.6e6
    assert sent["enomem"] >= 10
    assert sent["retries"] >= 5
    assert 1.0e6 <= sent["stall_us"] <= 1.8e6
    # the rate of the time that was left, no catching up
    want = 4e6 / 8 * (sent["us"] - sent["stall_us"]) / 1e6
    assert abs(sent["bytes"] - want) < want * 0.1, (sent, want)
    if udp:
        assert received["lost"] == 0  # what was refused has taken no number
    else:
        # what was taken is counted, not what was offered; the last block may come after the end
        assert 0 <= sent["bytes"] - received["bytes"] <= 1400


# iPerf 2's server takes 0.3 s to end a test
@pytest.mark.parametrize(("version", "runs"), [(3, 200), (2, 40)])
def test_many_runs_leak_no_socket_and_no_memory(version: int, runs: int) -> None:
    program = "iperf3" if version == 3 else "iperf"
    peer = [p for p in available() if p.program == program][-1]
    with programs.server(peer, lifetime_s=110) as real:
        options = {"host": programs.LOOPBACK, "port": real.port, "version": version, "num_bytes": 10240}
        code = _LEAK % {"firmware": str(ours.FIRMWARE), "options": json.dumps(options), "runs": runs}
        done = subprocess.run(
            [python("micropython"), "-c", code], capture_output=True, text=True, timeout=110
        )
    assert done.returncode == 0, done.stdout + done.stderr
    out = json.loads(done.stdout.splitlines()[-1])
    (fds, used), (fds_end, used_end) = out["marks"]
    assert fds_end <= fds, "sockets are left open"
    assert used_end <= used + 1024, "the heap fills from run to run"
    assert out["sent"] >= runs * 10240
