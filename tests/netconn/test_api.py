# ruff: noqa: E501, PT018 (the board's programs as text)
"""What each method does, on TCP and UDP."""

import contextlib
import hashlib
import socket
import time

import pytest
from harness.qemu_board import HOST, pseudo_random


def test_write_copy_nocopy_and_more(board, peer):
    board.exec(
        f"c = Netconn(); c.connect(({HOST!r}, {peer.sink}))\nb = bytearray(bytes(range(200)) * 40)\nn = 0\n"
        "n += c.write(b, NETCONN_COPY)\nfor i in range(len(b)): b[i] = 1\n"
        "n += c.write(b, NETCONN_NOCOPY)\nn += c.write(b'end', NETCONN_COPY | NETCONN_MORE)\nn += c.write(b'.')\n"
        "c.flush(); c.close()"
    )
    want = bytes(range(200)) * 40 + b"\x01" * 8000 + b"end."
    assert board.eval("n") == len(want)
    assert peer.wait() == (len(want), hashlib.sha256(want).hexdigest())


def test_readinto_netbuf_and_stream_mixed(board, peer):
    peer.source_bytes = 50_000
    board.exec(
        f"c = Netconn(); c.connect(({HOST!r}, {peer.source}))\nh = hashlib.sha256()\nn = 0\n"
        "small = bytearray(777); nb = Netbuf()\nk = 1\nturn = 0\n"
        "while k:\n turn += 1\n"
        " if turn & 1:\n  k = c.readinto(small); h.update(memoryview(small)[:k]); n += k\n"
        " else:\n  k = c.recv(nb); n += k\n  while k:\n   h.update(nb)\n   if not nb.next(): break\n"
        "c.close()"
    )
    assert board.eval("(n, h.digest())") == (50_000, hashlib.sha256(pseudo_random(50_000)).digest())


def test_would_block_is_none_and_timeouts_raise(board, peer):
    board.exec(
        f"c = Netconn(); c.connect(({HOST!r}, {peer.sink})); c.setblocking(False)\nb = bytearray(10); nb = Netbuf()\n"
        "r = [c.readinto(b), c.recv(nb)]\nc.settimeout(0.05)\nt = time.ticks_ms()\n"
        "try:\n c.readinto(b)\nexcept OSError as e:\n r.append(e.errno)\n"
        "r.append(40 <= time.ticks_diff(time.ticks_ms(), t) < 2000)\nc.close()"
    )
    assert board.eval("r") == [None, None, 110, True]
    peer.wait()


def test_connect_refused_and_reuse(board):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    board.exec(
        f"c = Netconn()\ntry:\n c.connect(({HOST!r}, {port}))\n e = 0\nexcept OSError as x:\n e = x.errno\n"
        "try:\n c.write(b'x')\n f = 0\nexcept OSError as x:\n f = x.errno\n"
    )
    assert board.eval("e") in (103, 104, 111)
    assert board.eval("f") == board.eval("e")
    assert "ValueError" in board.exec(
        "try:\n c.connect(('name', 1))\nexcept ValueError as e:\n print(repr(e))"
    )


def test_poll(board, peer):
    board.exec(
        f"import select\nc = Netconn(); c.setblocking(False)\n"
        f"try:\n c.connect(({HOST!r}, {peer.echo}))\nexcept OSError as e:\n err = e.errno\n"
        "p = select.poll(); p.register(c, select.POLLOUT)\nw = p.poll(2000)[0][1]\n"
        "p.modify(c, select.POLLIN)\nnone = p.poll(20)\nc.write(b'ping')\nr = p.poll(2000)[0][1]\n"
        "b = bytearray(9)\nk = c.readinto(b)\nc.close()\nn = p.poll(10)[0][1]"
    )
    assert board.eval("(err, w, none, r, k)") == (115, 4, [], 1, 4)
    assert board.eval("n") & 32  # POLLNVAL


