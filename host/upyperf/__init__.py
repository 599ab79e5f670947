"""upyperf: the network-throughput bench for MicroPython boards."""

__version__ = "0.1.0"
