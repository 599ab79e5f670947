# ruff: noqa: E501 (the board's programs as text)
"""Who owns which memory when. Over a link whose acknowledgments take 20 ms, so that data is surely
unacknowledged when an object is dropped (QEMU's user network acknowledges at once)."""

import hashlib
import time

import pytest
from harness.qemu_board import HOST, pseudo_random

CHURN = """
def churn():
    for i in range(60):
        b = bytearray(1500)
        for k in range(0, 1500, 50):
            b[k] = 0xAA
    gc.collect()
"""


@pytest.fixture(autouse=True)
def settled(far_board):
    far_board.exec(CHURN + "gc.collect()")
    yield
    assert far_board.eval("lwipstats.counters()['lock_errors']") == 0


def _wait_blocks(board, count=0, timeout=15.0):
    end = time.monotonic() + timeout
    while board.eval("netconn.blocks()") > count:
        assert time.monotonic() < end, "lwIP still holds a connection"
        time.sleep(0.1)


def test_dropped_buffers_stay_until_acknowledged(far_board, peer):
    far_board.exec(
        f"c = Netconn(); c.connect(({HOST!r}, {peer.sink}))\nh = hashlib.sha256()\nseen = 0\n"
        "for i in range(60):\n"
        " b = os.urandom(600 + 37 * i); h.update(b); c.write(b, NETCONN_NOCOPY); del b\n"
        " seen += c.unacked() > 0; churn()\n"
        "c.flush()\nleft = c.unacked()\nc.close()"
    )
    assert far_board.eval("seen") == 60  # unacknowledged each time that the last reference went
    assert far_board.eval("left") == 0
    assert peer.wait()[1] == far_board.eval("h.digest()").hex()


def test_dropped_connection_still_delivers(far_board, peer):
    far_board.exec(
        f"c = Netconn(); c.connect(({HOST!r}, {peer.sink}))\nb = os.urandom(20000)\nd = hashlib.sha256(b).digest()\n"
        "c.write(b, NETCONN_NOCOPY)\nu = c.unacked()\ndel b\ndel c\nblocks = []\n"
        "churn(); blocks.append(netconn.blocks()); churn()"
    )
    assert far_board.eval("u") > 0
    assert peer.wait() == (20000, far_board.eval("d").hex())
    _wait_blocks(far_board)


def test_close_with_data_in_flight_delivers_and_lets_go(far_board, peer):
    far_board.exec(
        f"c = Netconn(); c.connect(({HOST!r}, {peer.sink}))\nb = os.urandom(30000)\nd = hashlib.sha256(b).digest()\n"
        "c.write(b, NETCONN_NOCOPY)\nu = c.unacked()\nc.close()\ndel b\nchurn()\nchurn()"
    )
    assert far_board.eval("u") > 0
    assert peer.wait() == (30000, far_board.eval("d").hex())
    _wait_blocks(far_board)
    assert far_board.eval("lwipstats.counters()['seg_used']") == 0


def test_abort_lets_go_at_once(far_board, peer):
    far_board.exec(
        f"c = Netconn(); c.connect(({HOST!r}, {peer.sink}))\nb = os.urandom(30000)\n"
        "c.write(b, NETCONN_NOCOPY)\nu = c.unacked()\nc.abort()\nv = c.unacked()\nn = netconn.blocks()"
    )
    assert far_board.eval("u") > 0
    assert far_board.eval("(v, n)") == (0, 0)
    peer.wait()


def test_peer_that_stops_reading_does_not_hold_memory_for_ever(far_board, peer):
    peer.hold.set()
    try:
        far_board.exec(
            f"c = Netconn(); c.connect(({HOST!r}, {peer.sink})); c.settimeout(1)\nn = 0\n"
            "b = bytearray(16384)\ntry:\n while n < 20000000: n += c.write(b, NETCONN_NOCOPY)\nexcept OSError: pass\n"
            "u = c.unacked()\nc.close(); del b, c\nchurn()"
        )
        assert far_board.eval("u") > 0
        _wait_blocks(far_board, timeout=25)
    finally:
        peer.hold.clear()
    peer.wait()


