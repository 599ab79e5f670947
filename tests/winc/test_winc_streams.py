"""Sockets of the driver against real servers on loopback, through the simulator."""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
from pathlib import Path

import pytest

BOTH = pytest.mark.parametrize("interpreter", ["micropython", "cpython"])


@BOTH
@pytest.mark.parametrize("firmware", ["19.4.4", "19.5.2", "19.6.1", "19.6.4", "19.7.7"])
def test_tcp_and_udp_echo_on_every_firmware(make_world, echo, firmware, interpreter):
    out = make_world(firmware).board(
        f"""
        nic.connect(SSID, KEY)
        s = socket.socket()
        s.connect((HOST, {echo.port}))
        for n in (1, 2, 3, 1399, 1400, 1401, 1460, 1461, 5000):
            d = pattern(n)
            s.sendall(d)
            assert s.read(n) == d, n
        s.close()
        u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        u.settimeout(5)
        for n in (1400, 1, 2, 700, 0):
            d = pattern(n, n)
            assert u.sendto(d, (HOST, {echo.port})) == n
            r, a = u.recvfrom(1500)
            assert r == d and a == (HOST, {echo.port}), (n, len(r), a)
        u.close()
        nic.active(False)
        print(nic.counters()["spi_resyncs"])
        """,
        interpreter,
    )
    assert out.split() == ["0"]


@BOTH
def test_both_directions_at_once_keep_every_byte(world, echo, interpreter):
    out = world.board(
        f"""
        nic.connect(SSID, KEY)
        s = socket.socket()
        s.connect((HOST, {echo.port}))
        s.setblocking(False)
        block = pattern(4000)
        sent = got = 0
        total = 200000
        buf = bytearray(1500)
        while got < total:
            if sent < total:
                n = s.write(memoryview(block)[sent % 4000:])
                sent += n or 0
            n = s.readinto(buf)
            if n:
                for i in range(0, n, 97):
                    assert buf[i] == block[(got + i) % 4000], got + i
                got += n
        assert sent >= total
        s.setblocking(True)
        s.close()
        print("ok", nic.counters()["copied"])
        """,
        interpreter,
    )
    assert out.startswith("ok")


@BOTH
def test_server_accepts_and_keeps_listening(world, interpreter):
    got: list[bytes] = []

    def clients(port: int) -> None:
        for k in range(3):
            with socket.create_connection(("127.0.0.1", port), 20) as s:
                s.sendall(b"hello %d" % k)
                got.append(s.recv(100))

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]

    def later() -> None:
        for _ in range(200):
            try:
                clients(port)
                return
            except ConnectionRefusedError:
                threading.Event().wait(0.05)

    t = threading.Thread(target=later)
    t.start()
    world.board(
        f"""
        nic.connect(SSID, KEY)
        s = socket.socket()
        s.bind(("", {port}))
        s.listen(2)
        s.settimeout(0.001)
        try:
            while True:
                c, _ = s.accept()  # a time-out, or a client that was quick
                d = c.recv(100); c.send(d + b"!"); c.close()
                break
        except OSError as e:
            assert e.args[0] == 110, e.args
            n = 3
        else:
            n = 2
        s.settimeout(20)
        for _ in range(n):
            c, a = s.accept()
            assert a[0] == "127.0.0.1"
            c.settimeout(10)
            c.send(c.recv(100) + b"!")
            assert c.recv(10) == b""
            c.close()
        s.close()
        """,
        interpreter,
    )
    t.join(20)
    assert got == [b"hello 0!", b"hello 1!", b"hello 2!"]


@BOTH
def test_errno_values(world, echo, interpreter):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        nobody = closed.getsockname()[1]
        world.board(
            f"""
            s = socket
            assert error(s.socket)[0] == 100                       # module off: ENETDOWN
            nic.active(True)
            assert error(s.socket().connect, (HOST, 5))[0] == 100  # no network yet
            nic.connect(SSID, KEY)
            assert error(s.socket().connect, (HOST, {nobody}))[0] == 111
            assert error(s.socket().send, b"x")[0] == 107
            a = s.socket()
            a.connect((HOST, {echo.port}))
            assert error(a.connect, (HOST, {echo.port}))[0] == 106
            a.setblocking(False)
            assert error(a.recv, 5)[0] == 11
            assert a.read(5) is None and a.readinto(bytearray(5)) is None and a.readline() is None
            a.settimeout(0.1)
            n, text, took = error(a.recv, 5)
            assert n == 110 and 80 <= took < 2000, took
            a.close()
            assert error(a.send, b"x")[0] == 9
            u = s.socket(s.AF_INET, s.SOCK_DGRAM)
            assert error(u.sendto, bytes(1401), (HOST, 5))[0] == 90
            assert error(u.send, b"x")[0] == 107
            u.bind(("", 0))
            assert error(u.bind, ("", 0))[0] == 22
            assert error(s.socket, 10)[0] == 95
            b = s.socket()
            b.setblocking(False)
            assert error(b.connect, (HOST, {echo.port}))[0] == 115
            import time
            t0 = ms()
            while not b.ioctl(3, 4) and ms() - t0 < 5000:
                pass
            assert b.ioctl(3, 5) == 4
            b.close()
            assert error(s.getaddrinfo, "no.such.host.invalid", 80)[0] == -2
            assert s.getaddrinfo("10.1.2.3", 80) == [(2, 1, 0, "", ("10.1.2.3", 80))]
            """,
            interpreter,
        )


