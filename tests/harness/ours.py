"""Runs our package `iperf` in a process of its own, under CPython or MicroPython, against real programs."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from harness import device, programs

FIRMWARE = Path(__file__).resolve().parents[2] / "firmware"
INTERPRETERS = ("micropython", "cpython")

# One line of JSON per event; "result" and "error" are the ends.
_PROGRAM = """
import sys, json
sys.path.insert(0, %(firmware)r)
import iperf
from iperf.errors import IperfError
kw = json.loads(%(options)r)
def say(k, d):
    d = dict(d)
    d["k"] = k
    print(json.dumps(d))
def event(kind, d):
    say(kind, {"result": d.to_dict(), "text": d.text()} if kind == "test" else d)
try:
    r = getattr(iperf, %(role)r)(on_event=event, **kw)
    if isinstance(r, list):
        say("result", {"tests": len(r)})
    else:
        say("result", {"result": r.to_dict(), "text": r.text()})
except IperfError as e:
    r = getattr(e, "result", None)
    r = r[-1] if isinstance(r, list) and r else r
    say("error-end", {"kind": e.kind, "text": e.text, "result": r.to_dict() if r else None})
"""


def _command(interpreter: str, role: str, options: dict[str, Any]) -> list[str]:
    program = _PROGRAM % {"firmware": str(FIRMWARE), "options": json.dumps(options), "role": role}
    # -u: CPython keeps back what goes to a file, and the tests wait for events.
    exe = [sys.executable, "-u"] if interpreter == "cpython" else [device.micropython()]
    return [*exe, "-c", program]


@dataclass
class Outcome:
    """What a client of ours printed: `result` (None when it failed early), `error` (kind, text) or None."""

    result: dict[str, Any] | None
    error: tuple[str, str] | None
    events: list[dict[str, Any]]
    text: str = ""

    @property
    def ok(self) -> dict[str, Any]:
        """The result; fails the test when there was an error."""
        assert self.error is None, f"{self.error}"
        assert self.result is not None
        return self.result


def parse(output: str) -> Outcome:
    """The outcome in the JSON lines of the program above."""
    events = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    assert events, f"nothing but: {output}"
    last = events[-1]
    if last["k"] == "error-end":
        return Outcome(last["result"], (last["kind"], last["text"]), events)
    assert last["k"] == "result", output
    return Outcome(last.get("result"), None, events, last.get("text", ""))


def client(interpreter: str, port: int, *, host: str = programs.LOOPBACK, timeout_s: float = 60,
           **options: Any) -> Outcome:  # fmt: skip
    """One run of `iperf.client`; the process is ended after `timeout_s`."""
    done = subprocess.run(
        _command(interpreter, "client", {"host": host, "port": port, **options}),
        capture_output=True, text=True, timeout=timeout_s, stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return parse(done.stdout)


@dataclass
class OurServer:
    """`iperf.server` in a process."""

    port: int
    process: subprocess.Popen[bytes]
    log: IO[bytes]

    def output(self) -> str:
        return Path(self.log.name).read_text(errors="replace")

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.output().splitlines() if line.startswith("{")]

    def tests(self) -> list[dict[str, Any]]:
        """The results of the tests served so far."""
        return [e for e in self.events() if e["k"] == "test"]

    def wait_for(self, kind: str, count: int = 1, timeout_s: float = 15) -> dict[str, Any]:
        """The `count`-th event of this kind, waited for."""
        deadline = time.monotonic() + timeout_s
        while True:
            got = [e for e in self.events() if e["k"] == kind]
            if len(got) >= count:
                return got[count - 1]
            waiting = time.monotonic() < deadline and self.process.poll() is None
            assert waiting, f"no {kind!r} number {count}:\n{self.output()}"
            time.sleep(0.05)

    def stop(self) -> str:
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(5)
        return self.output()


@contextmanager
def server(interpreter: str, **options: Any) -> Iterator[OurServer]:
    """`iperf.server` at a free port of loopback."""
    port = programs.free_port()
    with tempfile.NamedTemporaryFile(prefix="ours-", suffix=".log") as log:
        process = subprocess.Popen(
            _command(interpreter, "server", {"port": port, **options}),
            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
        )  # fmt: skip
        ours = OurServer(port, process, log)
        try:
            udp = options.get("version") == 2 and options.get("udp")
            deadline = time.monotonic() + 15
            while not programs.is_bound(port, udp=bool(udp)):
                assert process.poll() is None, f"it does not listen:\n{ours.output()}"
                assert time.monotonic() < deadline, f"it does not listen:\n{ours.output()}"
                time.sleep(0.02)
            yield ours
        finally:
            ours.stop()
            assert "Traceback" not in ours.output(), ours.output()
