# ruff: noqa: E501, UP031 (the board's programs as text)
"""Faults on the way: lost frames, a cut link, a peer or a board that goes, many runs in a row.

The sizes are those of `make test`; with UPYPERF_SOAK=1 they are those of `make soak`.
"""

import contextlib
import hashlib
import os
import shutil
import socket
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from harness.qemu_board import HOST, Board, HashPeer, pseudo_random
from upyperf import firmware

SOAK = bool(os.environ.get("UPYPERF_SOAK"))
SHA_BYTES = (64 if SOAK else 16) << 20
RUNS = 200 if SOAK else 50

TRANSFERS = (
    """
def send(kind, port, total):
    s = connect(kind, port)
    h = hashlib.sha256()
    n = 0
    bufs = [os.urandom(8192) for _ in range(8)]
    while n < total:
        b = bufs[(n >> 13) & 7]
        if kind == 'socket':
            s.write(b)
        elif kind == 'netconn':
            s.write(b, NETCONN_NOCOPY)
        else:
            s.pump_write(b)
        h.update(b)
        n += len(b)
        x = [bytearray(100) for _ in range(20)]
        if not n & 0x3ffff:
            gc.collect()
    s.close()
    return n, h.digest()

def receive(kind, port):
    s = connect(kind, port)
    h = hashlib.sha256()
    n = 0
    b = bytearray(4096)
    m = memoryview(b)
    nb = Netbuf()
    while True:
        if kind == 'netbuf':
            k = s.recv(nb)
            while k:
                h.update(nb)
                if not nb.next():
                    break
        else:
            k = s.readinto(b)
            h.update(m[:k])
        if not k:
            break
        n += k
        x = [bytearray(100) for _ in range(20)]
        if n & 0xffff < 1460:
            gc.collect()
    nb.free()
    s.close()
    return n, h.digest()

def connect(kind, port):
    s = socket.socket() if kind == 'socket' else Netconn()
    s.connect((%r, port))
    return s
"""
    % HOST
)


@pytest.fixture(scope="session")
def quick_elf(elf):
    """lwIP with a clock of 25 ms instead of 250: what is lost comes again sooner, nothing else differs."""
    return firmware.build("qemu-an386", cflags="-DTCP_TMR_INTERVAL=25")


@pytest.fixture(scope="module")
def transfers(quick_elf, isolated):
    """All transfers at once, each on a board of its own: they mostly wait for retransmissions."""

    def run(way, kind):
        ends, board = HashPeer(), Board(quick_elf, link="loss=3%,seed=5")
        try:
            board.network()
            board.exec(TRANSFERS)
            if way == "send":
                there = board.eval(f"send({kind!r}, {ends.sink}, {SHA_BYTES})", 3000)
                here = ends.wait(120)
            else:
                ends.source_bytes = SHA_BYTES
                there = board.eval(f"receive({kind!r}, {ends.source})", 3000)
                here = SHA_BYTES, hashlib.sha256(pseudo_random(SHA_BYTES)).hexdigest()
            return there, here, board.eval("lwipstats.counters()")
        finally:
            board.close()
            ends.close()

    keys = [("send", k) for k in ("socket", "netconn", "raw")]
    keys += [("receive", k) for k in ("socket", "netconn", "netbuf")]
    with ThreadPoolExecutor(len(keys)) as pool:
        yield {key: pool.submit(run, *key) for key in keys}


@pytest.mark.timeout(4000 if SOAK else 1000)
@pytest.mark.parametrize("kind", ["socket", "netconn", "raw"])
def test_sent_over_loss_with_garbage_collection(transfers, kind):
    (sent, digest), arrived, counters = transfers["send", kind].result()
    assert sent == SHA_BYTES
    assert arrived == (SHA_BYTES, digest.hex())
    assert counters["tcp_retrans"] > 100
    assert counters["lock_errors"] == 0


@pytest.mark.timeout(4000 if SOAK else 1000)
@pytest.mark.parametrize("kind", ["socket", "netconn", "netbuf"])
def test_received_over_loss_with_garbage_collection(transfers, kind):
    (got, digest), sent, counters = transfers["receive", kind].result()
    assert (got, digest.hex()) == sent
    assert counters["pool_err"] == 0


# ------------------------------------------------------------------ iperf runs that something befalls


