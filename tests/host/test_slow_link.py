"""Slow links (field case P13): a run ends with a result or a clean error, never by hanging."""

import json
import os
import socket
import subprocess
import sys
import threading
import time

import pytest
from upyperf import peers, plan

UPYPERF = [sys.executable, "-c", "import sys; from upyperf.cli import main; sys.exit(main())"]


class Relay:
    """Passes TCP on to a port at `rate` bit/s for all connections together, with small buffers."""

    def __init__(self, target, rate):
        self.target, self.rate = target, rate
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        self.lock = threading.Lock()
        self.open = [self.server]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near, _ = self.server.accept()
                far = socket.create_connection(("127.0.0.1", self.target), timeout=10)
            except OSError:
                return
            self.open += [near, far]
            for a, b in ((near, far), (far, near)):
                a.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                threading.Thread(target=self.pump, args=(a, b), daemon=True).start()

    def pump(self, source, sink):
        try:
            while data := source.recv(1250):
                if len(data) > 100:  # the control connection's bytes are few
                    with self.lock:
                        time.sleep(len(data) * 8 / self.rate)
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self):
        for s in self.open:
            s.close()


@pytest.mark.parametrize(("version", "words"), [(3, []), (3, ["-R"]), (2, [])])
def test_run_over_a_slow_link_ends(tmp_path, version, words):
    test = plan.make(version, "tcp", "send", "socket", {"time": 2.0})
    served = peers.serve(test, "127.0.0.1", 1.0, lambda *_: None)
    relay = Relay(served.port, 390_000)
    try:
        with served.peer:
            done = subprocess.run(
                [*UPYPERF, "run", "unix", "--iperf", str(version), "-t", "2", "-l", "1000", "-w", "4K", "-J",
                 "-c", f"127.0.0.1:{relay.port}", *words],
                cwd=tmp_path, capture_output=True, text=True, timeout=110, env=dict(os.environ),
            )  # fmt: skip
    finally:
        relay.close()
    run = json.loads(done.stdout)["runs"][0]
    assert "Traceback" not in done.stderr
    assert run["board"] is not None, run
    total = run["board"]["sent"] or run["board"]["received"]
    assert total["bytes"] > 0
    if run["status"] != "ok":
        assert run["error"]["kind"] in ("closed", "timeout", "peer"), run["error"]
        assert done.returncode == 5
