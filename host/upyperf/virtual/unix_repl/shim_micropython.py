# mypy: ignore-errors
"""Module `micropython` of the unix board: the port's own, with a kbd_intr() that the terminal obeys.

The unix port's kbd_intr(-1) gives SIGINT back to the kernel, which would end the process.
"""

import micropython as _port
import terminal as _tty

for _name in dir(_port):
    if _name not in ("__class__", "__dict__"):
        globals()[_name] = getattr(_port, _name)


def kbd_intr(char):
    if char < 0:
        _tty.binary()
    else:
        _tty.interruptible(char)
