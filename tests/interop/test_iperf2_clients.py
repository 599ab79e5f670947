"""Our iPerf 2 server and every kind of client: the formats of old versions, byte by byte, boards that
know half of the protocol, and clients that break off or mean something else."""

from __future__ import annotations

import socket
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psutil
import pytest
from harness import ours, programs
from interop import iperf2_text
from peers import Peer

both = pytest.mark.parametrize("interpreter", ours.INTERPRETERS)
DIGITS = b"0123456789" * 200


@contextmanager
def tcp(port: int, first: bytes = b"") -> Iterator[socket.socket]:
    with socket.create_connection((programs.LOOPBACK, port), timeout=5) as s:
        s.sendall(first)
        yield s


@contextmanager
def udp(port: int) -> Iterator[socket.socket]:
    with socket.socket(type=socket.SOCK_DGRAM) as s:
        s.settimeout(3)
        s.connect((programs.LOOPBACK, port))
        yield s


def eof(s: socket.socket, bound_s: float = 3) -> bytes:
    """What the server sends until it closes."""
    s.settimeout(bound_s)
    got = b""
    with suppress(ConnectionResetError):
        while data := s.recv(4096):
            got += data
    return got


def v1(flags: int, amount: int, port: int = 5001, streams: int = 1) -> bytes:
    return struct.pack(">6I", flags, streams, port, 0, 0, amount & 0xFFFFFFFF)


# -- TCP: what the versions send first (iperf.md A2, A4)

ACK = struct.pack(">7I", 2, 28, 0, 0x00020001, 0x00080003, 0, 0)
FIRST = {
    "2.0.6": (v1(0, -100), b""),
    "2.0.9-t": (v1(0x70313233, -100) + bytes(12), ACK),
    "2.0.9-n": (struct.pack(">I", 0x30313233) + v1(0, 1000), b""),
    "2.0.12": (bytes(4) + DIGITS[:96], b""),
    "2.0.13": (b"\x08\0\0\0" + DIGITS[:96], b""),
    "2.1.8": (v1(0x40010078, -100) + bytes(36), ACK),
    "2.1.8-X": (v1(0x46010078, -100) + bytes(36), ACK),
    "2.2.1": (v1(0x40010080, -100) + bytes(40), ACK),
    "C": (DIGITS[:100], b""),
    "zperf": (bytes(4) + b"z" * 100, b""),
    "4567": (b"4567890123" * 10, b""),
    "zzzz": (b"z" * 100, b""),
}


@both
def test_tcp_headers_of_all_versions_are_counted(interpreter: str) -> None:
    with ours.server(interpreter, version=2) as server:
        for number, (name, (first, answer)) in enumerate(FIRST.items(), 1):
            with tcp(server.port, first) as s:
                s.sendall(DIGITS)
                s.shutdown(socket.SHUT_WR)
                assert eof(s) == answer, name
            test = server.wait_for("test", number)["result"]
            assert test["mode"] == "receive", name
            assert test["streams"][0]["bytes"] == len(first) + len(DIGITS), name
            assert test["error"] is None, name


@both
def test_it_closes_at_once_on_eof(interpreter: str) -> None:
    """The real client's clock runs until the server has closed."""
    with ours.server(interpreter, version=2) as server, tcp(server.port, bytes(1000)) as s:
        time.sleep(0.2)
        begun = time.monotonic()
        s.shutdown(socket.SHUT_WR)
        assert eof(s) == b""
        assert time.monotonic() - begun < 1


@both
def test_clients_that_say_little_or_nothing_keep_nobody_waiting(interpreter: str, iperf2_peer: Peer) -> None:
    with (
        ours.server(interpreter, version=2) as server,
        tcp(server.port),
        tcp(server.port, b"\x40"),
        tcp(server.port, b"\x40\x01\x00") as runt,
        tcp(server.port, v1(0x40010078, -100)),  # the rest of its header never comes
    ):
        with tcp(server.port):
            pass  # says nothing and goes
        begun = time.monotonic()
        done = programs.client(iperf2_peer, server.port, "-t", "0.3")
        assert done.returncode == 0, done.stderr
        assert time.monotonic() - begun < 3
        assert eof(runt, 8) == b""
        texts = [e["text"] for e in server.events() if e["k"] == "text"]
        assert any("3 bytes" in t for t in texts), texts


