"""Our own iperf package under CPython, served from the command line."""

from __future__ import annotations

import sys
from typing import Any

from upyperf.errors import UpyperfError
from upyperf.paths import firmware_package


def serve(version: int, udp: bool, address: str, port: int | None, one_off: bool) -> int:
    """Serve tests until Ctrl-C (or one), printing iperf's own lines. Returns the exit status.

    Raises UpyperfError of the package's error kind.
    """
    sys.path.insert(0, str(firmware_package().parent))
    import iperf  # type: ignore[import-not-found]
    from iperf.errors import IperfError  # type: ignore[import-not-found]

    options: dict[str, Any] = {"version": version, "udp": udp, "one_off": one_off}
    if address != "0.0.0.0":
        options["bind"] = address
    if port is not None:
        options["port"] = port

    def on_event(kind: str, fields: Any) -> None:
        if kind == "start":
            number = fields["options"].get("port")
            print(f"listening on port {number}; Ctrl-C ends", file=sys.stderr, flush=True)
        elif kind == "test":
            print(fields.text(), flush=True)
        elif kind == "error":
            print(f"test failed: {fields['text']}", file=sys.stderr, flush=True)

    try:
        iperf.server(on_event=on_event, **options)
    except IperfError as error:
        if error.kind == "interrupted":
            return 130
        raise UpyperfError(error.kind, error.text) from None
    return 0
