"""What is shown on stderr while a bench runs: one line a test and one an interval."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from upyperf.analysis.figures import label_of
from upyperf.analysis.units import format_loss, format_rate
from upyperf.events import ErrorEvent, Event, IntervalEvent, NoteEvent, RunEndEvent, RunStartEvent


class Progress:
    """Listens to the events; streams of one interval are shown as their sum."""

    def __init__(self, console: Console, tests: int) -> None:
        self.console = console
        self.tests = tests
        self._number = 0
        self._streams = 1
        self._peer_talks = False
        self._pending: dict[tuple[bool, int], list[IntervalEvent]] = {}

    def status(self, text: str) -> None:
        """A line on what is being done."""
        self.console.print(Text(text, style="dim"))

    def _line(self, text: str, style: str) -> None:
        self.console.print(Text(f"      {text}", style=style), soft_wrap=True)

    def __call__(self, event: Event) -> None:
        """One event."""
        if isinstance(event, RunStartEvent):
            self._number += 1
            self._streams = int(event.test.options.get("parallel") or 1)
            self._pending.clear()
            self._peer_talks = False
            repeat = f", repeat {event.repeat}" if event.repeat > 1 else ""
            head = f"[{self._number}/{self.tests}] {label_of(event.test)}{repeat}"
            self.console.print(Text(head, style="bold"))
        elif isinstance(event, IntervalEvent):
            # The peer's rows cost the board nothing; the board's own, which come when it is over
            # (or with --live), are shown where the peer says nothing.
            self._peer_talks = self._peer_talks or event.source == "peer"
            if event.source == "peer" or not self._peer_talks:
                self._interval(event)
        elif isinstance(event, NoteEvent) and event.source == "host":
            self._line(event.text, "yellow")
        elif isinstance(event, RunEndEvent) and event.result.error:
            self._line(event.result.error.text, "red")
        elif isinstance(event, ErrorEvent) and event.source == "peer":
            self._line(event.text, "red")

    def _interval(self, event: IntervalEvent) -> None:
        key = (event.sender, event.end_us)
        rows = self._pending.setdefault(key, [])
        rows.append(event)
        if len(rows) < self._streams:
            return
        del self._pending[key]
        bits = sum(row.bits_per_second or 0.0 for row in rows)
        way = "board sends   " if event.sender else "board receives"
        span = f"{event.start_us / 1e6:.2f}-{event.end_us / 1e6:.2f} s"
        text = f"  {span:>18}  {way}  {format_rate(bits):>14}"
        lost = [row.lost for row in rows if row.lost is not None]
        packets = [row.packets for row in rows if row.packets is not None]
        if lost and packets:
            text += f"  lost {format_loss(sum(lost), sum(packets))}"
        if event.omitted:
            text += "  (omitted)"
        self.console.print(Text(text))