@both
def test_a_tcp_client_that_goes_silent_is_let_go(interpreter: str) -> None:
    with ours.server(interpreter, version=2, rcv_timeout=1) as server, tcp(server.port, DIGITS) as s:
        assert eof(s, 5) == b""
        result = server.wait_for("test")["result"]
    assert result["error"]["kind"] == "timeout"
    assert result["streams"][0]["bytes"] == len(DIGITS)
    assert result["streams"][0]["us"] < 900_000  # the silence is no part of the test


@both
def test_a_client_that_resets_is_noted_and_the_next_one_served(interpreter: str, iperf2_peer: Peer) -> None:
    with ours.server(interpreter, version=2) as server:
        with tcp(server.port, DIGITS * 20) as s:
            time.sleep(0.2)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        result = server.wait_for("test")["result"]
        assert result["error"]["kind"] == "closed"
        assert result["streams"][0]["bytes"] == len(DIGITS) * 20
        assert programs.client(iperf2_peer, server.port, "-n", "100K").returncode == 0
        assert server.wait_for("test", 2)["result"]["error"] is None


@both
def test_a_reverse_client_that_reads_nothing_is_let_go(interpreter: str) -> None:
    request = v1(0x44010078, -6000) + struct.pack(">9I", 0, 0, 0x04000000, 0, 0, 0, 0, 0, 0)
    with ours.server(interpreter, version=2, rcv_timeout=1) as server, tcp(server.port, request):
        assert server.wait_for("test")["result"]["error"]["kind"] == "timeout"


@both
def test_a_dual_client_without_listener_is_told(interpreter: str) -> None:
    with ours.server(interpreter, version=2) as server:
        with tcp(server.port, v1(0x80000001, -50, programs.free_port())) as s:
            s.sendall(DIGITS)
            s.shutdown(socket.SHUT_WR)
            eof(s)
        result = server.wait_for("test")["result"]
    assert result["error"]["kind"] == "refused"
    assert result["received"]["bytes"] == 24 + len(DIGITS)


@both
def test_several_clients_at_once(interpreter: str, iperf2_peer: Peer) -> None:
    with ours.server(interpreter, version=2) as server:
        others = [
            subprocess.Popen(
                ["timeout", "20", str(iperf2_peer.path), "-c", programs.LOOPBACK, "-p", str(server.port),
                 "-t", "1", *flags],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            )
            for flags in (["-b", "10m"], ["-R", "-b", "10m"], ["-P", "2", "-b", "5m"])
        ]  # fmt: skip
        for client in others:
            output = client.communicate(timeout=25)[0]
            assert client.returncode == 0, output
        server.wait_for("test", 3)
        results = [t["result"] for t in server.tests()]
    assert sorted((r["mode"], len(r["streams"])) for r in results) == [
        ("receive", 1),
        ("receive", 2),
        ("send", 1),
    ]
    for r in results:
        rate = sum(s["bytes"] for s in r["streams"]) * 8e6 / max(s["us"] for s in r["streams"])
        assert rate == pytest.approx(10e6, rel=0.25), r


@both
def test_one_off_ends_after_one_test(interpreter: str, iperf2_peer: Peer) -> None:
    with ours.server(interpreter, version=2, one_off=True) as server:
        assert programs.client(iperf2_peer, server.port, "-n", "100K").returncode == 0
        server.process.wait(5)
        assert server.events()[-1] == {"k": "result", "tests": 1}


@both
def test_an_idle_server_ends(interpreter: str) -> None:
    with ours.server(interpreter, version=2, idle_timeout=1) as server:
        server.process.wait(5)
        assert server.events()[-1] == {"k": "result", "tests": 0}


@both
def test_an_iperf3_client_is_told(interpreter: str, iperf3_peer: Peer) -> None:
    with ours.server(interpreter, version=2) as server:
        done = programs.client(iperf3_peer, server.port, "-t", "1", lifetime_s=10)
        assert done.returncode == 1, done
        error = server.wait_for("error")
        assert error["kind"] == "wrong-peer"
        assert "iPerf 3" in error["text"]
        with tcp(server.port, bytes(1000)):
            pass
        assert server.wait_for("test")["result"]["received"]["bytes"] == 1000


