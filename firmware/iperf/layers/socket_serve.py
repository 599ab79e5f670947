"""Layer `socket`: listening, for servers and for the reverse legs of a client."""

import socket
import sys

from iperf.layers.socket import AGAIN, Sock, errno_of

_MP = sys.implementation.name == "micropython"


class Listener:
    """A listening TCP socket."""

    def __init__(self, s, cfg):
        self.s = self.poll_obj = s
        self.cfg = cfg
        self.ready = 0
        self.fd = -1 if _MP else s.fileno()
        s.setblocking(False)

    def accept(self):
        """(Sock, (ip, port)) or None when nobody waits."""
        try:
            s, addr = self.s.accept()
        except OSError as e:
            if errno_of(e) in AGAIN:
                return None
            raise
        remote = name(addr)
        sock = Sock(s, remote)
        sock.configure(self.cfg)
        return sock, remote

    def close(self):
        self.s.close()


class UdpServer:
    """A bound datagram socket that hears everybody; `connect` makes it the flow of one peer."""

    def __init__(self, s):
        self.s = self.poll_obj = s
        self.ready = 0
        self.fd = -1 if _MP else s.fileno()
        s.setblocking(False)

    def recvfrom_into(self, buf):
        """(n, address) or None. The address goes back into `sendto` and `connect` as it is."""
        try:
            if _MP:
                data, addr = self.s.recvfrom(len(buf))
                n = len(data)
                buf[:n] = data
                return n, addr
            return self.s.recvfrom_into(buf)
        except OSError as e:
            if errno_of(e) in AGAIN:
                return None
            raise

    def sendto(self, buf, addr):
        return self.s.sendto(buf, addr)

    def connect(self, addr):
        """The Sock of this peer alone; this object must not be used any more."""
        self.s.connect(addr)
        return Sock(self.s, name(addr))

    def name(self, addr):
        """(ip, port) of an address as text and number."""
        return name(addr)

    def close(self):
        self.s.close()


def name(addr):
    if isinstance(addr, tuple):
        return addr[0], addr[1]
    try:  # unix port: a packed sockaddr
        family, ip, port = socket.sockaddr(addr)[:3]
        return socket.inet_ntop(family, ip), port
    except (AttributeError, ValueError, TypeError, OSError):
        return None


def _bound(host, port, cfg, kind):
    # imported here: a name in this module would keep that one on the board for the whole test
    from iperf.layers import socket_open

    family, _ = socket_open.resolve(host, port, cfg, kind)
    s = socket_open.open_socket(kind, family, cfg)
    socket_open.bind(s, host, port, cfg, kind)
    return s


def tcp_listen(host, port, cfg, backlog):
    """A Listener. Raises IperfError usage when the port is taken."""
    s = _bound(host, port, cfg, socket.SOCK_STREAM)
    s.listen(backlog)
    return Listener(s, cfg)


def udp_bind(host, port, cfg):
    """A UdpServer. Raises IperfError usage when the port is taken."""
    return UdpServer(_bound(host, port, cfg, socket.SOCK_DGRAM))
