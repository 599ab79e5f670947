"""The programs that are compared, each as one function: job in, bytes per second or datagrams per
second out. Every run has its own iperf3 server, which serves one test and is the judge of what arrived
where a contender sends; where a contender receives, its own count is taken."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path

from upyperf import deploy
from upyperf.errors import UpyperfError
from upyperf.virtual import unix

HOST = "127.0.0.1"
UDP_LENGTH = 1458
CACHE = Path(__file__).resolve().parents[2] / ".cache/benchmark"
MARK = "RESULT "

# uiperf3 0.1.2 as it ships, but for: the port (it knows only 5201), the one line that makes it run here
# (poll() of this MicroPython returns the socket itself, not its number), and its figures as JSON.
UIPERF3 = """
import json, sys, socket
import uiperf3

class Net:
    def __getattr__(self, name):
        return getattr(socket, name)
    def getaddrinfo(self, host, port):
        return socket.getaddrinfo(host, {port})

uiperf3.socket = Net()
uiperf3.pollable_is_sock = lambda pollable, sock: sock is not None and pollable[0] is sock
stop = uiperf3.Stats.stop
def report(self):
    stop(self)
    us = uiperf3.ticks_diff(self.t3, self.t0)
    print({mark!r} + json.dumps({{"bytes": self.nb0, "us": us}}))
