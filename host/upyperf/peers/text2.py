"""iperf 2's output, line by line: text of 2.0, 2.1 and 2.2, and CSV (`-y C`)."""

from __future__ import annotations

import re

from upyperf.peers.rows import LOSS_PATTERN, RATE_PATTERN, SIZE_PATTERN, Gatherer, Row, best_bytes, number

_ID = r"\[\s*(?P<id>\*?\s*(?:\d+|SUM(?:-\d+)?))\]"
_ROW = re.compile(
    _ID
    + r"\s*(?P<start>[\d.]+)-\s*(?P<end>[\d.]+)\s+sec\s+"
    + SIZE_PATTERN
    + r"\s+"
    + RATE_PATTERN
    + r"(?P<rest>.*)"
)
_LOSS = re.compile(r"\s*(?:" + LOSS_PATTERN + r"|(?P<sum_lost>\d+)\s*/\s*(?P<sum_total>\d+)\s+\([^)]*%\))")
_CONNECTED = re.compile(_ID + r" local (?P<local>\S+) port (?P<port>\d+) connected with (?P<rest>.*)")
# 2.1 prints a range, "ports 5002-5201", when -L is below -p; it listens at the first.
_LISTENING = re.compile(r"Server listening on (TCP|UDP) ports? (?P<port>\d+)")
_REPORT = re.compile(_ID + r" Server Report:")
_SENT = re.compile(_ID + r" Sent (?P<count>\d+) datagrams")
_OOO = re.compile(_ID + r"\s*[\d.]+-\s*[\d.]+\s+sec\s+(?P<count>\d+) datagrams received out-of-order")
_WRITES = re.compile(r"\s+\d+/(?P<errors>\d+)\s+(?P<retries>\d+)\s+-?\d+K/")


class Text2:
    """Parses the lines of one iperf 2 process into a Gatherer.

    `server` says whether that process was started with -s: it decides what "(reverse)"
    and a starred id mean.
    """

    def __init__(self, gatherer: Gatherer, server: bool) -> None:
        self.gatherer = gatherer
        self.server = server
        self.connections = 0
        self._listening: set[int] = set()
        self._sends: dict[str, bool] = {}
        self._duplex: set[str] = set()
        self._report_next: set[str] = set()

    def feed(self, line: str) -> Row | None:
        """Take one line; the row if it was one."""
        if line[:4].isdigit() and line.count(",") >= 8:
            row = csv_row(line)
            if row:
                self.gatherer.add(row)
            return row
        if match := _LISTENING.search(line):
            self._listening.add(int(match["port"]))
        elif match := _CONNECTED.match(line):
            self._connected(match)
        elif match := _REPORT.match(line):
            self._report_next.add(_plain(match["id"]))
        elif match := _SENT.match(line):
            self.gatherer.add_sent(match["id"].strip(), int(match["count"]))
        elif match := _OOO.match(line):
            self.gatherer.add_ooo(match["id"].strip(), int(match["count"]))
        elif match := _ROW.match(line):
            return self._row(match)
        return None

    def _connected(self, match: re.Match[str]) -> None:
        if match["local"] == "0.0.0.0" and match["port"] == "0":
            return
        self.connections += 1
        ident = match["id"].replace(" ", "")
        reverse = "(reverse)" in match["rest"]
        if int(match["port"]) in self._listening:
            sends = reverse
        else:
            # A server that connects out does so for -d or -r, which it marks "(reverse)".
            sends = True if self.server else not reverse
        self._sends[ident] = sends
        if "(full-duplex)" in match["rest"]:
            self._duplex.add(ident)

    def _row(self, match: re.Match[str]) -> Row:
        ident = match["id"].replace(" ", "")
        start_us, end_us = round(float(match["start"]) * 1e6), round(float(match["end"]) * 1e6)
        decimals = len(match["end"].partition(".")[2])
        us_error = 0.5e6 * 10.0**-decimals
        loss = _LOSS.match(match["rest"])
        writes = _WRITES.match(match["rest"])
        jitter = number(loss["jitter"]) if loss and loss["jitter"] else None
        lost = loss["lost"] or loss["sum_lost"] if loss else None
        total = loss["total"] or loss["sum_total"] if loss else None
        reported = _plain(ident) in self._report_next and loss is not None
        if reported:
            self._report_next.discard(_plain(ident))
        row = Row(
            id=ident,
            sender=self._direction(ident, loss is not None),
            start_us=start_us,
            end_us=end_us,
            bytes=best_bytes(
                match["size"], match["size_unit"], match["rate"], match["rate_unit"], match["rate_kind"],
                end_us - start_us, us_error,
            ),
            packets=int(total) if total is not None else None,
            lost=int(lost) if lost is not None else None,
            jitter_us=jitter * 1e3 if jitter is not None else None,
            retries=int(writes["retries"]) if writes else None,
            total=ident.startswith("SUM"),
            reported=reported,
        )  # fmt: skip
        self.gatherer.add(row)
        return row

    def _direction(self, ident: str, has_loss: bool) -> bool | None:
        if ident in self._sends:
            return self._sends[ident]
        if has_loss and not ident.startswith("SUM"):
            return False
        plain = _plain(ident)
        if ident.startswith("*") and plain in self._sends:
            # Full duplex: the same connection's other direction. A client of -R stars its rows, too.
            return self._sends[plain] != (plain in self._duplex)
        return None


def _plain(ident: str) -> str:
    return ident.replace("*", "").strip()


def csv_row(line: str) -> Row | None:
    """The row of a CSV line (columns are counted, the version is not trusted); None if not one."""
    cells = [cell.strip() for cell in line.split(",")]
    try:
        if len(cells) in (9, 14):
            start, _, end = cells[6].partition("-")
            ident, size, rate, rest = cells[5], cells[7], cells[8], cells[9:]
        elif len(cells) in (17, 19):  # 2.2 with -e: start and end apart
            start, end = cells[6], cells[7]
            ident, size, rate, rest = cells[5], cells[8], cells[9], cells[10:]
        else:
            return None
        start_us, end_us = round(float(start) * 1e6), round(float(end) * 1e6)
        bits_per_second = float(rate)
        count = int(float(size))
        if start_us == 0 and bits_per_second > 0:
            # Times have one decimal here, the rate has all of them.
            end_us = round(count * 8e6 / bits_per_second)
        udp = rest if len(cells) in (14, 19) and len(rest) >= 5 and ":" not in rest[0] else []
        total = int(udp[2]) if udp else -1
        jitter = number(udp[0]) if udp else None
        return Row(
            id=ident,
            sender=None,
            start_us=start_us,
            end_us=end_us,
            bytes=count,
            packets=total if total >= 0 else None,
            lost=int(udp[1]) if udp and total >= 0 else None,
            ooo=int(udp[4]) if udp and total >= 0 else None,
            jitter_us=jitter * 1e3 if jitter is not None and total >= 0 else None,
            total=ident == "-1",
        )
    except (ValueError, IndexError):
        return None