def test_listen_accept_and_shutdown(board):
    host, port = board.machine.forward("tcp", 5006)
    board.exec(
        "s = Netconn(); s.bind(('', 5006)); s.listen(2); s.setblocking(False)\nr = [s.accept()]; s.settimeout(10)"
    )
    with socket.create_connection((host, port), 10) as end:
        end.sendall(b"early data")
        time.sleep(0.2)
        board.exec(
            "c, a = s.accept()\nb = bytearray(100)\nk = c.readinto(b)\nc.write(b'answer'); c.shutdown()"
        )
        assert board.eval("(r, bytes(b[:k]), c.local()[1])") == ([None], b"early data", 5006)
        assert end.recv(100) + end.recv(100) == b"answer"
        end.sendall(b"after your FIN")
        assert board.eval("(c.readinto(b), bytes(b[:14]))") == (14, b"after your FIN")
    assert board.eval("c.readinto(b)") == 0
    board.exec("c.close(); s.close()")


def test_connections_that_nobody_accepts_are_let_go(board):
    host, port = board.machine.forward("tcp", 5007)
    board.exec(
        "nb = c = None; gc.collect()\nbefore = lwipstats.counters(); s = Netconn(); s.bind(('', 5007)); s.listen(2)"
    )
    with contextlib.ExitStack() as stack:
        for _ in range(5):
            end = stack.enter_context(socket.create_connection((host, port), 10))
            end.sendall(b"x" * 100)
        time.sleep(0.3)
        board.exec("s.close(); gc.collect()")
        time.sleep(0.3)
    board.exec("after = lwipstats.counters()")
    same = "[(k, before[k], after[k]) for k in ('tcp_active', 'tcp_listen_used', 'pool_used', 'pbuf_used') if before[k] != after[k]]"
    assert board.eval(same) == []


@pytest.fixture
def udp():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
        end.bind(("127.0.0.1", 0))
        end.settimeout(10)
        yield end


def test_udp_header_and_referenced_payload(board, isolated, udp):
    port = udp.getsockname()[1]
    board.exec(
        f"u = Netconn(NETCONN_UDP); u.connect(({HOST!r}, {port}))\nb = bytearray(os.urandom(1472))\n"
        "sent = []\nfor i in range(5):\n b[0] = i\n u.send(b, 64)\n sent.append(hashlib.sha256(b).digest())\n"
        "sent.append(u.send(b'short'))\nu.config(header=64)\nu.write(b)"
    )
    got = [hashlib.sha256(udp.recv(2000)).digest() for _ in range(5)]
    assert got == board.eval("sent[:5]")
    assert udp.recv(2000) == b"short"
    assert hashlib.sha256(udp.recv(2000)).digest() == got[4]
    assert board.eval("lwipstats.counters()['pbuf_used']") == 0


def test_udp_queue_of_chosen_depth(board, isolated, udp):
    port = udp.getsockname()[1]
    for depth, want in ((1, 1), (4, 4), (20, 8)):
        board.exec(f"u = Netconn(NETCONN_UDP, {depth}); u.sendto(b'hello', ({HOST!r}, {port}))")
        _, address = udp.recvfrom(100)
        for i in range(8):
            udp.sendto(b"%d" % i * 3, address)
        time.sleep(0.3)
        board.exec(
            "u.setblocking(False)\nnb = Netbuf(); got = []\nwhile u.recv(nb) is not None: got.append(bytes(nb))\n"
            "d = u.stats()[1]; a = nb.addr() if got else None\nu.close(); nb.free()"
        )
        assert board.eval("got") == [b"%d" % i * 3 for i in range(want)], depth
        assert board.eval("d") == 8 - want
    assert board.eval("lwipstats.counters()['pool_used']") == 0


