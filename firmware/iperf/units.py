"""Numbers as iperf reads and prints them."""

_BITS = "kmgt"


def parse(text, step):
    """An integer from an int, a float or text such as "10M"; `step` is the factor of one suffix
    letter: 1000, 1024, or 0 for iperf 2's rule (lower case x1000, upper case x1024).

    Raises ValueError.
    """
    if not isinstance(text, str):
        return int(text)
    t = text.strip()
    if not t:
        raise ValueError("empty number")
    i = _BITS.find(t[-1].lower())
    if i < 0:
        return int(float(t))
    s = step or (1024 if t[-1] in "KMGT" else 1000)
    return int(float(t[:-1]) * s ** (i + 1))


def scaled(value, step):
    """(text of four characters or more, prefix letter) of a value, as iperf formats it."""
    i = 0
    v = float(value)
    while v >= step and i < 4:
        v /= step
        i += 1
    if v < 9.995:
        t = "%4.2f" % v
    elif v < 99.95:
        t = "%4.1f" % v
    else:
        t = "%4.0f" % v
    return t, ("", "K", "M", "G", "T")[i]


def size(nbytes):
    """Bytes as "1.25 MBytes" (steps of 1024)."""
    t, p = scaled(nbytes, 1024)
    return t + " " + p + "Bytes"


def rate(bits_per_s, fmt="a"):
    """A rate as "10.5 Mbits/sec" (adaptive), or in the unit of iperf's -f letter k m g t K M G T."""
    if fmt in ("", "a"):
        t, p = scaled(bits_per_s, 1000)
        return t + " " + p + "bits/sec"
    if fmt == "A":
        t, p = scaled(bits_per_s / 8, 1024)
        return t + " " + p + "Bytes/sec"
    i = _BITS.find(fmt.lower()) + 1
    if fmt.islower():
        v, u = bits_per_s / 1000**i, "bits/sec"
    else:
        v, u = bits_per_s / 8 / 1024**i, "Bytes/sec"
    return scaled(v, 1e30)[0] + " " + fmt.upper() + u
