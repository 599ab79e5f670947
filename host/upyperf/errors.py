"""The one error type of the host and the exit codes (docs/contracts.md, section 1)."""

EXIT_CODES: dict[str, int] = {
    "threshold": 1,
    "usage": 2,
    "unsupported": 2,
    "config": 2,
    "board": 3,
    "serial-lost": 3,
    "memory": 3,
    "flash": 4,
    "refused": 5,
    "unreachable": 5,
    "timeout": 5,
    "busy": 5,
    "closed": 5,
    "peer": 5,
    "wrong-peer": 5,
    "udp-handshake": 5,
    "network-down": 5,
    "protocol": 6,
    "interrupted": 130,
}


class UpyperfError(Exception):
    """A failure with a kind and one line of text: the cause and the next step.

    Raises ValueError for a kind that is not in EXIT_CODES, so that no failure leaves
    without an exit code.
    """

    def __init__(self, kind: str, text: str) -> None:
        if kind not in EXIT_CODES:
            raise ValueError(f"unknown error kind {kind!r}")
        super().__init__(text)
        self.kind = kind
        self.text = text

    @property
    def exit_code(self) -> int:
        """Exit status of the upyperf command for this failure."""
        return EXIT_CODES[self.kind]
