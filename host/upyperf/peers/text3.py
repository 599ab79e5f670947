"""iperf3's text output, line by line (3.1 to 3.21)."""

from __future__ import annotations

import re

from upyperf.peers.rows import LOSS_PATTERN, RATE_PATTERN, SIZE_PATTERN, Gatherer, Row, best_bytes, number

_ROW = re.compile(
    r"\[\s*(?P<id>\d+|SUM)\](?:\[(?P<role>[TR]X)-[CS]\])?\s+(?P<start>[\d.]+)-\s*(?P<end>[\d.]+)\s+sec\s+"
    + SIZE_PATTERN
    + r"\s+"
    + RATE_PATTERN
    + r"(?P<rest>.*)"
)
_LOSS = re.compile(r"\s*" + LOSS_PATTERN)
_CONNECTED = re.compile(r"\[\s*\d+\] local \S+ port \d+ connected to ")
_RETRANSMITS = re.compile(r"\s+(?P<count>\d+)\s+(?:[\d.]+ [KMGT]?Bytes\b|$|sender)")
_COUNT = re.compile(r"\s+(?P<count>\d+)\s*(?:$|\(omitted\))")
_ERROR = re.compile(r"^iperf3: (?:error - )?(?P<text>.*)|^(?P<other>the client has .*|.*unable to .*)")


class Text3:
    """Parses the lines of one iperf3 process into a Gatherer.

    `sends`: whether that process sends in a one-way test; None in --bidir, where each row
    carries its role. `udp` tells what a bare count means (datagrams or retransmits).
    """

    def __init__(self, gatherer: Gatherer, sends: bool | None, udp: bool) -> None:
        self.gatherer = gatherer
        self.sends = sends
        self.udp = udp
        self.connections = 0
        self.ended = False
        self.error: str | None = None
        self._foreign = False

    def feed(self, line: str) -> Row | None:
        """Take one line; the row if it was one."""
        if self._foreign or line.startswith("Server output:"):
            # --get-server-output: what follows was printed at the other end.
            self._foreign = True
            return None
        if _CONNECTED.match(line):
            self.connections += 1
        elif match := _ERROR.match(line):
            self.error = (match["text"] or match["other"]).strip()
        elif match := _ROW.match(line):
            return self._row(match)
        return None

    def _row(self, match: re.Match[str]) -> Row | None:
        rest = match["rest"].rstrip()
        end_word = rest.rsplit(" ", 1)[-1]
        final = end_word if end_word in ("sender", "receiver") else None
        sender = match["role"] == "TX" if match["role"] else self.sends
        # Both ends' totals are printed for a stream; ours is the one of our own direction.
        reported = final is not None and (final == "sender") != bool(sender)
        start_us, end_us = round(float(match["start"]) * 1e6), round(float(match["end"]) * 1e6)
        loss = _LOSS.match(rest)
        packets, retries = None, None
        if loss:
            packets = int(loss["total"])
        elif self.udp and (count := _COUNT.match(rest)):
            packets = int(count["count"])
        elif not self.udp and sender and (count := _RETRANSMITS.match(rest)):
            retries = int(count["count"])
        jitter = number(loss["jitter"]) if loss and not sender else None
        row = Row(
            id=match["id"],
            sender=sender,
            start_us=start_us,
            end_us=end_us,
            bytes=best_bytes(
                match["size"], match["size_unit"], match["rate"], match["rate_unit"], match["rate_kind"],
                end_us - start_us, 5000.0,
            ),
            packets=packets,
            lost=int(loss["lost"]) if loss and not sender else None,
            jitter_us=jitter * 1e3 if jitter is not None else None,
            retries=retries,
            omitted="(omitted)" in rest,
            final=final is not None,
            total=match["id"] == "SUM",
            reported=reported,
        )  # fmt: skip
        self.ended = self.ended or final is not None
        self.gatherer.add(row)
        return row
