"""The highest rate that theory allows, so that a figure can be judged and an impossible one is seen.

Every bound is in bit/s of payload (what iperf counts). Sources:

* Ethernet II / IEEE 802.3 clause 4: preamble and start delimiter 8 B, header 14 B, FCS 4 B and an
  inter-packet gap of 12 B go with each frame (38 B); the payload of a frame is padded to 46 B.
* IPv4 RFC 791 (20 B, fragments in units of 8 B), UDP RFC 768 (8 B), TCP RFC 9293 (20 B), time stamp
  option RFC 7323 (12 B with its padding).
* A window that is filled once per round trip: RFC 7323, section 1.1.
"""

from dataclasses import dataclass

ETHERNET_OVERHEAD = 38
"""Bytes on the wire beside the payload of an Ethernet frame, gap included."""
ETHERNET_MIN_PAYLOAD = 46
IPV4_HEADER = 20
UDP_HEADER = 8
TCP_HEADER = 20
TCP_TIMESTAMPS = 12
ETHERNET_MTU = 1500


@dataclass(frozen=True)
class Bound:
    """One upper bound.

    `bps` is in bit/s of payload; `short` (for a column) and `what` name what binds; `how` is the
    arithmetic in words.
    """

    bps: float
    short: str
    what: str
    how: str
    of_sender: bool = False
    """Whether it binds what the sender offers, not what the link can carry."""


def _wire_bytes(ip_payload: int, mtu: int) -> int:
    """Bytes on an Ethernet wire for one IP payload, cut into fragments where it does not fit the MTU."""
    fits = mtu - IPV4_HEADER
    pieces: list[int] = []
    while ip_payload > fits:
        piece = fits // 8 * 8
        pieces.append(piece)
        ip_payload -= piece
    pieces.append(ip_payload)
    return sum(max(ETHERNET_MIN_PAYLOAD, p + IPV4_HEADER) + ETHERNET_OVERHEAD for p in pieces)


def link_name(line_bps: float) -> str:
    """The name by which people know an Ethernet of this rate."""
    return {10e6: "10BASE-T", 100e6: "100BASE-TX", 1e9: "gigabit Ethernet"}.get(
        line_bps, f"{line_bps / 1e6:g} Mbit/s Ethernet"
    )


def udp_packets_per_second(line_bps: float, payload: int, mtu: int = ETHERNET_MTU) -> float:
    """Datagrams of `payload` bytes per second that an Ethernet of `line_bps` bit/s can carry.

    100 Mbit/s: 20 B 145 349/s, 1472 B 8127/s. Raises ValueError when payload is below 1.
    """
    if payload < 1:
        raise ValueError("a datagram needs at least 1 byte of payload")
    return line_bps / (8 * _wire_bytes(payload + UDP_HEADER, mtu))


def udp_goodput(line_bps: float, payload: int = 1472, mtu: int = ETHERNET_MTU) -> Bound:
    """UDP over Ethernet for datagrams of `payload` bytes. 100BASE-TX, 1472 B: 95.7 Mbit/s."""
    pps = udp_packets_per_second(line_bps, payload, mtu)
    wire = _wire_bytes(payload + UDP_HEADER, mtu)
    return Bound(
        pps * payload * 8,
        "wire",
        f"{link_name(line_bps)}, UDP {payload} B",
        f"{payload} B of payload in {wire} B on the wire, {pps:.0f} datagrams/s",
    )


def tcp_goodput(line_bps: float, mss: int = 1460, *, timestamps: bool = False) -> Bound:
    """TCP over Ethernet with full segments of `mss` bytes (options excluded from the payload).

    100BASE-TX: 94.9 Mbit/s, with time stamps 94.1. ACKs travel the other way and cost nothing on a
    full-duplex link. Raises ValueError when nothing is left for the payload.
    """
    payload = mss - (TCP_TIMESTAMPS if timestamps else 0)
    if payload < 1:
        raise ValueError(f"an MSS of {mss} B leaves no room for payload")
    wire = max(ETHERNET_MIN_PAYLOAD, mss + TCP_HEADER + IPV4_HEADER) + ETHERNET_OVERHEAD
    return Bound(
        line_bps * payload / wire,
        "wire",
        f"{link_name(line_bps)}, TCP" + (" with time stamps" if timestamps else ""),
        f"{payload} B of payload in {wire} B on the wire",
    )


def window_rtt(window_bytes: int, rtt_us: float) -> Bound:
    """TCP cannot send more than one window per round trip. 5760 B at 5 ms: 9.2 Mbit/s.

    Raises ValueError for a round trip that is not positive.
    """
    if rtt_us <= 0:
        raise ValueError("a round trip takes more than 0 µs")
    return Bound(
        window_bytes * 8e6 / rtt_us,
        "window/RTT",
        "window / RTT",
        f"{window_bytes} B every {rtt_us / 1000:g} ms",
    )


def spi_bus(clock_hz: float, payload: int, overhead: int) -> Bound:
    """A module behind SPI: one bit per clock, `overhead` bytes of commands and headers per `payload`.

    Raises ValueError when payload is below 1 or overhead below 0.
    """
    if payload < 1 or overhead < 0:
        raise ValueError("payload must be at least 1 B and overhead not negative")
    return Bound(
        clock_hz * payload / (payload + overhead),
        "SPI",
        f"SPI at {clock_hz / 1e6:g} MHz",
        f"{payload} B of payload in {payload + overhead} B on the bus",
    )


def target_rate(bps: float) -> Bound:
    """The rate that was asked for with -b: a measured figure cannot be above it for long."""
    return Bound(bps, "-b", "target rate (-b)", "the sender paces itself to this rate", of_sender=True)


TOLERANCE = 0.01
"""A figure counts as above its bound from 1 % on: clocks and the ends of a run differ by some ms."""


def is_above(measured_bps: float, bound: Bound, tolerance: float = TOLERANCE) -> bool:
    """Whether a measured payload rate in bit/s cannot be true of a link with this bound."""
    return measured_bps > bound.bps * (1 + tolerance)
