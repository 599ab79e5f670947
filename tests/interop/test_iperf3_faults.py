"""What goes wrong between an iPerf 3 client and its server (field cases P1 to P17): each is one clear
error of the right kind within its time, what was measured is kept, and the next run works."""

from __future__ import annotations

import contextlib
import json
import random
import signal
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from harness import ours, programs
from peers import Peer

COOKIE = b"abcdefghijklmnopqrstuvwxyz234567abcd\0"
MP = "micropython"


@pytest.fixture(params=ours.INTERPRETERS)
def interpreter(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def newest(peers: list[Peer]) -> Peer:
    return [p for p in peers if p.program == "iperf3"][-1]


# -- a server that plays a script


def recvn(s: socket.socket, n: int) -> bytes:
    data = b""
    while len(data) < n:
        more = s.recv(n - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def params_of(s: socket.socket) -> dict[str, Any]:
    (n,) = struct.unpack(">I", recvn(s, 4))
    got: dict[str, Any] = json.loads(recvn(s, n))
    return got


def framed(obj: Any) -> bytes:
    text = json.dumps(obj).encode()
    return struct.pack(">I", len(text)) + text


@contextmanager
def script(play: Callable[[socket.socket, socket.socket], None]) -> Iterator[int]:
    """A TCP server on loopback that plays `play(listener, connection)` once; gives its port."""
    listener = socket.create_server((programs.LOOPBACK, 0))
    listener.settimeout(20)

    def run() -> None:
        with contextlib.suppress(OSError, EOFError):
            c, _ = listener.accept()
            c.settimeout(20)
            with c:
                play(listener, c)

    t = threading.Thread(target=run, daemon=True)
    t.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.close()
        t.join(25)


def run_client(interpreter: str, port: int, **kw: Any) -> ours.Outcome:
    kw.setdefault("time", 1)
    kw.setdefault("busy_retries", 0)
    started = time.monotonic()
    outcome = ours.client(interpreter, port, **kw)
    assert time.monotonic() - started < 40
    return outcome


def error_of(outcome: ours.Outcome) -> tuple[str, str]:
    assert outcome.error is not None, outcome.result
    kind, text = outcome.error
    assert "\n" not in text
    return kind, text


def test_busy_byte_then_reset(interpreter: str) -> None:
    # 3.12 answers the cookie with one byte 0xFF and closes; unread data make that a reset
    def play(listener: socket.socket, c: socket.socket) -> None:
        c.sendall(b"\xff")
        time.sleep(0.05)
        c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    with script(play) as port:
        assert error_of(run_client(interpreter, port))[0] == "busy"


def test_busy_server_of_the_real_program(peers: list[Peer]) -> None:
    for peer in [p for p in peers if p.program == "iperf3"]:
        with programs.server(peer, "--forceflush") as real:
            first = subprocess.Popen(
                [str(peer.path), "-c", programs.LOOPBACK, "-p", str(real.port), "-t", "4", "-b", "1M"],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            real.expect("Accepted connection")
            time.sleep(0.3)
            kind, text = error_of(run_client(MP, real.port))
            assert kind == "busy"
            assert "try again" in text
            # with its retries it gets its turn
            again = run_client(MP, real.port, busy_retries=5)
            assert again.error is None
            first.wait(10)


def test_server_that_is_silent_after_the_greeting(interpreter: str) -> None:
    with script(lambda listener, c: time.sleep(19)) as port:
        kind, text = error_of(run_client(interpreter, port))
        assert kind == "wrong-peer"
        assert "iPerf 2" in text


def test_server_that_closes_at_the_greeting() -> None:
    with script(lambda listener, c: None) as port:
        assert error_of(run_client(MP, port))[0] == "wrong-peer"


def test_a_server_between_two_tests_is_asked_again(interpreter: str, peers: list[Peer]) -> None:
    # iperf3 closes its listener after each test: a client that was accepted before is closed unread
    with programs.server(newest(peers)) as real, socket.create_server((programs.LOOPBACK, 0)) as front:
        front.settimeout(20)

        def play() -> None:
            with contextlib.suppress(OSError):
                front.accept()[0].close()
                while True:
                    a, _ = front.accept()
                    b = socket.create_connection((programs.LOOPBACK, real.port))
                    for pair in ((a, b), (b, a)):
                        threading.Thread(target=pump, args=pair, daemon=True).start()

        def pump(a: socket.socket, b: socket.socket) -> None:
            with contextlib.suppress(OSError):
                while data := a.recv(65536):
                    b.sendall(data)
                b.shutdown(socket.SHUT_WR)

        threading.Thread(target=play, daemon=True).start()
        port = front.getsockname()[1]
        assert run_client(interpreter, port, num_bytes=100000, time=None, busy_retries=1).error is None


def test_an_iperf2_server_is_named(iperf2_peer: Peer) -> None:
    with programs.server(iperf2_peer) as real:
        kind, text = error_of(run_client(MP, real.port))
    assert kind == "wrong-peer"
    assert "version 2" in text


def test_parameters_rejected_by_closing(interpreter: str) -> None:
    def play(listener: socket.socket, c: socket.socket) -> None:
        recvn(c, 37)
        c.sendall(b"\x09")
        params_of(c)

    with script(play) as port:
        kind, text = error_of(run_client(interpreter, port))
    assert kind == "peer"
    assert "parameters" in text


@pytest.mark.parametrize("frame", [b"\xfe\0\0\0\x25\0\0\0\0", b"\xfe\0\0\0\x25"])
def test_server_error_with_its_text(frame: bytes) -> None:
    def play(listener: socket.socket, c: socket.socket) -> None:
        recvn(c, 37)
        c.sendall(b"\x09")
        params_of(c)
        c.sendall(frame)
        time.sleep(0.2)

    with script(play) as port:
        kind, text = error_of(run_client(MP, port))
    assert kind == "peer"
    assert "37" in text
    assert "longer" in text


def session(listener: socket.socket, c: socket.socket, end: Callable[[socket.socket], None]) -> None:
    """A whole TCP test up to the results, then `end(control)`."""
    cookie = recvn(c, 37)
    c.sendall(b"\x09")
    params_of(c)
    c.sendall(b"\x0a")
    data, _ = listener.accept()
    with data:
        assert recvn(data, 37) == cookie
        c.sendall(b"\x01\x02")
        data.settimeout(0.2)
        c.setblocking(False)
        while True:
            with contextlib.suppress(TimeoutError):
                data.recv(1 << 20)
            with contextlib.suppress(BlockingIOError):
                if c.recv(1):
                    break
        c.settimeout(20)
        end(c)
        time.sleep(0.1)


GOOD = {"cpu_util_total": 1, "cpu_util_user": 1, "cpu_util_system": 0, "sender_has_retransmits": -1,
        "streams": [{"id": 1, "bytes": 1000, "retransmits": 18446744073709551615, "jitter": 0, "errors": 0,
                     "packets": 0, "start_time": 0, "end_time": 1.0}]}  # fmt: skip


def results_then(answer: bytes, rest: bytes = b"") -> Callable[[socket.socket, socket.socket], None]:
    def end(c: socket.socket) -> None:
        c.sendall(b"\x0d")
        params_of(c)
        c.sendall(answer)
        c.sendall(rest)

    return lambda listener, c: session(listener, c, end)


def test_minus_one_as_two_to_the_64(interpreter: str) -> None:
    with script(results_then(framed(GOOD), b"\x0e")) as port:
        result = run_client(interpreter, port, bandwidth="1M").ok
    assert result["peer_received"]["bytes"] == 1000
    assert result["streams"][0]["peer"]["retransmits"] == -1


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (b"\xfe\0\0\0\x75\0\0\0\x02", "peer"),  # an error frame where a length was due
        (struct.pack(">I", 20) + b"this is no JSON text", "protocol"),
        (framed([1, 2, 3]), "protocol"),
        (framed({**GOOD, "streams": []}), "protocol"),
        (framed({**GOOD, "streams": [{**GOOD["streams"][0], "id": 2}]}), "protocol"),  # type: ignore[index]
        (b"\x7f\xff\xff\xff", "protocol"),
        (b"", "closed"),
    ],
    ids=["error-frame", "no-json", "list", "no-streams", "wrong-id", "too-long", "eof"],
)
def test_bad_results_keep_what_was_measured(answer: bytes, kind: str) -> None:
    with script(results_then(answer)) as port:
        outcome = run_client(MP, port, bandwidth="1M")
    assert error_of(outcome)[0] == kind
    assert outcome.result is not None
    assert outcome.result["sent"]["bytes"] > 0
    assert outcome.result["error"]["kind"] == kind


def test_server_stopped_in_the_middle(peers: list[Peer]) -> None:
    for peer in [p for p in peers if p.program == "iperf3"]:
        for how in (signal.SIGINT, signal.SIGTERM):
            with programs.server(peer, "--forceflush") as real:
                threading.Timer(1.2, real.stop, (how,)).start()
                outcome = ours.client(MP, real.port, time=5, bandwidth="5M")
            kind, text = error_of(outcome)
            assert kind in ("closed", "refused"), text
            assert outcome.result is not None
            assert outcome.result["sent"]["bytes"] > 100000
            assert outcome.result["intervals"]


def test_refused_timeout_and_no_route_are_told_apart(interpreter: str) -> None:
    kind, text = error_of(run_client(interpreter, programs.free_port()))
    assert kind == "refused"
    assert "no server" in text
    # a full backlog drops the SYN: nobody answers
    with socket.socket() as full:
        full.bind((programs.LOOPBACK, 0))
        full.listen(0)
        port = full.getsockname()[1]
        fill = []
        for _ in range(4):
            s = socket.socket()
            s.setblocking(False)
            s.connect_ex((programs.LOOPBACK, port))
            fill.append(s)
        time.sleep(0.2)
        kind, text = error_of(run_client(interpreter, port, connect_timeout=1))
        for s in fill:
            s.close()
    assert kind == "timeout"
    assert "firewall" in text
    # a namespace with nothing but loopback down has no route at all
    command = ours._command(interpreter, "client", {"host": "198.51.100.1", "connect_timeout": 2})
    done = subprocess.run(
        ["unshare", "-rn", *command], capture_output=True, text=True, timeout=30, check=False
    )
    kind, text = error_of(ours.parse(done.stdout))
    assert kind == "unreachable"
    assert "route" in text


# -- UDP greetings


class Proxy:
    """TCP passes; of the UDP datagrams to or from the server the first `drop` of each direction are lost."""

    def __init__(self, port: int, drop_to: int, drop_from: int) -> None:
        self.target = (programs.LOOPBACK, port)
        self.tcp = socket.create_server((programs.LOOPBACK, 0))
        self.port = self.tcp.getsockname()[1]
        self.udp = socket.socket(type=socket.SOCK_DGRAM)
        self.udp.bind((programs.LOOPBACK, self.port))
        self.drop_to, self.drop_from = drop_to, drop_from
        self.open = True
        for work in (self._accept, self._datagrams):
            threading.Thread(target=work, daemon=True).start()

    def _pump(self, a: socket.socket, b: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := a.recv(1 << 16):
                b.sendall(data)
        with contextlib.suppress(OSError):
            b.shutdown(socket.SHUT_WR)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while self.open:
                a, _ = self.tcp.accept()
                b = socket.create_connection(self.target)
                for pair in ((a, b), (b, a)):
                    threading.Thread(target=self._pump, args=pair, daemon=True).start()

    def _datagrams(self) -> None:
        back = socket.socket(type=socket.SOCK_DGRAM)
        back.connect(self.target)
        client: list[Any] = []

        def answers() -> None:
            with contextlib.suppress(OSError):
                while self.open:
                    data = back.recv(1 << 16)
                    if self.drop_from > 0:
                        self.drop_from -= 1
                    elif client:
                        self.udp.sendto(data, client[0])

        threading.Thread(target=answers, daemon=True).start()
        with contextlib.suppress(OSError):
            while self.open:
                data, address = self.udp.recvfrom(1 << 16)
                client[:] = [address]
                if self.drop_to > 0:
                    self.drop_to -= 1
                else:
                    with contextlib.suppress(ConnectionError):
                        back.send(data)

    def close(self) -> None:
        self.open = False
        self.tcp.close()
        self.udp.close()


@contextmanager
def proxy(port: int, drop_to: int = 0, drop_from: int = 0) -> Iterator[Proxy]:
    p = Proxy(port, drop_to, drop_from)
    try:
        yield p
    finally:
        p.close()


@pytest.mark.parametrize("lost", [1, 2])
def test_lost_udp_greeting_is_repeated(iperf3_peer: Peer, lost: int) -> None:
    with programs.server(iperf3_peer, "-1") as real, proxy(real.port, drop_to=lost) as p:
        result = run_client(MP, p.port, udp=True, bandwidth="1M").ok
    assert result["sent"]["packets"] > 50
    assert result["peer_received"]["lost"] == 0


def test_lost_answer_to_the_udp_greeting(iperf3_peer: Peer) -> None:
    with programs.server(iperf3_peer, "-1") as real, proxy(real.port, drop_from=1) as p:
        result = run_client(MP, p.port, udp=True, bandwidth="1M").ok
    assert result["peer_received"]["packets"] > 50


def test_udp_greeting_never_answered(interpreter: str) -> None:
    def play(listener: socket.socket, c: socket.socket) -> None:
        recvn(c, 37)
        c.sendall(b"\x09")
        params_of(c)
        with socket.socket(type=socket.SOCK_DGRAM) as mute:
            mute.bind(listener.getsockname())
            c.sendall(b"\x0a")
            c.recv(1)

    with script(play) as port:
        kind, text = error_of(run_client(interpreter, port, udp=True))
    assert kind == "udp-handshake"
    assert "UDP port" in text


# -- our server and its clients


def hello(port: int) -> socket.socket:
    s = socket.create_connection((programs.LOOPBACK, port), timeout=10)
    s.sendall(COOKIE)
    return s


silent: list[socket.socket] = []


def leave_in(state: str, port: int) -> socket.socket:
    """A client that got as far as `state`; the caller closes or keeps it."""
    if state == "connected":
        return socket.create_connection((programs.LOOPBACK, port), timeout=10)
    s = hello(port)
    if state == "cookie":
        return s
    assert s.recv(1) == b"\x09"
    if state == "half-params":
        s.sendall(struct.pack(">I", 400) + b"{")
        return s
    s.sendall(framed({"tcp": True, "time": 1, "len": 4096}))
    assert s.recv(1) == b"\x0a"
    if state == "params":
        return s
    d = hello(port)
    assert recvn(s, 2) == b"\x01\x02"
    d.sendall(bytes(4096))
    if state == "silent":
        silent.append(d)
        return s
    if state == "data":
        d.close()
        return s
    s.sendall(b"\x04")
    assert s.recv(1) == b"\x0d"
    d.close()
    return s


@pytest.mark.parametrize("state", ["connected", "cookie", "half-params", "params", "data", "results"])
def test_client_killed_in_each_state(interpreter: str, state: str, peers: list[Peer]) -> None:
    with ours.server(interpreter) as server:
        leave_in(state, server.port).close()
        done = programs.client(newest(peers), server.port, "-n", "100K")
        assert done.returncode == 0, done.stdout + done.stderr + server.output()


def test_client_that_falls_silent(peers: list[Peer]) -> None:
    with ours.server(MP, rcv_timeout=1) as server:
        quiet = leave_in("silent", server.port)
        server.wait_for("running")
        busy = hello(server.port)
        assert busy.recv(1) == b"\xff"
        server.wait_for("error", timeout_s=25)
        done = programs.client(newest(peers), server.port, "-n", "100K")
        assert done.returncode == 0, done.stdout + done.stderr
        quiet.close()
        silent.pop().close()


def test_a_client_whose_streams_ended_still_makes_the_server_busy() -> None:
    with ours.server(MP) as server:
        first = leave_in("data", server.port)
        second = hello(server.port)
        assert second.recv(1) == b"\xff"
        first.close()


def test_length_and_parameters_in_two_writes() -> None:
    with ours.server(MP) as server:
        s = hello(server.port)
        assert s.recv(1) == b"\x09"
        text = json.dumps({"tcp": True, "time": 1}).encode()
        s.sendall(struct.pack(">I", len(text)))
        time.sleep(3)
        s.sendall(text)
        assert s.recv(1) == b"\x0a"
        s.close()


@pytest.mark.parametrize(
    "params",
    [{"tcp": True, "parallel": 1000}, {"sctp": True}, {"tcp": True, "len": -5}, {"udp": True, "len": 3},
     {"tcp": True, "time": "x"}, {"udp": True, "len": 100000}],
)  # fmt: skip
def test_parameters_that_make_no_sense_are_refused_by_number(params: dict[str, Any]) -> None:
    with ours.server(MP) as server:
        s = hello(server.port)
        assert s.recv(1) == b"\x09"
        s.sendall(framed(params))
        frame = recvn(s, 9)
        assert frame[0] == 0xFE
        assert struct.unpack(">i", frame[1:5])[0] > 0
        assert server.wait_for("error")["kind"] == "unsupported"
        s.close()


def test_unknown_keys_and_types_are_tolerated() -> None:
    with ours.server(MP) as server:
        s = hello(server.port)
        assert s.recv(1) == b"\x09"
        s.sendall(framed({"tcp": 1, "gso": 0, "mptcp": True, "new_in_4_0": {"a": [1]}}))
        assert s.recv(1) == b"\x0a"
        s.close()


def test_hostile_bytes_do_not_end_the_server(peers: list[Peer]) -> None:
    rnd = random.Random(20261130)
    with ours.server(MP) as server:
        for k in range(25):
            s = socket.create_connection((programs.LOOPBACK, server.port), timeout=10)
            if k % 3:
                s.sendall(COOKIE)
            with contextlib.suppress(OSError):
                s.sendall(rnd.randbytes(rnd.randrange(1, 200)))
                if k % 2:
                    s.shutdown(socket.SHUT_WR)
                    s.settimeout(0.2)
                    s.recv(100)
            s.close()
        done = programs.client(newest(peers), server.port, "-n", "100K")
        assert done.returncode == 0, done.stdout + done.stderr + server.output()


def test_an_iperf2_client_is_named(iperf2_peer: Peer, peers: list[Peer]) -> None:
    with ours.server(MP) as server:
        programs.client(iperf2_peer, server.port, "-t", "1", lifetime_s=8)
        errors = [e for e in server.events() if e["k"] == "error"]
        assert errors
        assert errors[0]["kind"] in ("wrong-peer", "closed")
        done = programs.client(newest(peers), server.port, "-n", "100K")
        assert done.returncode == 0, done.stdout + done.stderr


def test_interrupted_client_keeps_its_figures_and_frees_the_server(
    interpreter: str, iperf3_peer: Peer
) -> None:
    with programs.server(iperf3_peer, "--forceflush") as real:
        process = subprocess.Popen(
            ours._command(interpreter, "client", {"host": programs.LOOPBACK, "port": real.port, "time": 10,
                                                  "bandwidth": "5M"}),
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        real.expect("Accepted connection")
        time.sleep(1.5)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=10)
        outcome = ours.parse(out)
        assert error_of(outcome)[0] == "interrupted"
        assert outcome.result is not None
        assert outcome.result["sent"]["bytes"] > 100000
        done = programs.client(iperf3_peer, real.port, "-n", "100K")
        assert done.returncode == 0, done.stdout + done.stderr


def test_second_server_on_the_port_says_so() -> None:
    with ours.server(MP) as server:
        done = subprocess.run(
            ours._command(MP, "server", {"port": server.port}),
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
        kind, text = error_of(ours.parse(done.stdout))
    assert kind == "usage"
    assert "in use" in text


def test_server_again_at_once_on_the_same_port(interpreter: str, peers: list[Peer]) -> None:
    # EADDRINUSE of a port left in TIME_WAIT (micropython#3739)
    with ours.server(interpreter, one_off=True) as server:
        assert programs.client(newest(peers), server.port, "-n", "100K").returncode == 0
        server.process.wait(15)
        command = ours._command(interpreter, "server", {"port": server.port, "idle_timeout": 1})
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
        assert ours.parse(done.stdout).error is None


def test_slow_link(peers: list[Peer], tmp_path: Path) -> None:
    # 100 kbit/s: less than a buffer a second; the run must end with a result or a clean word (P13)
    real_peer = newest(peers)
    with programs.server(real_peer, "-1") as real:
        slow = socket.create_server((programs.LOOPBACK, 0))

        def pump(a: socket.socket, b: socket.socket) -> None:
            with contextlib.suppress(OSError):
                while data := a.recv(1250):
                    b.sendall(data)
                    time.sleep(len(data) * 8 / 100e3)
                b.shutdown(socket.SHUT_WR)

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    a, _ = slow.accept()
                    b = socket.create_connection((programs.LOOPBACK, real.port))
                    for pair in ((a, b), (b, a)):
                        threading.Thread(target=pump, args=pair, daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        outcome = ours.client(MP, slow.getsockname()[1], time=3, length=1000, window="4K", timeout_s=60)
        slow.close()
    assert outcome.result is not None
    assert outcome.result["sent"]["bytes"] > 0
