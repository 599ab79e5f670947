#!/usr/bin/env python3
"""The real iperf and iperf3 programs for the interop tests: the machine's own and those of Debian's
other suites, so that old and new versions are met on one machine.

    tools/peers.py fetch      have them below .cache/peers (quick when they are there)
    tools/peers.py list       program, version and path of each

A suite's packages are unpacked with their own libc, never installed; a small script per program
starts it with that libc. What a suite carries changes with time: the versions are read from the
programs themselves.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import debsrc

SUITES = ["bookworm", "trixie", "sid"]
PROGRAMS = ["iperf", "iperf3"]
WRAPPER = """\
#!/bin/sh
# {program} of Debian {suite}, with that suite's libc.
root={root}
exec "$root/{loader}" --argv0 {program} --library-path "{libraries}" "$root/usr/bin/{program}" "$@"
"""


@dataclass(frozen=True, order=True)
class Peer:
    """A real program: "iperf" or "iperf3", its version ("2.1.8"), and the file to start."""

    program: str
    version: str
    path: Path

    def __str__(self) -> str:
        return f"{self.program}-{self.version}"


def version_of(program: Path) -> str:
    """The version that the program says it is (raises DebsrcError when it does not run)."""
    try:
        done = subprocess.run([program, "-v"], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise debsrc.DebsrcError(f"{program} does not run: {error}") from None
    found = re.search(r"iperf(?: version)? (\d[\w.]*)", done.stdout + done.stderr)
    if not found:
        raise debsrc.DebsrcError(f"{program} -v says no version: {(done.stdout + done.stderr)[:200]!r}")
    return found[1]


def _wrap(root: Path, suite: str) -> None:
    """Write the start scripts into ``root``/peers."""
    loaders = sorted(
        path for path in root.rglob("ld-linux*.so.*") if path.is_file() and not path.is_symlink()
    )
    if not loaders:
        raise debsrc.DebsrcError(f"no loader among the packages of {suite}")
    folders = sorted({path.relative_to(root) for path in root.glob("**/lib/*-linux-gnu*") if path.is_dir()})
    (root / "peers").mkdir(exist_ok=True)
    for program in PROGRAMS:
        script = root / "peers" / program
        text = WRAPPER.format(
            program=program, suite=suite, root=f"'{root}'", loader=loaders[0].relative_to(root),
            libraries=":".join(f"$root/{folder}" for folder in folders),
        )  # fmt: skip
        script.write_text(text)
        script.chmod(0o755)


def _codename() -> str:
    found = re.search(r"^VERSION_CODENAME=(\S+)", Path("/etc/os-release").read_text(), re.M)
    return found[1] if found else ""


def suites() -> list[str]:
    """The suites whose programs the machine itself does not have."""
    return [suite for suite in SUITES if suite != _codename()]


def fetch() -> list[str]:
    """Have the programs of every suite; returns what failed, one line a suite."""
    failed = []
    for suite in suites():
        root = debsrc.CACHE / "peers" / suite
        try:
            debsrc.binaries(suite, PROGRAMS, root)
            _wrap(root, suite)
        except (debsrc.DebsrcError, subprocess.SubprocessError, OSError) as error:
            failed.append(f"iperf and iperf3 of Debian {suite}: {error}")
    return failed


def missing() -> list[tuple[str, str]]:
    """(suite, program) of what ``fetch`` should have brought and is not here; "own" for the machine's."""
    absent = [("own", program) for program in PROGRAMS if not shutil.which(program)]
    for suite in suites():
        folder = debsrc.CACHE / "peers" / suite / "peers"
        absent += [(suite, program) for program in PROGRAMS if not (folder / program).exists()]
    return absent


def available() -> list[Peer]:
    """The programs here, the machine's own first; each version once. Fetches nothing."""
    folders = [debsrc.CACHE / "peers" / suite / "peers" for suite in suites()]
    files = [Path(found) for program in PROGRAMS if (found := shutil.which(program))]
    files += [folder / program for folder in folders for program in PROGRAMS if (folder / program).exists()]
    peers: dict[tuple[str, str], Peer] = {}
    for file in files:
        version = version_of(file)
        peers.setdefault((file.name, version), Peer(file.name, version, file))
    return sorted(
        peers.values(), key=lambda peer: (peer.program, [int(n) for n in re.findall(r"\d+", peer.version)])
    )


def main() -> int:
    verb = sys.argv[1] if len(sys.argv) == 2 else ""
    if verb not in ("fetch", "list"):
        print(__doc__, file=sys.stderr)
        return 2
    failed = fetch() if verb == "fetch" else []
    for line in failed:
        print(f"peers: {line}", file=sys.stderr)
    if verb == "list":
        for peer in available():
            print(peer.program, peer.version, os.path.relpath(peer.path))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
