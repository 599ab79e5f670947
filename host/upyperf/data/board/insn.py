"""Runs on the board (MicroPython): one measured transfer for each call. Sent over the REPL by
upyperf.insn; needs the modules lwipstats and netconn of our firmware.

run(layer, transport, direction, size, total, host, port) -> (bytes, busy_ns, idle_ns): the loop that any
program would write, and nothing else. At -icount shift=0 busy_ns is the count of instructions.
"""

import gc
import socket
import time

import lwipstats

try:
    import netconn
    from netconn import NETCONN_NOCOPY, NETCONN_TCP, NETCONN_UDP
except ImportError:
    netconn = None


def nic_up():
    import network

    nic = network.LAN()
    nic.active(True)
    for _ in range(1000):
        if nic.isconnected():
            return nic.ifconfig()[0]
        time.sleep_ms(10)
    raise OSError("no address")


def _sock_send(s, buf, total):
    n = 0
    write = s.write
    while n < total:
        n += write(buf)
    return n


def _nc_send(s, buf, total):
    n = 0
    write = s.write
    while n < total:
        n += write(buf, NETCONN_NOCOPY)
    s.flush()
    return n


def _raw_send(s, buf, total):
    s.pump(buf, total, len(buf))
    s.flush()
    return total


def _sock_receive(s, buf, total):
    # recv_into as a stream would wait until the buffer is full: that is what a receiver wants
    n = 0
    readinto = s.readinto
    while True:
        k = readinto(buf)
        if not k:
            return n
        n += k


def _nc_readinto(s, buf, total):
    n = 0
    readinto = s.readinto
    while True:
        k = readinto(buf)
        if not k:
            return n
        n += k


def _nc_netbuf(s, buf, total):
    nb = netconn.Netbuf()
    n = 0
    recv = s.recv
    while True:
        k = recv(nb)
        if not k:
            nb.free()
            return n
        n += k


def _raw_receive(s, buf, total):
    n = 0
    sink = s.sink
    while True:
        k = sink()
        if not k:
            return n
        n += k


def _sock_udp_send(s, buf, total):
    n = 0
    write = s.write
    while n < total:
        n += write(buf)
    return n


def _nc_udp_send(s, buf, total):
    n = 0
    send = s.send
    while n < total:
        n += send(buf, 64)
    return n


def _sock_udp_receive(s, buf, total):
    # a lost datagram ends it by the timeout
    n = 0
    readinto = s.readinto
    try:
        while n < total:
            n += readinto(buf)
    except OSError:
        pass
    return n


def _nc_udp_receive(s, buf, total):
    nb = netconn.Netbuf()
    n = 0
    recv = s.recv
    try:
        while n < total:
            n += recv(nb)
    except OSError:
        pass
    nb.free()
    return n


_LOOPS = {
    ("socket", "tcp", "send"): _sock_send,
    ("netconn", "tcp", "send"): _nc_send,
    ("raw", "tcp", "send"): _raw_send,
    ("socket", "tcp", "receive"): _sock_receive,
    ("netconn", "tcp", "receive"): _nc_readinto,
    ("netbuf", "tcp", "receive"): _nc_netbuf,
    ("raw", "tcp", "receive"): _raw_receive,
    ("socket", "udp", "send"): _sock_udp_send,
    ("netconn", "udp", "send"): _nc_udp_send,
    ("socket", "udp", "receive"): _sock_udp_receive,
    ("netconn", "udp", "receive"): _sock_udp_receive,
    ("netbuf", "udp", "receive"): _nc_udp_receive,
}


def _open(layer, transport, host, port):
    if layer == "socket":
        s = socket.socket(socket.AF_INET, socket.SOCK_STREAM if transport == "tcp" else socket.SOCK_DGRAM)
    else:
        s = netconn.Netconn(NETCONN_TCP if transport == "tcp" else NETCONN_UDP)
    s.connect((host, port))
    return s


def run(layer, transport, direction, size, total, host, port):
    loop = _LOOPS[layer, transport, direction]
    buf = bytearray(size)
    s = _open(layer, transport, host, port)
    tick_ns = 0
    if transport == "udp" and direction == "receive":
        # Datagrams come one by one with pauses (a stock socket keeps a single one), in which the board
        # wakes up for each tick: count what a waiting millisecond costs, and take it off.
        s.settimeout(0.3)
        b0, i0 = lwipstats.cpu()
        loop(s, buf, total)
        b1, i1 = lwipstats.cpu()
        tick_ns = (b1 - b0) / (i1 - i0)
        s.settimeout(3)
    if direction == "receive":
        s.write(b"%d" % total if transport == "tcp" else b"%d %d" % (size, total // size))
    gc.collect()
    b0, i0 = lwipstats.cpu()
    n = loop(s, buf, total)
    b1, i1 = lwipstats.cpu()
    s.close()
    return n, int(b1 - b0 - tick_ns * (i1 - i0)), i1 - i0
