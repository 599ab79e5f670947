"""ASCII for a frame: loaded only for text that is none."""


def escape(text):
    """The JSON text with every character beyond ASCII as \\uXXXX."""
    # MicroPython's json leaves characters beyond ASCII as they are; mpremote and
    # terminals may split them.
    out = []
    for char in text:
        code = ord(char)
        if code < 127:
            out.append(char)
        elif code < 0x10000:
            out.append("\\u%04x" % code)
        else:
            code -= 0x10000
            out.append("\\u%04x\\u%04x" % (0xD800 | code >> 10, 0xDC00 | code & 0x3FF))
    return "".join(out)
