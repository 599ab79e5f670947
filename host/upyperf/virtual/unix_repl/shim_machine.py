# mypy: ignore-errors
"""Module `machine` of the unix board: the port's own, and what a serial board has beside it."""

import time as _time

import machine as _port

for _name in dir(_port):
    if _name not in ("__class__", "__dict__"):
        globals()[_name] = getattr(_port, _name)

_state = None  # VfsPosix of the board's state, which outlives a soft reset; set by server.py
_id = b""
_reset = False  # the process is to end as a hard reset does


def unique_id():
    return _id


def reset():
    global _reset
    _reset = True
    raise SystemExit


class RTC:
    """The PC's local time, moved by what datetime() was set to. It keeps time over soft resets."""

    def __init__(self, id=0):
        pass

    def _offset(self):
        try:
            with _state.open("/rtc", "r") as f:
                return int(f.read())
        except (OSError, ValueError):
            return 0

    def datetime(self, value=None):
        now = _time.time_ns() // 1000
        if value is None:
            seconds, micros = divmod(now + self._offset(), 1000000)
            y, mo, d, h, mi, s, wd = _time.localtime(seconds)[:7]
            return (y, mo, d, wd, h, mi, s, micros)
        y, mo, d, _, h, mi, s, micros = value
        then = int(_time.mktime((y, mo, d, h, mi, s, 0, 0, -1))) * 1000000 + micros
        with _state.open("/rtc", "w") as f:
            f.write(str(then - now))
