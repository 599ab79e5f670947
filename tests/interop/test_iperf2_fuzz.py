"""Hostile bytes: the codec of iPerf 2 answers or refuses, and a server that was sent them still serves."""

from __future__ import annotations

import random
import socket
import struct
from contextlib import suppress

import pytest
from harness import ours, programs
from hypothesis import example, given, settings
from hypothesis import strategies as st
from iperf import clock, hot
from iperf.v2 import inflow, report, request, wire
from iperf.v2.answer import put_report
from iperf.v2.inflow import InFlow
from peers import Peer

# flags that mean something, in front of anything
FLAGS = st.one_of(
    st.sampled_from([0, 0x40010078, 0x44010078, 0x80000001, 0x80000000, 0xC0010079, 0x70313233, 0xF0313233,
                     0x400101FE, 0x40010000, 0x00800000, 0xFFFFFFFF, 0x6C010098, 0x88000001]),
    st.integers(0, 0xFFFFFFFF),
)  # fmt: skip
TCP = st.builds(lambda f, rest: struct.pack(">I", f) + rest, FLAGS, st.binary(max_size=300))
UDP = st.builds(
    lambda head, f, rest: head + struct.pack(">I", f) + rest,
    st.binary(min_size=16, max_size=16), FLAGS, st.binary(max_size=200),
)  # fmt: skip


@given(st.one_of(TCP, st.binary(max_size=100)))
def test_tcp_requests_are_read_within_bounds(data: bytes) -> None:
    asked = request.Request(data, 0, len(data))
    assert 0 <= request.header_len(asked.flags) <= 256
    assert asked.mode in ("receive", "reverse", "full_duplex", "dual", "tradeoff")
    assert 1 <= asked.streams <= 1024
    assert 0 <= asked.port < 65536
    assert 0 <= asked.length < 1 << 24
    assert 0 <= asked.rate < 1 << 64 or asked.upper & wire.PPS
    assert 0 <= asked.time_us <= 0x80000000 * 10000
    assert 0 <= asked.num_bytes < 1 << 31


@given(st.one_of(UDP, st.binary(max_size=100)))
def test_layouts_and_requests_of_datagrams(data: bytes) -> None:
    layout, wide = request.layout(data, len(data))
    assert layout in (wire.NEW, wire.OLD, wire.BARE)
    assert not wide or layout == wire.NEW
    request.Request(data, 12 if layout == wire.OLD else 16, len(data))


@given(st.one_of(UDP, st.binary(max_size=200)))
@example(bytes(16) + struct.pack(">10I", 0x88000000, *[0xFFFFFFFF] * 9) + bytes(72))
def test_reports_are_taken_whole_or_not_at_all(data: bytes) -> None:
    told = report.get_report(data, len(data))
    if told is not None:
        assert all(value >= 0 for value in told)
        assert told[2] <= told[4]


@given(
    st.sampled_from([(wire.NEW, True), (wire.NEW, False), (wire.OLD, False), (wire.BARE, False)]),
    st.lists(st.one_of(UDP, st.binary(max_size=60)), min_size=1, max_size=30),
)
def test_a_stream_of_anything_has_figures_in_bounds(form: tuple[int, bool], data: list[bytes]) -> None:
    class Sock:
        def readinto(self, buf: bytearray) -> int | None:
            d = self.recv_datagram(len(buf))
            if d is None:
                return None
            buf[: len(d)] = d
            return len(d)

        def recv_datagram(self, most: int) -> bytes | None:
            return data.pop(0)[:most] if data else None

    count = len(data)
    flow = InFlow(1, Sock(), bytearray(2000), *form, number=1)
    for _ in range(count + 2):
        if flow.step(clock.ticks_add(clock.ticks_us(), 100000), 0, 1000) == hot.FIN:
            break
    stream = flow.to_dict(1000)
    for key in ("bytes", "packets", "lost", "ooo", "dup"):
        assert stream[key] >= 0
    lost, ooo, total = flow.iperf_counts()
    assert min(lost, ooo, total) >= 0
    assert ooo <= count
    buf = bytearray(128)
    assert put_report(flow, buf, 1000) in (52, 128)


@settings(max_examples=200)
@given(st.integers(0, (1 << 63) - 1))
def test_final_numbers_of_64_bits(number: int) -> None:
    buf = bytearray(20)
    struct.pack_into(">I", buf, 0, number & 0xFFFFFFFF)
    struct.pack_into(">I", buf, 12, number >> 32)
    o = wire.header(wire.NEW, True, 0).o
    report.put_fin(buf, o, False)
    assert inflow.fin_number(buf, o, 0) == number or number == 0


@pytest.mark.parametrize("interpreter", ours.INTERPRETERS)
def test_a_server_survives_it(interpreter: str, iperf2_peer: Peer) -> None:
    rng = random.Random(2)
    flags = [
        0x40010078,
        0x44010078,
        0x80000001,
        0xC0010079,
        0x70313233,
        0x400101FE,
        0x00800000,
        0xFFFFFFFF,
        0,
    ]
    with ours.server(interpreter, version=2, rcv_timeout=1) as server:
        for round_ in range(40):
            data = rng.randbytes(rng.choice([0, 1, 3, 4, 24, 60, 61, 300]))
            if round_ % 2:
                data = struct.pack(">I", rng.choice(flags)) + data
            with (
                socket.create_connection((programs.LOOPBACK, server.port), timeout=5) as s,
                suppress(OSError),
            ):
                s.sendall(data)
                if round_ % 3 == 0:
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        done = programs.client(iperf2_peer, server.port, "-t", "0.3")
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("interpreter", ours.INTERPRETERS)
def test_a_datagram_server_survives_it(interpreter: str, iperf2_peer: Peer) -> None:
    rng = random.Random(3)
    flags = [0x48010098, 0x6C010098, 0xC8010099, 0x88000001, 0x08000000, 0, 0x7A7A7A7A, 0xFFFFFFFF, 1]
    with ours.server(interpreter, version=2, udp=True, rcv_timeout=1) as server:
        for round_ in range(40):
            with socket.socket(type=socket.SOCK_DGRAM) as s:
                s.connect((programs.LOOPBACK, server.port))
                for _ in range(3):
                    data = rng.randbytes(rng.choice([0, 1, 4, 11, 12, 16, 20, 60, 76, 300, 1470]))
                    if round_ % 2 and len(data) >= 20:
                        data = data[:16] + struct.pack(">I", rng.choice(flags)) + data[20:]
                    with suppress(OSError):
                        s.send(data)
        done = programs.client(iperf2_peer, server.port, "-u", "-n", "50K", "-b", "5m")
        assert done.returncode == 0, done.stdout + done.stderr
        assert "Server Report" in done.stdout, done.stdout + done.stderr
