"""Where events go: into records.jsonl, and to whoever listens (terminal, page)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from pydantic import ValidationError

from upyperf.events import Event, parse_event

Listener = Callable[[Event], None]


class Sink:
    """Takes events from any thread and hands each to every listener, one at a time."""

    def __init__(self, *listeners: Listener) -> None:
        self._listeners = list(listeners)
        self._lock = threading.Lock()

    def put(self, event: Event) -> None:
        """One event to every listener."""
        with self._lock:
            for listener in self._listeners:
                listener(event)

    def emit(self, source: str, kind: str, run: str | None, fields: dict[str, Any]) -> None:
        """An event from its fields; fields that do not fit the kind are kept as they are."""
        head = {"source": source, "kind": kind, "run": run}
        try:
            self.put(parse_event({**fields, **head}))
        except ValidationError:
            self.put(Event.model_validate({**fields, **head}))

    def note(self, text: str, run: str | None = None) -> None:
        """A line from the host."""
        self.emit("host", "note", run, {"text": text})
