"""What every launcher gives back: a board that exists as long as somebody holds on to it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class VirtualBoard(ABC):
    """A running virtual board.

    device: what upyperf.link.connect() takes (a pty's name, a URL);
    peer_host: address at which programs on the board reach this PC;
    listen_host: address on this PC at which a peer must listen to be reached so.
    """

    device: str
    peer_host: str
    listen_host: str

    @abstractmethod
    def alive(self) -> bool:
        """Whether the board's process still runs."""

    @abstractmethod
    def close(self) -> None:
        """End the board; returns within seconds, may be called again."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
