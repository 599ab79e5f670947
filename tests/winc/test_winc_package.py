"""Facts about the driver as a package: its private errno constants, its lists of files."""

import errno
import json
import re
from pathlib import Path

FIRMWARE = Path(__file__).resolve().parents[2] / "firmware"


def test_numbers():
    seen = set()
    for file in [*(FIRMWARE / "winc1500").glob("*.py"), FIRMWARE / "iperf/layers/winc1500.py"]:
        for name, value in re.findall(r"^_(E[A-Z]+) = const\((\d+)\)", file.read_text(), re.M):
            assert getattr(errno, name) == int(value), f"{file.name}: {name}"
            seen.add(name)
    assert {"EIO", "EAGAIN", "ETIMEDOUT", "ECONNREFUSED", "ENOBUFS"} <= seen


def test_lists_of_files_are_complete():
    folder = FIRMWARE / "winc1500"
    files = {f.name for f in folder.glob("*.py")} - {"manifest.py"}
    document = json.loads((folder / "package.json").read_text())
    assert {target for target, _ in document["urls"]} == {f"winc1500/{name}" for name in files}
    assert all((folder / source).is_file() for _, source in document["urls"])
    frozen: list[str] = []
    scope = {"package": lambda name, files, base_path, opt: frozen.extend(files)}
    exec((folder / "manifest.py").read_text(), scope)
    assert set(frozen) == files
    version = re.search(r'__version__ = "(.+)"', (folder / "__init__.py").read_text())
    assert version is not None
    assert version[1] == document["version"]