def test_udp_fragmented_datagram_is_a_chain(board, isolated, udp):
    port = udp.getsockname()[1]
    board.exec(f"u = Netconn(NETCONN_UDP); u.settimeout(5); u.sendto(b'hello', ({HOST!r}, {port}))")
    _, address = udp.recvfrom(100)
    data = pseudo_random(4000)
    udp.sendto(data, address)
    board.exec(
        "nb = Netbuf(); k = u.recv(nb)\nh = hashlib.sha256(nb); parts = 1\nwhile nb.next(): h.update(nb); parts += 1\nu.close()"
    )
    k, parts = board.eval("(k, parts)")
    assert k == 4000 and parts >= 2
    assert board.eval("h.digest()") == hashlib.sha256(data).digest()
    board.exec("nb.free()")


def test_pump_sends_exactly_and_sink_counts(board, peer):
    board.exec(
        f"c = Netconn(); c.connect(({HOST!r}, {peer.sink}))\nb = bytearray(os.urandom(4096))\n"
        "c.pump(b, 4096 * 50 + 5, 4096)\nc.flush()\nc.close()"
    )
    total, digest = peer.wait()
    block = board.eval("bytes(b)")
    assert total == 4096 * 50 + 5
    assert digest == hashlib.sha256(block * 50 + block[:5]).hexdigest()
    peer.source_bytes = 123_456
    board.exec(
        f"c = Netconn(); c.connect(({HOST!r}, {peer.source}))\nn = 0\nwhile True:\n k = c.sink()\n if not k: break\n n += k\n"
        "c.close()"
    )
    assert board.eval("n") == 123_456


def test_close_drains_the_pump(board, peer):
    board.exec(
        f"c = Netconn(); c.connect(({HOST!r}, {peer.sink}))\nb = bytearray(os.urandom(16384))\n"
        "c.setblocking(False)\nn = 0\nfor i in range(400):\n k = c.pump_write(b)\n n += k or 0\n"
        "c.close(); del c\ngc.collect()"
    )
    assert peer.wait()[0] == board.eval("n")


def test_keyboard_interrupt_while_waiting(board, peer):
    from upyperf.errors import UpyperfError

    with pytest.raises(UpyperfError):
        board.exec(f"c = Netconn(); c.connect(({HOST!r}, {peer.sink})); c.readinto(bytearray(9))", 1.0)
    board.reconnect()
    board.network()
    board.exec(f"c = Netconn(); c.connect(({HOST!r}, {peer.sink})); c.write(b'ok'); c.close()")


def test_closed_connection(board, peer):
    board.exec(f"c = Netconn(); c.connect(({HOST!r}, {peer.sink})); c.close(); c.close(); c.abort()")
    for call in ("c.write(b'x')", "c.readinto(bytearray(4))", "c.bind(('', 1))", "c.shutdown()"):
        assert "OSError" in board.exec(f"try:\n {call}\nexcept OSError as e:\n print(repr(e))"), call


def test_wrong_arguments(board):
    for call in ("Netconn(3)", "Netconn(NETCONN_UDP, 0)", "Netconn(NETCONN_UDP).pump(b'x', 1)",
                 "Netconn().send(b'x')", "Netconn().connect(('1.2.3.4', 70000))", "Netconn().config(tos=300)"):  # fmt: skip
        out = board.exec(
            f"try:\n {call}\n print('no error')\nexcept (ValueError, OSError) as e:\n print(repr(e))"
        )
        assert "Error" in out and "no error" not in out, call
    board.exec("gc.collect()")
    assert board.eval("lwipstats.counters()['udp_pcb_used']") == 1  # DHCP's own


def test_soft_irq_service_under_load(board, peer):
    board.exec("nic.config(service='irq')")
    try:
        peer.source_bytes = 400_000
        board.exec(
            f"c = Netconn(); c.connect(({HOST!r}, {peer.source}))\nh = hashlib.sha256()\nb = bytearray(3000)\n"
            "while True:\n k = c.readinto(b)\n if not k: break\n h.update(memoryview(b)[:k])\n x = [0] * 50\n gc.collect()\nc.close()"
        )
        assert board.eval("h.digest()") == hashlib.sha256(pseudo_random(400_000)).digest()
        assert board.eval("lwipstats.counters()['lock_errors']") == 0
    finally:
        board.exec("nic.config(service='task')")
