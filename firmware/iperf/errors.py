"""The one error type of the package (kinds: docs/contracts.md, section 1)."""


class IperfError(Exception):
    """A failure with a kind and one line of text: the cause and the next step."""

    def __init__(self, kind, text, errno=None):
        super().__init__(text)
        self.kind = kind
        self.text = text
        self.errno = errno