uiperf3.Stats.stop = report
uiperf3.client({host!r}, udp={udp}, reverse={reverse}, bandwidth={bandwidth})
"""
# Its UDP rate defaults to 10 Mibit/s; this one puts a microsecond between datagrams, which it never keeps.
UIPERF3_BANDWIDTH = 10_000_000_000

OURS = """
import json
import iperf
r = iperf.client({host!r}, port={port}, time={time}, udp={udp}, reverse={reverse}, **{extra!r})
print({mark!r} + json.dumps(r.received or r.sent))
"""


@dataclass(frozen=True)
class Job:
    """What one run measures."""

    udp: bool
    reverse: bool

    @classmethod
    def of(cls, case: str) -> Job:
        """From a name such as "udp-receive" (the direction is the contender's)."""
        return cls(udp=case.startswith("udp"), reverse=case.endswith("receive"))

    def value(self, size: float, seconds: float) -> float:
        """bit/s for TCP, datagrams/s for UDP."""
        return size / UDP_LENGTH / seconds if self.udp else size * 8 / seconds


def iperf3() -> str:
    """The machine's iperf3 (raises UpyperfError when there is none)."""
    found = shutil.which("iperf3")
    if not found:
        raise UpyperfError("config", "no iperf3 here: make setup says how to install it")
    return found


@contextmanager
def server(lifetime_s: float) -> Iterator[tuple[int, Path]]:
    """An iperf3 server for one test: its port, and the file that its JSON goes to."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port = probe.getsockname()[1]
    CACHE.mkdir(parents=True, exist_ok=True)
    log = CACHE / f"server-{os.getpid()}-{port}.json"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [iperf3(), "-s", "-1", "-J", "-p", str(port)], stdin=subprocess.DEVNULL, stdout=out
        )
    try:
        time.sleep(0.3)
        yield port, log
        process.wait(lifetime_s)
    except subprocess.TimeoutExpired:
        raise UpyperfError("timeout", "the iperf3 server never finished its test") from None
    finally:
        process.kill()
        process.wait()
        log.unlink(missing_ok=True)


def _run(command: list[str], lifetime_s: float, cwd: Path | None = None) -> str:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=lifetime_s, cwd=cwd, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        raise UpyperfError("timeout", f"{command[0]} did not finish in {lifetime_s:g} s") from None
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip() or "no output").splitlines()[-1]
        raise UpyperfError("peer", f"{Path(command[0]).name} failed: {last}")
    return done.stdout


def _judged(log: Path, job: Job) -> float:
    """What the server says it received (TCP: bytes; UDP: all datagrams that were sent, by their numbers)."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            end = json.loads(log.read_text())["end"]
            break
        except (ValueError, KeyError):
            time.sleep(0.05)
    else:
        raise UpyperfError("protocol", f"the iperf3 server gave no result: {log.read_text()[-200:]!r}")
    if job.udp:
        return float(end["sum"]["packets"] / end["sum"]["seconds"])
    return float(end["sum_received"]["bytes"] * 8 / end["sum_received"]["seconds"])


@dataclass(frozen=True)
class Contender:
    """One program; `name` stands in the tables."""

    name: str
    seconds: float

    def measure(self, job: Job) -> float:
        """One run (raises UpyperfError)."""
        with server(self.seconds + 10) as (port, log):
            own = self.client(job, port)
            if job.reverse:
                return own
            return _judged(log, job)

    def client(self, job: Job, port: int) -> float:
        """Run the client; what it received, in the job's unit (of no meaning where it sends)."""
        raise NotImplementedError


class CClient(Contender):
    """The machine's iperf3, with its own default length for TCP."""

    def client(self, job: Job, port: int) -> float:
        words = ["-c", HOST, "-p", str(port), "-t", str(self.seconds), "-J"]
        words += ["-u", "-b", "0", "-l", str(UDP_LENGTH)] if job.udp else []
        words += ["-R"] if job.reverse else []
        end = json.loads(_run([iperf3(), *words], self.seconds + 20))["end"]
        received = end["sum_received"]
        return job.value(received["bytes"], received["seconds"])


@dataclass(frozen=True)
class OnMicroPython(Contender):
    """Code on MicroPython's unix port that prints bytes and microseconds after MARK."""

    package: Path
    script: str

    def client(self, job: Job, port: int) -> float:
        extra = {"bandwidth": 0, "length": UDP_LENGTH} if job.udp else {}
        code = self.script.format(
            host=HOST, port=port, time=self.seconds, udp=job.udp, reverse=job.reverse, mark=MARK, extra=extra,
            bandwidth=UIPERF3_BANDWIDTH,
        )  # fmt: skip
        printed = _run([unix.find_micropython(), "-c", code], self.seconds + 20, cwd=self.package)
        found = re.search(rf"^{MARK}(.*)$", printed, re.M)
        if not found:
            raise UpyperfError("protocol", f"{self.name} gave no result: {printed[-200:]!r}")
        figures = json.loads(found[1])
        return job.value(figures["bytes"], figures["us"] / 1e6)


@cache
def compiled(native: bool) -> Path:
    """A folder with the package as the board would get it, hot files native or all bytecode."""
    mpy = int(_run([unix.find_micropython(), "-c", "import sys; print(sys.implementation._mpy)"], 10))
    target = deploy.Target.of(mpy)
    if target is None or target.arch is None:
        raise UpyperfError("unsupported", "this MicroPython loads no native code")
    folder = CACHE / ("native" if native else "bytecode")
    shutil.rmtree(folder, ignore_errors=True)
    for source in deploy.sources(["socket"]):
        file = (folder / source.path).with_suffix(".mpy")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(deploy.compile_file(source, target, native and source.native, CACHE / "mpy"))
    return folder


def everyone(seconds: float) -> list[Contender]:
    """The contenders, the C client first."""
    uiperf3 = Path(str(metadata.distribution("uiperf3").locate_file(""))).resolve()
    return [
        CClient("C iperf3", seconds),
        OnMicroPython("upyperf, native", seconds, compiled(True), OURS),
        OnMicroPython("upyperf, bytecode", seconds, compiled(False), OURS),
        OnMicroPython("uiperf3", 10, uiperf3, UIPERF3),
    ]


_VERSION = "import sys; print(*[x for x in sys.implementation.version if x != ''], sep='.')"


def versions() -> dict[str, str]:
    """What ran, for the document."""
    processor = platform.processor() or platform.machine()
    with open("/proc/cpuinfo") as file:
        found = re.search(r"^model name\s*: (.*)$", file.read(), re.M)
    return {
        "iperf3": _run([iperf3(), "-v"], 10).split()[1],
        "micropython": _run([unix.find_micropython(), "-c", _VERSION], 10).strip(),
        "uiperf3": metadata.version("uiperf3"),
        "upyperf": metadata.version("upyperf"),
        "python": sys.version.split()[0],
        "kernel": platform.release(),
        "load average at the end": f"{os.getloadavg()[1]:.1f} (5 minutes; the two ends alone make about 2)",
        "processor": f"{found[1] if found else processor}, {os.cpu_count()} cores",
    }
