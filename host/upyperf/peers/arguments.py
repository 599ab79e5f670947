"""A planned test -> the command line of the iperf program that is its other end."""

from __future__ import annotations

from typing import Any

from upyperf.errors import UpyperfError
from upyperf.records import Test


def server(test: Test, address: str, port: int, interval_s: float) -> list[str]:
    """Arguments for the program as server of the test."""
    words = ["-s", "-p", str(port), "-i", _number(interval_s)]
    if address not in ("", "0.0.0.0"):
        words += ["-B", address]
    if ":" in address:
        words += ["-6"] if test.version == 3 else ["-V"]
    if test.version == 3:
        return [*words, "-f", "k", "--forceflush"]
    if test.proto == "udp":
        words.append("-u")
    if window := test.options.get("window"):
        words += ["-w", str(window)]
    return [*words, "-f", "k"]


def client(test: Test, host: str, port: int, interval_s: float, listen_port: int | None = None) -> list[str]:
    """Arguments for the program as client of a board that serves the test.

    The test's mode is the board's: a board that receives is sent to. `listen_port`: where an
    iPerf 2 client waits for the board's own connection (-d, -r). Raises UpyperfError of kind
    unsupported for what the program cannot do.
    """
    options = test.options
    words = ["-c", host, "-p", str(port), "-i", _number(interval_s), *_direction(test)]
    if test.version == 3:
        words += ["-f", "k", "--forceflush", "--connect-timeout", "10000"]
    else:
        words += ["-f", "k"]
        if test.mode in ("dual", "tradeoff") and listen_port:
            words += ["-L", str(listen_port)]
    if test.proto == "udp":
        words.append("-u")
    words += _amount(options)
    letters = {
        "length": "-l", "bandwidth": "-b", "parallel": "-P", "window": "-w", "mss": "-M", "tos": "-S",
    }  # fmt: skip
    for name, letter in letters.items():
        if options.get(name) is not None and not (name == "parallel" and options[name] == 1):
            words += [letter, _number(options[name])]
    if options.get("nodelay"):
        words.append("-N")
    if options.get("ipv6"):
        words.append("-6" if test.version == 3 else "-V")
    if options.get("omit"):
        if test.version == 2:
            raise UpyperfError("unsupported", "omit: iPerf 2 has no -O")
        words += ["-O", _number(options["omit"])]
    return words


def _direction(test: Test) -> list[str]:
    if test.mode == "receive":
        return []
    words = {
        (3, "send"): ["-R"],
        (3, "bidir"): ["--bidir"],
        (2, "send"): ["-R"],
        (2, "bidir"): ["--full-duplex"],
        (2, "dual"): ["-d"],
        (2, "tradeoff"): ["-r"],
    }.get((test.version, test.mode))
    if words is None:
        raise UpyperfError("unsupported", f"mode {test.mode}: iPerf {test.version} does not have it")
    return words


def _amount(options: dict[str, Any]) -> list[str]:
    if options.get("num_bytes"):
        return ["-n", _number(options["num_bytes"])]
    if options.get("blocks"):
        return ["-k", _number(options["blocks"])]
    return ["-t", _number(options.get("time") or 10)]


def _number(value: Any) -> str:
    return str(int(value)) if float(value).is_integer() else str(value)
