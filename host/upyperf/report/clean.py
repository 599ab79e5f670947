"""Strings from boards, networks and programs made harmless before they reach a report.

An SSID, a board's name or a peer's error text may hold anything: escape sequences for the terminal,
control characters that XML forbids, marks that reverse the text, lone surrogates.
"""

import re

# C0 and C1 controls, the marks that reorder text, line and paragraph separators, the byte order mark,
# non-characters and lone surrogates (which cannot be written as UTF-8).
_BAD = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff\ud800-\udfff]"
)
_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[@-Z\\-_]")
_SPACES = re.compile(r"[\t\r\n\x0b\x0c\u2028\u2029]+")


def one_line(value: object, limit: int = 500) -> str:
    """The text of a value on one line without terminal escapes and control characters.

    Line breaks and tabs become a space, other bad characters "\ufffd"; text longer than `limit`
    characters is cut and ends in "…".
    """
    text = _ESCAPES.sub("", str(value))
    text = _BAD.sub("\ufffd", _SPACES.sub(" ", text)).strip()
    return text if len(text) <= limit else text[: limit - 1] + "…"


def lines(value: object, limit: int = 65536) -> str:
    """The same for text of several lines (a program's output): line breaks and tabs are kept."""
    text = str(value)
    if len(text) > limit:
        text = text[: limit - 1] + "…"
    text = _ESCAPES.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    return "".join(c if c in "\n\t" else _BAD.sub("\ufffd", c) for c in text)
