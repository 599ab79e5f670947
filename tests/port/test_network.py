# ruff: noqa: E501 (the board's programs as text)
"""network.LAN, sockets over real lwIP, the link, both ways to run lwIP."""

import hashlib
import time

import pytest
from harness.qemu_board import HOST, pseudo_random


def test_dhcp_and_static_address(board):
    assert board.eval("nic.ifconfig()[0]") == "10.0.2.15"
    board.exec("nic.ifconfig(('10.0.2.77', '255.255.255.0', '10.0.2.2', '10.0.2.3'))")
    assert board.eval("nic.ipconfig('addr4')") == ("10.0.2.77", "255.255.255.0")
    board.exec("nic.ipconfig(gw4='10.0.2.2', addr4='10.0.2.78/24')")  # in any order
    assert board.eval("nic.ipconfig('addr4')") == ("10.0.2.78", "255.255.255.0")
    board.exec(
        "nic.ipconfig(dhcp4=True)\nfor _ in range(500):\n if nic.ipconfig('has_dhcp4'): break\n time.sleep_ms(10)"
    )
    assert board.eval("nic.ifconfig()[0]") == "10.0.2.15"


def test_mac_address(board):
    assert board.eval("nic.config('mac')") == bytes.fromhex("525400123456")


def test_switches_that_this_mac_lacks_raise(board):
    for switch in ("rx_bd=8", "csum_tx=1"):
        code = f"try:\n nic.config({switch})\n print('ok')\nexcept ValueError as e:\n print('ValueError')"
        assert "ValueError" in board.exec(code)


def test_link_down_and_up(board):
    try:
        board.machine.set_link(False)
        time.sleep(0.2)
        assert board.eval("nic.isconnected()") is False
        assert board.eval("nic.status()") == 1
    finally:
        board.machine.set_link(True)
    time.sleep(0.2)
    assert board.eval("nic.isconnected()") is True


@pytest.mark.parametrize("service", ["task", "irq"])
def test_socket_both_ways(board, peer, service):
    board.exec(f"nic.config(service={service!r})")
    try:
        peer.source_bytes = 300_000
        board.exec(
            f"s = socket.socket(); s.connect(({HOST!r}, {peer.source}))\nh = hashlib.sha256()\nn = 0\n"
            "while True:\n d = s.recv(4096)\n if not d: break\n n += len(d); h.update(d)\ns.close()"
        )
        assert board.eval("(n, h.digest())") == (300_000, hashlib.sha256(pseudo_random(300_000)).digest())
        board.exec(
            f"s = socket.socket(); s.connect(({HOST!r}, {peer.sink}))\nh = hashlib.sha256()\n"
            "for _ in range(100):\n b = os.urandom(1777); s.write(b); h.update(b)\ns.close()"
        )
        assert peer.wait() == (177_700, board.eval("h.digest()").hex())
        assert board.eval("lwipstats.counters()['lock_errors']") == 0
    finally:
        board.exec("nic.config(service='task')")


def test_board_as_server(board):
    import socket

    address = board.machine.forward("tcp", 5005)
    board.exec("s = socket.socket(); s.bind(('', 5005)); s.listen(1); s.settimeout(10)")
    with socket.create_connection(address, 10) as end:
        end.sendall(b"hello")
        board.exec("c, a = s.accept(); c.write(c.recv(10)); c.close(); s.close()")
        assert end.recv(10) == b"hello"


def test_asyncio_stream(board, peer):
    code = f"""
import asyncio
async def main():
    r, w = await asyncio.open_connection({HOST!r}, {peer.echo})
    w.write(b'ping' * 500)
    await w.drain()
    got = await r.readexactly(2000)
    w.close()
    return got == b'ping' * 500
print(asyncio.run(main()))
"""
    assert "True" in board.exec(code)


def test_profile_and_counters_are_readable(board):
    profile = board.eval("lwipstats.profile()")
    assert profile["name"] == "tuned"
    assert profile["TCP_WND"] == 6 * profile["TCP_MSS"]
    assert profile["scaled"] == ["TCP_WND 23360 -> 8760 (the receive FIFO of 10560 B drops silently)"]
    counters = board.eval("lwipstats.counters()")
    assert {"tcp_write_errmem", "tcp_retrans", "mem_used", "pool_used", "tcp_pcb_used"} <= set(counters)
    busy, idle = board.eval("lwipstats.cpu()")
    board.exec("time.sleep_ms(200)")
    busy2, idle2 = board.eval("lwipstats.cpu()")
    assert idle2 - idle >= 100_000_000
    assert busy2 > busy


def test_tcp_survives_a_reset_of_the_board(board, peer):
    board.exec(f"s = socket.socket(); s.connect(({HOST!r}, {peer.sink})); s.write(b'x' * 100)")
    board.machine.reset()
    time.sleep(0.5)
    board.reconnect()
    board.network()
    peer.got.clear()
    board.exec(f"s = socket.socket(); s.connect(({HOST!r}, {peer.sink})); s.write(b'y' * 100); s.close()")
    assert peer.wait()[0] == 100