@pytest.fixture(scope="module")
def iperf3(isolated):
    """Starts (and starts again) an iperf3 server; .port, .kill()."""

    class Server:
        def __init__(self):
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                self.port = free.getsockname()[1]
            self.process = None
            self.start()

        def start(self):
            self.process = subprocess.Popen(
                [shutil.which("iperf3"), "-s", "-B", "127.0.0.1", "-p", str(self.port)],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            end = time.monotonic() + 10
            while time.monotonic() < end:
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                    return
                time.sleep(0.05)
            raise AssertionError("iperf3 does not start")

        def kill(self):
            self.process.kill()
            self.process.wait(10)

    server = Server()
    yield server
    server.kill()


RUN = """
import iperf
from iperf.errors import IperfError
def run(**kw):
    try:
        r = iperf.client({host!r}, port={port}, **kw).to_dict()
        return ('ok', (r['sent'] or r['received'])['bytes'])
    except IperfError as e:
        return (e.kind, e.text)
"""


@pytest.fixture
def runner(board, iperf3):
    board.exec(RUN.format(host=HOST, port=iperf3.port))
    return board


def _later(seconds, action):
    timer = threading.Timer(seconds, action)
    timer.start()
    return timer


def _next_run_works(board):
    end = time.monotonic() + 40
    while True:
        got = board.eval("run(time=0.3)", 60)
        if got[0] == "ok" and got[1] > 0:
            return
        assert time.monotonic() < end, got
        time.sleep(1)


@pytest.mark.parametrize("layer", ["socket", "netconn", "raw"])
def test_link_cut_and_restored(runner, layer):
    timers = [
        _later(0.7, lambda: runner.machine.set_link(False)),
        _later(1.7, lambda: runner.machine.set_link(True)),
    ]
    kind, value = runner.eval(f"run(time=3, layer={layer!r})", 90)
    for timer in timers:
        timer.join()
    assert (kind == "ok" and value > 0) or (kind in ("timeout", "closed", "unreachable", "peer") and value)
    _next_run_works(runner)


@pytest.mark.parametrize("layer", ["socket", "netconn", "raw"])
def test_server_killed(runner, iperf3, layer):
    timer = _later(2, iperf3.kill)
    kind, text = runner.eval(f"run(time=6, layer={layer!r})", 90)
    timer.join()
    assert kind in ("closed", "refused", "peer"), text
    assert runner.eval("run(time=0.3)", 60)[0] == "refused"
    iperf3.start()
    _next_run_works(runner)


@pytest.mark.parametrize("layer", ["socket", "netconn"])
def test_reset_button_in_a_run(runner, iperf3, layer):
    from upyperf.errors import UpyperfError

    timer = _later(0.8, runner.machine.reset)
    with pytest.raises(UpyperfError):
        runner.eval(f"run(time=3, layer={layer!r})", 8)
    timer.join()
    iperf3.kill()  # the old run's connection is dead, and iperf3 serves one at a time
    iperf3.start()
    runner.reconnect()
    runner.network()
    runner.exec(RUN.format(host=HOST, port=iperf3.port))
    _next_run_works(runner)


@pytest.mark.timeout(3600 if SOAK else 280)
def test_many_runs_leak_nothing(runner):
    runner.exec(
        "def held():\n netconn.blocks(); gc.collect(); gc.collect()\n c = lwipstats.counters()\n"
        " return [c[k] for k in ('mem_used', 'pbuf_used', 'pool_used', 'seg_used', 'tcp_active', 'udp_pcb_used')]"
        " + [gc.mem_alloc(), netconn.blocks()]\n"
        "failed = []\n"
        "def many(n):\n"
        " for i in range(n):\n"
        "  layer = ('socket', 'netconn', 'raw')[i % 3]\n"
        "  kw = {} if layer == 'raw' or i & 1 else {'udp': True, 'bandwidth': 2000000}\n"
        "  r = run(time=0.1, layer=layer, reverse=bool(i & 2), **kw)\n"
        "  if r[0] != 'ok': failed.append((i, r))\n"
    )
    runner.exec("many(6)", 120)
    runner.exec("time.sleep(1)\nfirst = held()")
    runner.exec(f"many({RUNS})", 1800)
    runner.exec("time.sleep(1)\nlast = held()")
    assert runner.eval("failed") == []
    first, last = runner.eval("first"), runner.eval("last")
    assert last[:6] == first[:6]
    assert last[7] == 0
    assert last[6] - first[6] < 2048, "heap blocks are left behind"


def test_errmem_under_rtt_with_the_small_profile(isolated, peer):
    # 40-byte writes, one segment each: the queue of 32 is full long before 20 ms are over.
    board = Board(small_elf(), link="delay=10ms")
    try:
        board.network()
        board.exec(TRANSFERS)
        for kind, nodelay in (
            ("netconn", "s.config(nodelay=True)"),
            ("socket", "s.setsockopt(6, socket.TCP_NODELAY, 1)"),
        ):
            peer.got.clear()
            before = board.eval("lwipstats.counters()['tcp_write_errmem']")
            board.exec(
                f"s = connect({kind!r}, {peer.sink}); {nodelay}\nh = hashlib.sha256()\n"
                "for i in range(300):\n b = os.urandom(40); h.update(b); s.write(b)\n"
                "own = s.stats()[0] if hasattr(s, 'stats') else None\ns.close()",
                60,
            )
            assert peer.wait(60) == (12000, board.eval("h.digest()").hex())
            assert board.eval("lwipstats.counters()['tcp_write_errmem']") > before
            if kind == "netconn":
                assert board.eval("own") > 0
    finally:
        board.close()


@pytest.fixture(scope="module", autouse=True)
def _build_small(elf):
    small_elf()  # outside of the namespace: its sources may have to be fetched


def small_elf():
    return firmware.build("qemu-an386", "mpy-default")