def test_all_sockets_used(world, echo):
    world.board(
        f"""
        nic.connect(SSID, KEY)
        a = []
        for _ in range(7):
            s = socket.socket()
            s.connect((HOST, {echo.port}))
            a.append(s)
        n, text, _ = error(socket.socket().connect, (HOST, {echo.port}))
        assert n == 24 and "7 TCP" in text
        u = []
        for _ in range(4):
            s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            s.bind(("", 0))
            u.append(s)
        assert error(socket.socket(socket.AF_INET, socket.SOCK_DGRAM).bind, ("", 0))[0] == 24
        for i, s in enumerate(a):
            s.send(bytes([i]) * 10)
        for i, s in enumerate(a):
            assert s.read(10) == bytes([i]) * 10
        a.pop(3).close()
        s = socket.socket()
        s.connect((HOST, {echo.port}))
        s.send(b"again")
        assert s.read(5) == b"again"
        for s in a + u:
            s.close()
        """
    )


def test_select_poll(world, echo):
    world.board(
        f"""
        import select
        nic.connect(SSID, KEY)
        s = socket.socket()
        s.setblocking(False)
        try:
            s.connect((HOST, {echo.port}))
        except OSError as e:
            assert e.args[0] == 115
        p = select.poll()
        p.register(s, select.POLLOUT)
        assert p.poll(5000) == [(s, select.POLLOUT)]
        p.modify(s, select.POLLIN)
        t0 = ms()
        assert p.poll(100) == []
        assert 90 <= ms() - t0 < 2000
        s.write(b"hello")
        assert p.poll(5000) == [(s, select.POLLIN)]
        assert s.read(5) == b"hello"
        l = socket.socket()
        l.bind(("", 0))
        l.listen(1)
        p.register(l, select.POLLIN)
        assert p.poll(50) == []
        s.close()
        l.close()
        """
    )


def test_asyncio_client_and_server(world, echo):
    done = threading.Event()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]

    def client() -> None:
        for _ in range(200):
            try:
                with socket.create_connection(("127.0.0.1", port), 20) as s:
                    s.sendall(b"line\n")
                    if s.recv(100) == b"LINE\n":
                        done.set()
                    return
            except ConnectionRefusedError:
                threading.Event().wait(0.05)

    t = threading.Thread(target=client)
    t.start()
    world.board(
        f"""
        nic.connect(SSID, KEY)
        socket.install()
        import asyncio
        served = asyncio.Event()
        listening = asyncio.Event()
        connected = []
        async def serve(r, w):
            line = await r.readline()
            w.write(line.upper())
            await w.drain()
            w.close()
            await w.wait_closed()
            served.set()
        async def ask(k):
            r, w = await asyncio.open_connection(HOST, {echo.port})
            connected.append(k)
            await listening.wait()
            d = pattern(3000, k)
            w.write(d)
            await w.drain()
            assert await r.readexactly(3000) == d
            w.close()
            await w.wait_closed()
        async def main():
            asking = [asyncio.create_task(ask(k)) for k in (1, 2, 3)]
            # Not at the same time: the module may give an accepted connection the very number that a
            # connect has just chosen, which then ends with ECONNABORTED.
            while len(connected) < 3:
                await asyncio.sleep_ms(5)
            await asyncio.start_server(serve, "0.0.0.0", {port})
            listening.set()
            await asyncio.gather(*asking)
            await asyncio.wait_for(served.wait(), 20)
        asyncio.run(main())
        """
    )
    t.join(20)
    assert done.is_set()


def certificate(folder: Path) -> tuple[Path, Path]:
    key, cert = folder / "key.pem", folder / "cert.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=winc.test"],
        check=True, capture_output=True, timeout=60,
    )  # fmt: skip
    return key, cert


def test_tls_over_the_socket(world, tmp_path):
    key, cert = certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        s, _ = listener.accept()
        with context.wrap_socket(s, server_side=True) as t:
            while data := t.recv(4096):
                t.sendall(data)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    world.board(
        f"""
        import tls
        nic.connect(SSID, KEY)
        s = socket.socket()
        s.connect((HOST, {listener.getsockname()[1]}))
        c = tls.SSLContext(tls.PROTOCOL_TLS_CLIENT)
        c.verify_mode = tls.CERT_NONE
        t = c.wrap_socket(s)
        d = pattern(5000)
        t.write(d)
        assert t.read(5000) == d
        t.close()
        """
    )
    thread.join(10)
    assert not thread.is_alive()
    listener.close()
