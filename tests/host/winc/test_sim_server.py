"""The simulator's socket protocol (docs/winc-sim.md, section 2), as a separate process sees it."""

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time

import pytest
from upyperf.virtual.winc.crc import crc7

HEAD = struct.Struct("<BBH")


class Client:
    def __init__(self, address):
        kind, _, where = address.partition(":")
        if kind == "unix":
            self.sock = socket.socket(socket.AF_UNIX)
            self.sock.settimeout(5)
            self.sock.connect(where)
        else:
            host, port = where.rsplit(":", 1)
            self.sock = socket.create_connection((host, int(port)), 5)
        self.file = self.sock.makefile("rb")

    def send(self, op, arg=0, payload=b""):
        self.sock.sendall(HEAD.pack(op, arg, len(payload)) + payload)

    def reply(self):
        op, pins, size = HEAD.unpack(self.file.read(4))
        return op, pins, self.file.read(size)

    def ask(self, op, arg=0, payload=b""):
        self.send(op, arg, payload)
        return self.reply()

    def control(self, **request):
        return json.loads(self.ask(0x11, 0, json.dumps(request).encode())[2])


@pytest.fixture(params=["unix", "tcp"])
def start(request, tmp_path):
    running = []

    def begin(*options):
        where = ["--unix", str(tmp_path / "winc")] if request.param == "unix" else ["--tcp", "127.0.0.1:0"]
        process = subprocess.Popen(
            [sys.executable, "-m", "upyperf.virtual.winc", *where, "--profile", "instant", *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        running.append(process)
        line = process.stdout.readline()
        assert line.startswith("ready "), process.stderr.read()
        return process, line.split()[1]

    yield begin
    for process in running:
        process.kill()
        process.communicate()


def power(client):
    client.send(4, 1 << 1 | 1)
    client.send(4, 2 << 1 | 1)


def test_hello_and_a_transfer_in_one_round_trip(start):
    _, address = start("--set", "firmware=19.7.7")
    client = Client(address)
    op, pins, payload = client.ask(0x10, 0, b"test")
    hello = json.loads(payload)
    assert (op, pins & 1, pins & 4) == (0x10, 1, 0)
    assert (hello["protocol"], hello["firmware"], hello["simulated"]) == (1, "19.7.7", True)
    power(client)
    body = bytes.fromhex("CA001000")
    op, pins, miso = client.ask(1, 3, body + bytes((crc7(body),)) + bytes(16))
    assert len(miso) == 21
    assert bytes.fromhex("f3a0031000") in miso
    assert pins & 5 == 5
    assert client.ask(1, 0, bytes(3))[2] == b"\xff\xff\xff"  # CS is high again


def test_batched_and_posted_frames(start):
    _, address = start("--set", "spi.echo_zeros=0")
    client = Client(address)
    power(client)
    write = bytes.fromhex("C900E824000000525C")
    frames = HEAD.pack(4, 0, 0) + HEAD.pack(2, 4, len(write)) + write
    frames += HEAD.pack(3, 2, 3) + struct.pack("<HB", 2, 0) + HEAD.pack(5, 0, 0)
    client.sock.sendall(frames)
    assert client.reply()[::2] == (3, b"\xc9\x00")
    assert client.reply()[::2] == (5, b"")


def test_violations_and_faults_over_control(start):
    _, address = start()
    client = Client(address)
    power(client)
    assert client.ask(1, 3, bytes.fromhex("CA00100000") + bytes(9))[1] & 0x80
    assert client.ask(5)[1] & 0x80 == 0
    broken = client.control(cmd="violations")
    assert broken["ok"]
    assert [v["rule"] for v in broken["violations"]] == [2]
    assert client.control(cmd="set", key="air.rssi", value=-71) == {"ok": True}
    assert client.control(cmd="get", key="air.rssi") == {"ok": True, "value": -71}
    assert client.control(cmd="fault", name="stuck", value=255, count=2)["ok"]
    assert client.ask(1, 3, bytes(3))[2] == b"\xff\xff\x00"
    assert client.control(cmd="stats")["violations"] == {"2": 1}
    for bad in (
        {"cmd": "fault", "name": "gremlin"},
        {"cmd": "set", "key": "air.no", "value": 1},
        {"cmd": "x"},
    ):
        answer = client.control(**bad)
        assert not answer["ok"]
        assert "\n" not in answer["error"]


def test_wait_returns_at_its_timeout_and_later_clients_are_served(start):
    _, address = start()
    client = Client(address)
    power(client)
    begin = time.monotonic()
    op, pins, _ = client.ask(6, 0, struct.pack("<I", 30_000))
    assert op == 6
    assert pins & 1
    assert time.monotonic() - begin >= 0.03
    client.sock.close()
    client.file.close()
    second = Client(address)
    assert second.ask(5)[1] & 4  # the chip is as the first client left it


def test_edge_frames(start):
    _, address = start(
        "--set", "spi.echo_zeros=0", "--set", "spi.data_zeros=0", "--set", "hif.event_us=20000"
    )
    client = Client(address)
    power(client)
    client.ask(8, 1)

    def write(addr, value):
        body = b"\xc9" + addr.to_bytes(3, "big") + value.to_bytes(4, "big")
        return client.ask(1, 3, body + bytes(2))[2][8:]

    client.ask(1, 3, bytes.fromhex("C900E824000000525C") + bytes(2))
    for addr, value in ((0x108C, 0x13301361), (0x14A0, 0x102), (0xC000C, 0xEF522F61), (0x108C, 0)):
        assert write(addr, value) == b"\xc9\0"
    write(0x1408, 0x100)
    write(0x1A00, 0x10000)
    write(0x108C, 1 | 3 << 8 | 8 << 16)
    write(0x1078, 2)
    addr = int.from_bytes(client.ask(1, 3, bytes.fromhex("CA150400") + bytes(7))[2][7:], "little")
    block = (
        b"\xc7"
        + addr.to_bytes(3, "big")
        + bytes((0, 0, 8))
        + bytes(2)
        + b"\xf3"
        + struct.pack("<BBHI", 1, 3, 8, 0)
    )
    client.ask(1, 3, block + bytes(3))
    write(0x106C, addr << 2 | 2)
    assert client.reply()[::2] == (0x40, b"")  # unasked, 20 ms later
    assert client.ask(5)[1] & 1 == 0


@pytest.mark.parametrize(
    ("frame", "text"),
    [
        (HEAD.pack(0x33, 0, 0), "unknown op 0x33"),
        (HEAD.pack(6, 0, 1) + b"x", "WAIT takes 4 bytes, got 1"),
        (HEAD.pack(4, 9 << 1, 0), "no pin 9"),
    ],
)
def test_bad_frames_end_the_connection(start, frame, text):
    _, address = start()
    client = Client(address)
    client.sock.sendall(frame)
    op, _, payload = client.reply()
    assert op == 0x7F
    assert text in payload.decode()
    assert client.file.read(1) == b""
    assert Client(address).ask(5)[0] == 5


def test_a_frame_cut_short(start):
    _, address = start()
    client = Client(address)
    client.sock.sendall(b"\x01\x00")
    client.sock.shutdown(socket.SHUT_WR)
    assert "inside a frame" in client.reply()[2].decode()


def test_strict_mode_ends_the_connection_with_the_rule(start):
    _, address = start("--strict")
    client = Client(address)
    client.send(4, 0)
    op, _, payload = client.ask(1, 0, b"\xca")
    assert op == 0x7F
    assert payload.startswith(b"rule 1:")


def test_sigterm_ends_it_and_writes_trace_and_stats(start, tmp_path):
    trace, stats = tmp_path / "trace.csv", tmp_path / "stats.json"
    process, address = start("--trace", str(trace), "--stats", str(stats))
    client = Client(address)
    power(client)
    client.ask(1, 3, b"\0\0")
    process.send_signal(signal.SIGTERM)
    assert process.wait(5) == 0
    assert json.loads(stats.read_text())["simulated"] is True
    assert trace.read_text().splitlines()[-1].endswith("SPI,0000,0000")


@pytest.mark.parametrize(
    "options",
    [
        ["--set", "firmware=18.0.0"],
        ["--set", "air.rssi=strong"],
        ["--set", "nothing"],
        ["--config", "missing.toml"],
    ],
)
def test_bad_settings_are_one_line(options, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "upyperf.virtual.winc", "--unix", str(tmp_path / "s"), *options],
        capture_output=True,
        text=True,
        timeout=20,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
