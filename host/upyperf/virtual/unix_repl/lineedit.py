# mypy: ignore-errors
"""The line editor of the friendly REPL: the keys of MicroPython's own readline."""

import terminal

_HISTORY = 20


class LineEditor:
    def __init__(self):
        self.history = []

    def read(self, prompt):
        """Return (0, line) at Enter, or (control character, line) for Ctrl-C and, on an empty line,
        Ctrl-A, B, D, E."""
        terminal.write(prompt)
        self.line = bytearray()
        self.pos = 0
        self.recall = len(self.history)
        while True:
            c = terminal.read_byte()
            if c == 3 or (c in (1, 2, 4, 5) and not self.line):
                return c, bytes(self.line)
            if c == 13:
                terminal.write(b"\r\n")
                line = bytes(self.line)
                if line.strip() and (not self.history or self.history[-1] != line):
                    self.history.append(line)
                    del self.history[:-_HISTORY]
                return 0, line
            if c == 27:
                self._escape()
            elif c == 1:
                self._move(0)
            elif c == 5:
                self._move(len(self.line))
            elif c in (8, 127):
                if self.pos:
                    self._move(self.pos - 1)
                    self._delete()
            elif c == 4:
                self._delete()
            elif c == 9:
                self._insert(b"    ")
            elif c >= 32:
                self._insert(bytes((c,)))

    def _escape(self):
        if terminal.read_byte() != 0x5B:  # "["
            return
        digits = b""
        c = terminal.read_byte()
        while 0x30 <= c <= 0x3B:
            digits += bytes((c,))
            c = terminal.read_byte()
        if c == 0x41:  # up
            self._show(self.recall - 1)
        elif c == 0x42:  # down
            self._show(self.recall + 1)
        elif c == 0x43 and self.pos < len(self.line):  # right
            self._move(self.pos + 1)
        elif c == 0x44 and self.pos:  # left
            self._move(self.pos - 1)
        elif c == 0x48 or (c == 0x7E and digits in (b"1", b"7")):  # home
            self._move(0)
        elif c == 0x46 or (c == 0x7E and digits in (b"4", b"8")):  # end
            self._move(len(self.line))
        elif c == 0x7E and digits == b"3":  # delete
            self._delete()

    def _move(self, to):
        if to < self.pos:
            terminal.write(b"\b" * (self.pos - to))
        elif to > self.pos:
            terminal.write(bytes(self.line[self.pos : to]))
        self.pos = to

    def _insert(self, text):
        rest = bytes(self.line[self.pos :])
        self.line = self.line[: self.pos] + text + rest
        self.pos += len(text)
        terminal.write(text + rest + b"\b" * len(rest))

    def _delete(self):
        rest = bytes(self.line[self.pos + 1 :])
        if self.pos < len(self.line):
            self.line = self.line[: self.pos] + rest
            terminal.write(rest + b"\x1b[K" + b"\b" * len(rest))

    def _show(self, index):
        if 0 <= index <= len(self.history):
            self.recall = index
            self._move(0)
            self.line = bytearray(self.history[index] if index < len(self.history) else b"")
            terminal.write(b"\x1b[K")
            self._move(len(self.line))


def continues(source):
    """Whether a REPL line needs another one: as MicroPython's mp_repl_continue_with_input()."""
    if not source.strip():
        return False
    depth = 0
    quote = b""
    i = 0
    while i < len(source):
        c = source[i : i + 1]
        if quote:
            if c == b"\\":
                i += 1
            elif source[i : i + len(quote)] == quote:
                i += len(quote) - 1
                quote = b""
            elif c == b"\n" and len(quote) == 1:
                quote = b""  # an unfinished short string is a syntax error, not a longer line
        elif c == b"#":
            while i + 1 < len(source) and source[i + 1] != 10:
                i += 1
        elif c in (b"'", b'"'):
            quote = c * 3 if source[i : i + 3] == c * 3 else c
            i += len(quote) - 1
        elif c in (b"(", b"[", b"{"):
            depth += 1
        elif c in (b")", b"]", b"}"):
            depth -= 1
        i += 1
    if depth > 0 or len(quote) == 3 or source.endswith(b"\\"):
        return True
    word = b""
    for i in range(len(source)):
        c = source[i]
        if not (97 <= c <= 122):
            break
        word += source[i : i + 1]
    compound = source.startswith(b"@") or word in (
        b"if", b"while", b"for", b"try", b"with", b"def", b"class", b"async",
    )  # fmt: skip
    return compound and not source.endswith(b"\n")