@pytest.mark.parametrize("closed", [False, True])
def test_soft_reset_with_data_in_flight(far_board, peer, closed):
    far_board.exec(
        f"c = Netconn(); c.connect(({HOST!r}, {peer.sink}))\nb = os.urandom(30000)\n"
        "c.write(b, NETCONN_NOCOPY)\nu = c.unacked()" + ("\nc.close()" if closed else "")
    )
    assert far_board.eval("u") > 0
    far_board.link.soft_reset()
    far_board.network()
    far_board.exec(CHURN)
    far_board.exec("for i in range(5): churn(); time.sleep_ms(20)")
    assert far_board.eval("(netconn.blocks(), lwipstats.counters()['tcp_active'])") == (0, 0)
    assert far_board.eval("lwipstats.counters()['seg_used']") == 0
    peer.wait()


def test_views_of_one_buffer_and_shared_slots(far_board, peer):
    far_board.exec(
        f"c = Netconn(); c.connect(({HOST!r}, {peer.sink}))\nb = os.urandom(40000)\nm = memoryview(b)\n"
        "for i in range(0, 40000, 1000): c.write(m[i:i + 1000], NETCONN_NOCOPY)\n"
        "d = hashlib.sha256(b).digest()\ndel b, m\nchurn()\nc.flush(); c.close()"
    )
    assert peer.wait() == (40000, far_board.eval("d").hex())


def test_small_writes_are_not_throttled_by_slots(far_board, peer):
    # More writes than there are slots, each of its own object, and nothing acknowledged meanwhile.
    far_board.exec(
        f"c = Netconn(); c.connect(({HOST!r}, {peer.sink})); c.setblocking(False)\nh = hashlib.sha256()\nn = 0\n"
        "for i in range(45):\n b = os.urandom(600); k = c.write(b, NETCONN_NOCOPY)\n"
        " if k is None: break\n h.update(b[:k]); n += k\n"
        "u = c.unacked(); r = c.stats()[2]\nc.setblocking(True); c.flush(); c.close()"
    )
    assert far_board.eval("n") == 45 * 600
    assert far_board.eval("u") > 32 * 600  # more in flight than the slots could refer to
    assert far_board.eval("r") <= 32
    assert peer.wait() == (27000, far_board.eval("h.digest()").hex())


def test_received_memory_is_the_callers_until_freed(far_board, peer):
    peer.source_bytes = 40_000
    far_board.exec(
        f"c = Netconn(); c.connect(({HOST!r}, {peer.source}))\nkept = []\nh = hashlib.sha256()\nn = 0\n"
        "p0 = lwipstats.counters()['pool_used']\n"
        "while True:\n nb = Netbuf(); k = c.recv(nb)\n if not k: break\n n += k\n"
        " if len(kept) < 4:\n  kept.append(nb); held = lwipstats.counters()['pool_used']\n else:\n"
        "  while True:\n   h.update(nb)\n   if not nb.next(): break\n  nb.free()\n"
        "first = hashlib.sha256()\nfor nb in kept:\n while True:\n  first.update(nb)\n  if not nb.next(): break\n"
        "for nb in kept: nb.free()\nc.close()\nafter = lwipstats.counters()['pool_used']\nfirst = first.digest()"
    )
    assert far_board.eval("n") == 40_000
    assert far_board.eval("held") > far_board.eval("p0")
    assert far_board.eval("after") == far_board.eval("p0")
    data = pseudo_random(40_000)
    # What was kept is the beginning of the stream, unchanged by all that came after it.
    first = far_board.eval("first")
    assert any(hashlib.sha256(data[:k]).digest() == first for k in range(1460, 40_001))


def test_dropped_netbufs_give_their_memory_back(far_board, peer):
    peer.source_bytes = 30_000
    far_board.exec(
        f"c = Netconn(); c.connect(({HOST!r}, {peer.source}))\np0 = lwipstats.counters()['pool_used']\n"
        "while True:\n nb = Netbuf()\n if not c.recv(nb): break\n"
        "del nb\nc.close()\nchurn()\nchurn()\nafter = lwipstats.counters()['pool_used']"
    )
    assert far_board.eval("after") == far_board.eval("p0")


def test_a_view_is_read_only_and_survives_free(far_board, peer):
    peer.source_bytes = 2000
    far_board.exec(
        f"c = Netconn(); c.connect(({HOST!r}, {peer.source}))\nnb = Netbuf(); c.recv(nb)\nv = memoryview(nb)\n"
        "try:\n v[0] = 1\n w = 'written'\nexcept TypeError:\n w = 'refused'\n"
        "nb.free(); x = v[0]; k = len(nb); c.abort()"
    )
    assert far_board.eval("(w, k)") == ("refused", 0)
