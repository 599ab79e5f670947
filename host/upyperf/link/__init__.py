"""Board -> a live serial connection, over mpremote's transport (docs/contracts.md, section 5)."""

from upyperf.link.identity import Identity
from upyperf.link.link import BoardExecError, Link, connect

__all__ = ["BoardExecError", "Identity", "Link", "connect"]