# -- UDP


def datagram(layout: str, number: int, size: int = 100, flags: int = 0x08000000) -> bytes:
    """A datagram as iperf >= 2.0.13 ("new"), 2.0.10-12 ("mid"), <= 2.0.9 ("old") or ESP-IDF ("bare")
    sends it."""
    now = time.time_ns() // 1000
    stamp = struct.pack(">II", now // 1000000, now % 1000000)
    low = struct.pack(">I", number & 0xFFFFFFFF)
    if layout == "new":
        head = low + stamp + struct.pack(">i", number >> 32) + struct.pack(">I", flags) + bytes(20)
    elif layout == "mid":
        head = low + stamp + b"2345" + v1(0, -100)
    elif layout == "old":
        head = low + stamp + v1(0, -100)
    else:
        head = low
    return head + DIGITS[: size - len(head)]


def final(layout: str, number: int) -> bytes:
    if layout == "mid":
        return datagram(layout, number | 0x80000000)
    return datagram(layout, -number)


def report(data: bytes, at: int = 16) -> dict[str, int]:
    names = ("flags", "high", "bytes", "sec", "usec", "lost", "ooo", "datagrams", "jsec", "jusec")
    return dict(zip(names, struct.unpack_from(">10I", data, at), strict=True))


@both
@pytest.mark.parametrize(("layout", "size", "at"), [("new", 128, 16), ("mid", 128, 16), ("old", 52, 12)])
@pytest.mark.parametrize("first", [0, 1])
def test_the_report_has_the_layout_of_the_client(interpreter: str, layout: str, size: int, at: int,
                                                 first: int) -> None:  # fmt: skip
    with ours.server(interpreter, version=2, udp=True) as server, udp(server.port) as s:
        for number in range(first, first + 20):
            s.send(datagram(layout, number))
            time.sleep(0.002)
        for _ in range(3):  # as if the report were lost
            s.send(final(layout, first + 20))
            answer = s.recv(2000)
            assert len(answer) == size
            told = report(answer, at)
            assert told["flags"] & 0x80000000
            assert told["lost"] == told["ooo"] == told["high"] == 0
            assert told["datagrams"] == 20 + first
            assert told["bytes"] == (20 + first) * 100
            assert told["sec"] == 0
            assert 30000 < told["usec"] < 900000
            assert told["jsec"] == 0
        result = server.wait_for("test")["result"]
    stream = result["streams"][0]
    assert stream["packets"] == 20 + first
    assert stream["lost"] == stream["dup"] == stream["ooo"] == 0


# numbers sent (the last one is the final datagram's), lost, out of order, datagrams: iperf.md A6
ORDERS = [
    ([0, 1, 2, 3, 4, -5], 0, 0, 5),
    ([0, 1, 3, 2, 4, -5], 0, 1, 5),
    ([0, 1, 2, 2, 3, -4], 0, 1, 4),
    ([0, 1, 2, 5, 6, -7], 2, 0, 7),
    ([0, 1, 2, 2, 5, -6], 1, 1, 6),
    ([1, 2, 3, -4], 0, 0, 4),
    ([3, 4, -5], 2, 0, 5),
    ([1, 2, 3, -9], 5, 0, 9),
]


def crafted(port: int, numbers: list[int]) -> dict[str, int]:
    with udp(port) as s:
        for number in numbers:
            s.send(datagram("new", number))
            time.sleep(0.002)
        return report(s.recv(2000))


@both
@pytest.mark.parametrize(("numbers", "lost", "ooo", "total"), ORDERS)
def test_loss_is_counted_as_iperf_does(interpreter: str, numbers: list[int], lost: int, ooo: int,
                                       total: int) -> None:  # fmt: skip
    with ours.server(interpreter, version=2, udp=True) as server:
        told = crafted(server.port, numbers)
    assert (told["lost"], told["ooo"], told["datagrams"]) == (lost, ooo, total)


@pytest.mark.parametrize(("numbers", "lost", "ooo", "total"), ORDERS)
def test_and_the_real_server_agrees(iperf2_peer: Peer, numbers: list[int], lost: int, ooo: int,
                                    total: int) -> None:  # fmt: skip
    with programs.server(iperf2_peer, udp=True) as real:
        told = crafted(real.port, numbers)
    assert (told["lost"], told["ooo"], told["datagrams"]) == (lost, ooo, total)


@both
def test_a_client_without_final_datagram(interpreter: str) -> None:
    """ESP-IDF: a number and nothing else, no end: the stream ends by itself, jitter is not known."""
    with ours.server(interpreter, version=2, udp=True, rcv_timeout=1) as server, udp(server.port) as s:
        for number in range(50):
            s.send(struct.pack(">I", number) + bytes(1466))
            time.sleep(0.002)
        event = server.wait_for("test")
        stream = event["result"]["streams"][0]
        assert stream["packets"] == 50
        assert stream["bytes"] == 50 * 1470
        assert stream["lost"] == 0
        assert stream["jitter_us"] is None
        assert stream["us"] < 900_000
        assert "n/a" in event["text"]
        # the same port sends again: a test of its own
        s.send(struct.pack(">I", 0) + bytes(1466))
        assert server.wait_for("test", 2)["result"]["streams"][0]["packets"] == 1


@both
def test_stray_final_datagrams_begin_no_test(interpreter: str, iperf2_peer: Peer) -> None:
    with ours.server(interpreter, version=2, udp=True) as server, udp(server.port) as s:
        for layout in ("new", "mid", "old"):
            s.send(final(layout, 30))
        s.send(b"abc")
        assert programs.client(iperf2_peer, server.port, "-u", "-n", "20K", "-b", "5m").returncode == 0
        server.wait_for("test")
        assert len(server.tests()) == 1


@both
def test_streams_that_begin_together_are_kept_apart(interpreter: str) -> None:
    """Datagrams of several clients wait in one socket before the first is served."""
    with ours.server(interpreter, version=2, udp=True) as server:
        clients = [socket.socket(type=socket.SOCK_DGRAM) for _ in range(4)]
        try:
            for c in clients:
                c.settimeout(3)
                c.connect((programs.LOOPBACK, server.port))
            for number in range(1, 31):
                for c in clients:
                    c.send(datagram("new", number))
            for c in clients:
                c.send(datagram("new", -31))
            for c in clients:
                told = report(c.recv(2000))
                assert (told["lost"], told["ooo"], told["datagrams"]) == (0, 0, 31)
        finally:
            for c in clients:
                c.close()


# -- our client and what it meets


@pytest.mark.parametrize(
    ("interpreter", "options"),
    [
        pytest.param("micropython", {}, id="micropython-send"),
        pytest.param("micropython", {"reverse": True}, id="micropython-reverse"),
        pytest.param("micropython", {"full_duplex": True}, id="micropython-full-duplex"),
        pytest.param("micropython", {"num_bytes": 1000}, id="micropython-short"),
        pytest.param("cpython", {}, id="cpython-send"),
        pytest.param("cpython", {"num_bytes": 1000}, id="cpython-short"),
    ],
)
def test_our_client_meets_an_iperf3_server(interpreter: str, options: dict[str, Any],
                                           iperf3_peer: Peer) -> None:  # fmt: skip
    with programs.server(iperf3_peer) as real:
        run = ours.client(interpreter, real.port, version=2, time=5, **options)
        assert run.error is not None
        assert run.error[0] == "wrong-peer", run.error
        assert "iPerf 3" in run.error[1]
        # it is still able to serve (3.22 only after one client more has failed)
        codes = [programs.client(iperf3_peer, real.port, "-n", "100K").returncode for _ in range(2)]
        assert codes[-1] == 0


@both
@pytest.mark.parametrize("options", [{}, {"udp": True}, {"udp": True, "reverse": True}],
                         ids=["tcp", "udp", "udp-reverse"])  # fmt: skip
def test_nothing_listens(interpreter: str, options: dict[str, Any]) -> None:
    run = ours.client(interpreter, programs.free_port(), version=2, time=3, **options)
    assert run.error is not None
    assert run.error[0] == "refused"


@both
@pytest.mark.parametrize("udp_", [False, True], ids=["tcp", "udp"])
def test_a_server_that_is_killed(interpreter: str, udp_: bool, iperf2_peer: Peer) -> None:
    with programs.server(iperf2_peer, udp=udp_) as real:
        # the process itself is `timeout`, the server its child
        killer = threading.Timer(1.5, psutil.Process(real.process.pid).children()[0].kill)
        killer.start()
        run = ours.client(interpreter, real.port, version=2, time=6, udp=udp_)
        killer.join()
    assert run.error is not None
    assert run.error[0] in ("closed", "refused"), run.error
    assert run.result is not None
    assert run.result["sent"]["bytes"] > 0
    assert run.result["intervals"]


@both
def test_no_report_comes(interpreter: str) -> None:
    """A sink that never answers (ESP-IDF): the client gives up after two seconds and says n/a."""
    with socket.socket(type=socket.SOCK_DGRAM) as sink:
        sink.bind((programs.LOOPBACK, 0))
        begun = time.monotonic()
        run = ours.client(interpreter, sink.getsockname()[1], version=2, udp=True, time=0.5,
                         length=100, bandwidth="100k")  # fmt: skip
        assert time.monotonic() - begun < 8
        sink.settimeout(0.5)
        finals = []
        with suppress(TimeoutError):
            while True:
                data = sink.recv(2000)
                if data[12] & 0x80:
                    finals.append(data)
    assert run.ok["streams"][0]["peer"] is None
    assert run.ok["peer_received"] is None
    assert "n/a" in run.text
    assert 50 < len(finals) <= 210
    numbers = {struct.unpack_from(">q", data[12:16] + data[:4])[0] for data in finals}
    assert numbers == {-run.ok["sent"]["packets"]}


@both
def test_acks_are_no_reports(interpreter: str) -> None:
    """2.0.10-13 servers send 28 bytes at the start, which iperf 2.1.8 takes for the report."""
    with socket.socket(type=socket.SOCK_DGRAM) as fake:
        fake.bind((programs.LOOPBACK, 0))
        fake.settimeout(5)

        def serve() -> None:
            begun = False
            while True:
                data, peer = fake.recvfrom(2000)
                if not begun:
                    fake.sendto(ACK, peer)
                    fake.sendto(struct.pack(">13I", 2, 52, *[0] * 11), peer)
                    begun = True
                if data[12] & 0x80:
                    fake.sendto(bytes(16) + struct.pack(">10I", 0x80000000, 0, 777, 1, 500, 3, 2, 99, 0, 42)
                                + bytes(1414), peer)  # fmt: skip
                    return

        thread = threading.Thread(target=serve)
        thread.start()
        run = ours.client(interpreter, fake.getsockname()[1], version=2, udp=True, time=0.4)
        thread.join()
    peer = run.ok["streams"][0]["peer"]
    assert peer == {"bytes": 777, "us": 1000500, "lost": 3, "ooo": 2, "packets": 99, "jitter_us": 42}


@both
@pytest.mark.parametrize(("compat", "layout"), [("2.0", "old"), ("2.0.12", "mid"), (True, "plain")])
def test_compat_forms(interpreter: str, compat: Any, layout: str) -> None:
    """What goes out for servers of iperf 2.0: 12-byte header; final number as sign and magnitude."""
    with socket.socket(type=socket.SOCK_DGRAM) as sink:
        sink.bind((programs.LOOPBACK, 0))
        sink.settimeout(1)
        port = sink.getsockname()[1]
        process = subprocess.Popen(
            ours._command(interpreter, "client", {"host": programs.LOOPBACK, "port": port, "version": 2,
                                                  "udp": True, "num_bytes": 14700, "bandwidth": "10m",
                                                  "compat": compat}),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        sink.settimeout(10)
        got = [sink.recv(2000) for _ in range(12)]
        process.communicate(timeout=10)
    numbers = [struct.unpack(">i", d[:4])[0] for d in got]
    assert numbers[:10] == list(range(10))
    end = {"old": -10, "mid": 10 - (1 << 31), "plain": -10}[layout]
    assert numbers[10:] == [end, end]
    if layout == "old":
        # flags, streams and port at 12, 16 and 20: what a server tells the layout by
        assert struct.unpack_from(">III", got[0], 12) == (0, 1, port)
    else:
        assert got[0][16:20] == bytes(4)  # no flags at all
        assert got[0][12:16] == bytes(4)


@both
def test_our_client_and_our_server(interpreter: str) -> None:
    """A board tests against a board, in the layouts of old versions too."""
    with ours.server(interpreter, version=2, udp=True) as server:
        for compat in (None, "2.0", "2.0.12", True):
            run = ours.client(interpreter, server.port, version=2, udp=True, time=0.4, bandwidth="4m",
                              parallel=2, compat=compat)  # fmt: skip
            for stream in run.ok["streams"]:
                assert stream["peer"]["packets"] == stream["packets"], compat
                assert stream["peer"]["bytes"] == stream["bytes"], compat
                assert stream["peer"]["lost"] == 0
        server.wait_for("test", 4)
        assert [len(t["result"]["streams"]) for t in server.tests()] == [2, 2, 2, 2]


@both
def test_a_server_that_does_not_connect_back(interpreter: str) -> None:
    """Half of a dual test is an error, and the half that was measured is kept."""
    with ours.server(interpreter, version=2) as server:
        # the request carries the listener's port; a firewall is played by asking for another one
        run = ours.client(
            interpreter, server.port, version=2, dual=True, time=0.5, listen_port=programs.free_port()
        )
        assert run.error is None  # first the good case
    with socket.socket() as sink:
        sink.bind((programs.LOOPBACK, 0))
        sink.listen(4)
        run = ours.client(interpreter, sink.getsockname()[1], version=2, tradeoff=True, num_bytes=20000,
                          listen_port=programs.free_port())  # fmt: skip
    assert run.error is not None
    assert run.error[0] == "peer"
    assert "connect back" in run.error[1]
    assert run.result is not None
    assert run.result["sent"]["bytes"] == 20000


@both
def test_the_clock_stops_before_the_wait_for_eof(interpreter: str) -> None:
    """A sink that closes late must not stretch the measurement, as it does iperf's own."""
    with socket.socket() as sink:
        sink.bind((programs.LOOPBACK, 0))
        sink.listen(1)

        def serve() -> None:
            s, _ = sink.accept()
            with s:
                while s.recv(1 << 20):
                    pass
                time.sleep(1.5)

        thread = threading.Thread(target=serve)
        thread.start()
        run = ours.client(interpreter, sink.getsockname()[1], version=2, time=0.5)
        thread.join()
    assert run.ok["sent"]["us"] == pytest.approx(0.5e6, abs=0.2e6)


@both
def test_a_plain_tcp_client_sends_no_header(interpreter: str) -> None:
    """Four zero bytes come right after the connect: a 2.1 server listens to nobody else until then."""
    with socket.socket() as sink:
        sink.bind((programs.LOOPBACK, 0))
        sink.listen(4)
        sink.settimeout(10)
        process = subprocess.Popen(
            ours._command(interpreter, "client", {"host": programs.LOOPBACK, "port": sink.getsockname()[1],
                                                  "version": 2, "num_bytes": 30000, "parallel": 2}),
            stdout=subprocess.PIPE,
        )  # fmt: skip
        first, second = sink.accept()[0], sink.accept()[0]
        with first, second:
            for s in (first, second):
                s.settimeout(5)
                data = b""
                while more := s.recv(65536):
                    data += more
                assert data[:4] == bytes(4)
                assert len(data) == 30000
        process.communicate(timeout=10)


def test_a_file_is_the_payload(tmp_path: Any, iperf2_peer: Peer) -> None:
    path = tmp_path / "payload"
    path.write_bytes(b"x" * 300_000)
    with programs.server(iperf2_peer, "-f", "k") as real:
        run = ours.client("micropython", real.port, version=2, file=str(path))
        real.expect(r"KBytes")
        assert iperf2_text.lines(real.output())[0].bytes == pytest.approx(300_004, abs=600)
    assert run.ok["sent"]["bytes"] == 300_004
