"""What happens to DTR and RTS when a port is opened, closed, or used to reset a board.

The lines reset many boards: in the usual ESP circuit RTS alone asserted pulls EN low and DTR alone
pulls GPIO0 low, both or neither let the board run; boards with a bare RTS or DTR wired to reset need
it off (board.toml: `rts = false`). So the order is fixed here:

- opening: with a level given, the lines are set so before the port opens, else the driver's way (both
  asserted, DTR first). The CP210x driver of Windows sets them one by one at the first opening and so
  resets an ESP: there both are off at the opening, then DTR, then RTS (mpremote's order).
- closing: RTS off before DTR, else Windows resets an ESP at every close.
"""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass
from typing import Any

VID_SILICON_LABS = 0x10C4
RESET_PULSE = 0.1  # s, esptool's


@dataclass(frozen=True)
class Lines:
    """Levels that a board wants after opening; None leaves a line as the driver does it (asserted)."""

    dtr: bool | None = None
    rts: bool | None = None


def open_port(port: Any, lines: Lines, vid: int | None = None, platform: str = os.name) -> None:
    """Open `port`, a closed pyserial object; `vid` is the USB vendor of its adapter, if known."""
    if platform == "nt" and vid == VID_SILICON_LABS:
        port.dtr = False
        port.rts = False
        port.open()
        port.dtr = lines.dtr is not False
        port.rts = lines.rts is not False
        return
    if lines.dtr is not None:
        port.dtr = lines.dtr
    if lines.rts is not None:
        port.rts = lines.rts
    port.open()


def close_port(port: Any) -> None:
    """Close `port`; never raises, since a port that went away has to be closed, too."""
    # A pty has no such lines (ENOTTY), rfc2217 may wait in vain for the server's answer.
    with contextlib.suppress(OSError, ValueError):
        port.rts = False
        port.dtr = False
    with contextlib.suppress(OSError, ValueError):
        port.close()


def reset(port: Any, lines: Lines) -> None:
    """Pull the reset line of the usual ESP circuit (EN by RTS) for RESET_PULSE, GPIO0 high.

    Raises OSError on a port without such lines."""
    port.dtr = False
    port.rts = True
    time.sleep(RESET_PULSE)
    port.rts = False
    # DTR alone would pull GPIO0 low, so RTS goes first when both are wanted.
    if lines.rts is not False:
        port.rts = True
    if lines.dtr is not False:
        port.dtr = True
