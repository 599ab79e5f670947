# mypy: ignore-errors
"""First file of the unix board's MicroPython process (see server.py).

The server is imported, so that this file's globals, MicroPython's `__main__`, are the user's.
"""

import server

server.serve(globals())
