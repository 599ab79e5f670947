"""Both ends' figures of a run: how they are paired, when they disagree, and what that usually means."""

from upyperf.analysis.units import UNKNOWN, format_percent
from upyperf.records import DISAGREEMENT_LIMIT, BoardResult, Direction, PeerResult, Sum, Way

VIRTUAL_TIME = "virtual time"
"""The reason to exempt a board whose clock is not the PC's: its seconds are not the peer's."""


def difference(sender: Sum, receiver: Sum, proto: str) -> float | None:
    """Relative difference of the two ends of one direction, 0 to 1; None where it cannot be told.

    TCP: of the rates. UDP: of the bytes, with the lost datagrams added back at the receiver, because
    loss is shown on its own and is no disagreement (the datagram size is the sender's bytes/packets).
    """
    if proto == "udp":
        a, b = float(sender.bytes), float(receiver.bytes)
        if receiver.lost and sender.packets:
            b += receiver.lost * sender.bytes / sender.packets
    else:
        rate_a, rate_b = sender.bits_per_second, receiver.bits_per_second
        if rate_a is None or rate_b is None:
            return None
        a, b = rate_a, rate_b
    larger = max(a, b)
    return abs(a - b) / larger if larger > 0 else None


def pair(
    way: Way,
    proto: str,
    board: BoardResult | None,
    peer: PeerResult | None,
    exempt: str | None = None,
) -> Direction:
    """One direction (as the board sees it) with both ends' figures, flagged where they disagree.

    The peer's own output is preferred to what it reported through the protocol. With `exempt` (a
    reason) the difference is computed, but never flagged.
    """
    sends = way == "send"
    ours = (board.sent if sends else board.received) if board else None
    theirs = (peer.received if sends else peer.sent) if peer else None
    reported = (board.peer_received if sends else board.peer_sent) if board else None
    other = theirs or reported
    relative = None
    if ours is not None and other is not None:
        relative = difference(ours, other, proto) if sends else difference(other, ours, proto)
    return Direction(
        way=way,
        board=ours,
        peer=theirs,
        reported=reported,
        difference=relative,
        flagged=relative is not None and relative > DISAGREEMENT_LIMIT and exempt is None,
        exempt=exempt,
    )


def pair_all(
    mode: str, proto: str, board: BoardResult | None, peer: PeerResult | None, exempt: str | None = None
) -> list[Direction]:
    """The directions of a run of this mode ("send", "receive", or one of those with both)."""
    ways: tuple[Way, ...] = (
        ("send",) if mode == "send" else ("receive",) if mode == "receive" else ("send", "receive")
    )
    return [pair(way, proto, board, peer, exempt) for way in ways]


def difference_text(direction: Direction) -> str:
    """The difference in percent, with a digit more where "2.0 %" would hide on which side of 2 % it is."""
    if direction.difference is None:
        return UNKNOWN
    percent = abs(direction.difference) * 100
    close = abs(percent - DISAGREEMENT_LIMIT * 100) < 0.05
    return format_percent(percent, decimals=2 if close else 1)


def explain(direction: Direction, proto: str) -> str | None:
    """One line on a disagreement: how large, and what usually causes it; None where there is none."""
    if not direction.flagged or direction.difference is None:
        return None
    size = difference_text(direction)
    ours = direction.board
    theirs = direction.peer or direction.reported
    if ours is None or theirs is None:
        return f"the two ends differ by {size}"
    sender, receiver = (ours, theirs) if direction.way == "send" else (theirs, ours)
    if receiver.bytes == 0 < sender.bytes:
        return f"the ends differ by {size}: the receiver counted nothing; firewall, or the report was lost?"
    if proto == "udp":
        if receiver.bytes < sender.bytes:
            return (
                f"the ends differ by {size} beyond the loss: datagrams at the end of the run were lost "
                "where no later one shows the gap, or arrived after the receiver had stopped counting"
            )
        return f"the ends differ by {size}: more was received than sent; duplicates, or another sender?"
    if abs(sender.us - receiver.us) > 0.01 * max(sender.us, receiver.us, 1):
        return (
            f"the ends differ by {size}: they timed the run differently "
            f"({sender.us / 1e6:.2f} s sent, {receiver.us / 1e6:.2f} s received); "
            "a clock that drifts, or data still queued when the sender stopped: run longer"
        )
    if sender.bytes > receiver.bytes:
        return (
            f"the ends differ by {size}: data still queued when the test ended; "
            "run longer, or use a smaller send buffer"
        )
    return f"the ends differ by {size} though they timed the run alike: one of them miscounts"
