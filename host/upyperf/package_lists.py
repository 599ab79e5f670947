"""The lists of the device package's files: package.json (mip) and manifest.py (freezing).

`python -m upyperf.package_lists` writes both again after a file came or went.
"""

from __future__ import annotations

import json
from pathlib import Path

from upyperf import deploy
from upyperf.paths import root

MIP = Path("package.json")
MANIFEST = Path("firmware") / "iperf" / "manifest.py"
_MANIFEST = '''# Freezes the package into a firmware: in the board's manifest,
#     include("$(MPY_DIR)/../upyperf/firmware/iperf/manifest.py")
# Written by python -m upyperf.package_lists.
package(  # noqa: F821
    "iperf",
    (
{files}
    ),
    base_path="..",
    opt=3,
)
'''


def files() -> list[str]:
    """The files of the device package, by their path in firmware/."""
    return [source.path for source in deploy.sources() if source.path.startswith("iperf/")]


def _version() -> str:
    for line in (root() / "firmware" / "iperf" / "__init__.py").read_text(encoding="utf-8").splitlines():
        if line.startswith("__version__"):
            return line.partition('"')[2].rstrip('"')
    raise ValueError("firmware/iperf/__init__.py has no __version__")


def contents() -> dict[Path, str]:
    """What the two files must be."""
    names = files()
    document = {"urls": [[name, f"firmware/{name}"] for name in names], "deps": [], "version": _version()}
    inner = "\n".join(f'        "{name.removeprefix("iperf/")}",' for name in names)
    return {
        MIP: json.dumps(document, indent=2) + "\n",
        MANIFEST: _MANIFEST.format(files=inner),
    }


def main() -> None:
    """Write both files."""
    for path, text in contents().items():
        (root() / path).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
