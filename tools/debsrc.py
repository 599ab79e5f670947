#!/usr/bin/env python3
"""Fetch Debian packages, source or binary, of any suite, without touching the machine's own apt lists.

    tools/debsrc.py fetch SUITE PACKAGE VERSION SHA256 DEST [--patched]
    tools/debsrc.py binaries SUITE DEST PACKAGE ...
    tools/debsrc.py versions PACKAGE [SUITE ...]

``fetch`` puts the unpacked source at DEST. VERSION is Debian's full version and SHA256 that of the
package's main ``.orig.tar.*`` (of the only ``.tar.*`` where there is no orig). Further orig
components go to DEST/<component>, as dpkg-source does; ``--patched`` brings Debian's packaging to
DEST/debian too and applies its patches. A DEST that already holds exactly this is left alone, so a
second call needs no network.

``binaries`` unpacks binary packages and all that they depend on, libc included, below DEST; nothing
is installed and no maintainer script runs. A DEST made from the same list is left alone.

apt is run with its own lists and state below the cache folder, one line for SUITE only, and the
mirror that the machine's own apt settings name. Signatures are checked against Debian's
archive keys. Neither root nor dpkg-dev is needed. Exit codes: 0 ok, 1 failed (one line says why).
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
CACHE = Path(os.environ.get("UPYPERF_CACHE") or Path(__file__).resolve().parent.parent / ".cache")
STAMP = ".debsrc"
LISTS_MAX_AGE_S = 6 * 3600
APT_TIMEOUT_S = 600


class DebsrcError(Exception):
    """What went wrong and the next step, in one line."""


def mirror() -> str:
    """The Debian mirror of this machine's own apt settings (raises DebsrcError where there is none)."""
    if not shutil.which("apt-get"):
        raise DebsrcError("apt-get is not here: Debian source packages can only be fetched on Debian")
    codename = ""
    with contextlib.suppress(OSError):
        found = re.search(r"^VERSION_CODENAME=\W*(\w+)", Path("/etc/os-release").read_text(), re.M)
        codename = found[1] if found else ""
    listing = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI)|$(RELEASE)|$(COMPONENT)"],
        capture_output=True, text=True, timeout=60, check=False,
    ).stdout  # fmt: skip
    candidates: list[tuple[int, str]] = []
    for line in dict.fromkeys(listing.splitlines()):
        uri, release, component = [*line.split("|"), "", ""][:3]
        if component != "main" or "security" in release or "security" in uri or "debian" not in uri:
            continue
        candidates.append((0 if release == codename else 1, uri))
    if not candidates:
        raise DebsrcError("no Debian mirror in this machine's apt sources (see /etc/apt/sources.list.d)")
    return min(candidates)[1]


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock, so that concurrent runs do the work once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


class Suite:
    """A private apt for the packages of one suite: ``kind`` is "deb-src" (source) or "deb" (binary)."""

    def __init__(self, name: str, kind: str = "deb-src") -> None:
        self.name = name
        self.kind = kind
        self.root = CACHE / kind / name
        self.lock = CACHE / kind / f"{name}.lock"

    def _options(self) -> list[str]:
        settings = {
            "Dir::State": self.root / "state",
            "Dir::State::lists": self.root / "lists",
            "Dir::State::status": self.root / "status",
            "Dir::Cache": self.root / "cache",
            "Dir::Cache::archives": self.root / "archives",
            "Dir::Etc::sourcelist": self.root / "sources.list",
            "Dir::Etc::sourceparts": "-",
            "Dir::Etc::preferences": "-",
            "Dir::Etc::preferencesparts": "-",
            "Dir::Log": self.root / "log",
            # Hooks of the machine's own apt (package-list caches and the like) are not for this one.
            "APT::Update::Post-Invoke-Success": "",
            "Acquire::Languages": "none",
            "Acquire::Retries": "3",
            "Acquire::AllowInsecureRepositories": "false",
            # A mirror that lags behind still has what its signed index names; pins and hashes hold.
            "Acquire::Check-Valid-Until": "false",
            "APT::Sandbox::User": "root",
        }
        options = [word for key, value in settings.items() for word in ("-o", f"{key}={value}")]
        return [*options, "-q"]

    def _apt(self, tool: str, *words: str, cwd: Path | None = None) -> str:
        command = [tool, *self._options(), *words]
        try:
            done = subprocess.run(
                command, cwd=cwd, capture_output=True, text=True, timeout=APT_TIMEOUT_S, check=False,
                stdin=subprocess.DEVNULL, env={**os.environ, "LC_ALL": "C.UTF-8"},
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise DebsrcError(
                f"{tool} {words[0]} for {self.name} gave no answer in {APT_TIMEOUT_S} s"
            ) from None
        problems = [
            t for t in (done.stderr + done.stdout).splitlines() if t.startswith(("E:", "Err:", "W: Failed"))
        ]
        if done.returncode or any(t.startswith("E:") for t in problems):
            reason = "; ".join(problems[:3]) or f"exit {done.returncode}"
            raise DebsrcError(f"{tool} {words[0]} for {self.name} failed: {reason}")
        return done.stdout

    def update(self, force: bool = False) -> None:
        """Bring the suite's package lists up to date (at most once in six hours unless forced)."""
        stamp = self.root / "updated"
        if not force and stamp.exists() and time.time() - stamp.stat().st_mtime < LISTS_MAX_AGE_S:
            return
        for folder in ("state", "lists/partial", "archives/partial", "cache", "log"):
            (self.root / folder).mkdir(parents=True, exist_ok=True)
        (self.root / "status").touch()
        if not KEYRING.exists():
            raise DebsrcError(f"{KEYRING} is missing (apt-get install debian-archive-keyring)")
        line = f"{self.kind} [signed-by={KEYRING}] {mirror()} {self.name} main\n"
        (self.root / "sources.list").write_text(line)
        self._apt("apt-get", "update")
        stamp.touch()

    def versions(self, package: str) -> list[str]:
        """Debian versions of the source package in this suite."""
        text = self._apt("apt-cache", "showsrc", "--only-source", package)
        return list(dict.fromkeys(re.findall(r"^Version: (\S+)", text, re.M)))

    def download(self, package: str, version: str, folder: Path, *, packaging: bool) -> None:
        """Put the tarballs (with Debian's own too if ``packaging``) into ``folder``, checked by apt
        against the signed index."""
        self.update()
        if version not in self.versions(package):
            self.update(force=True)
        offered = self.versions(package)
        if version not in offered:
            raise DebsrcError(
                f"{self.name} has no {package} {version} (it has: {', '.join(offered) or 'none'})"
            )
        what = ["--download-only"] if packaging else ["--download-only", "--tar-only"]
        self._apt("apt-get", "source", *what, "--only-source", f"{package}={version}", cwd=folder)

    def download_closure(self, packages: list[str], folder: Path) -> None:
        """Put binary packages and all that they depend on into ``folder`` (apt checks signature and hash).

        The private apt knows of no installed package, so that libc itself is among them.
        """
        self.update()
        words = ["install", "-y", "--download-only", "--no-install-recommends", *packages]
        try:
            self._apt("apt-get", *words)
        except DebsrcError:  # the lists may be older than the mirror
            self.update(force=True)
            self._apt("apt-get", *words)
        for file in (self.root / "archives").glob("*.deb"):
            file.rename(folder / file.name)


def _sha256(path: Path) -> str:
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _untar(archive: Path, dest: Path) -> None:
    dest.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        ["tar", "-x", "--no-same-owner", "--strip-components=1", "-f", archive, "-C", dest],
        check=True,
        timeout=300,
    )


def _unpack(folder: Path, package: str, sha256: str, dest: Path, patched: bool) -> None:
    """Unpack what ``folder`` holds to ``dest`` once the main tarball has the SHA-256 expected."""
    tarballs = sorted(p for p in folder.iterdir() if re.search(r"\.tar\.(gz|xz|bz2)$", p.name))
    debian = [p for p in tarballs if ".debian.tar." in p.name]
    components = {m[1]: p for p in tarballs if (m := re.search(r"\.orig-([\w-]+)\.tar\.", p.name))}
    main = [p for p in tarballs if p not in debian and p not in components.values()]
    if len(main) != 1:
        raise DebsrcError(f"{package}: one main tarball expected, got {[p.name for p in main]}")
    digest = _sha256(main[0])
    if digest != sha256.lower():
        raise DebsrcError(f"{main[0].name} has SHA-256 {digest}, expected {sha256}: not used")
    _untar(main[0], dest)
    for name, archive in components.items():
        _untar(archive, dest / name)
    for archive in debian:
        _untar(archive, dest / "debian")
    series = dest / "debian/patches/series"
    if patched and series.exists():
        for line in series.read_text().splitlines():
            name = line.split("#")[0].strip()
            if name:
                command = ["patch", "-p1", "-s", "-f", "-i", f"debian/patches/{name.split()[0]}"]
                subprocess.run(command, cwd=dest, check=True, timeout=60)


def fetch(suite: str, package: str, version: str, sha256: str, dest: Path, *, patched: bool = False) -> bool:
    """Have the unpacked source of ``package`` at ``dest``; False when it was there already.

    Raises DebsrcError when the suite does not offer that version, or the SHA-256 differs.
    """
    wanted = f"{package} {version} {sha256.lower()}{' patched' if patched else ''}\n"
    stamp = dest / STAMP
    source = Suite(suite)
    with locked(source.lock):
        if stamp.exists() and stamp.read_text() == wanted:
            return False
        dest.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{dest.name}-", dir=dest.parent) as scratch:
            files, tree = Path(scratch, "files"), Path(scratch, "tree")
            files.mkdir()
            source.download(package, version, files, packaging=patched)
            _unpack(files, package, sha256, tree, patched)
            (tree / STAMP).write_text(wanted)
            if dest.exists():
                shutil.rmtree(dest)
            tree.rename(dest)
    return True


def binaries(suite: str, packages: list[str], dest: Path) -> bool:
    """Have binary packages and their dependencies unpacked at ``dest``; False when they were there already.

    Which files they were stands, with their SHA-256, in DEST/.debsrc. Raises DebsrcError.
    """
    source = Suite(suite, "deb")
    stamp = dest / STAMP
    wanted = f"{suite} {' '.join(packages)}\n"
    with locked(source.lock):
        if stamp.exists() and stamp.read_text().startswith(wanted):
            return False
        dest.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{dest.name}-", dir=dest.parent) as scratch:
            files, tree = Path(scratch, "files"), Path(scratch, "tree")
            files.mkdir()
            source.download_closure(packages, files)
            made_of = [f"{_sha256(file)}  {file.name}\n" for file in sorted(files.iterdir())]
            for file in files.iterdir():
                subprocess.run(["dpkg-deb", "-x", file, tree], check=True, timeout=120)
            (tree / STAMP).write_text(wanted + "".join(made_of))
            if dest.exists():
                shutil.rmtree(dest)
            tree.rename(dest)
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description="Fetch Debian packages of any suite.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    one = verbs.add_parser("fetch", help="unpack one source package")
    for name in ("suite", "package", "version", "sha256", "dest"):
        one.add_argument(name)
    one.add_argument("--patched", action="store_true", help="bring debian/ too and apply its patches")
    two = verbs.add_parser("binaries", help="unpack binary packages with their dependencies")
    for name in ("suite", "dest"):
        two.add_argument(name)
    two.add_argument("packages", nargs="+")
    many = verbs.add_parser("versions", help="which versions the suites have")
    many.add_argument("package")
    many.add_argument("suites", nargs="*", default=["bookworm", "trixie", "sid"])
    args = parser.parse_args()
    try:
        if args.verb == "fetch":
            new = fetch(
                args.suite, args.package, args.version, args.sha256, Path(args.dest), patched=args.patched
            )
            print(f"{args.package} {args.version}: {'fetched' if new else 'already there'}")
        elif args.verb == "binaries":
            new = binaries(args.suite, args.packages, Path(args.dest))
            print(f"{' '.join(args.packages)}: {'fetched' if new else 'already there'}")
        else:
            for name in args.suites:
                suite = Suite(name)
                with locked(suite.lock):
                    suite.update()
                    print(f"{name}: {', '.join(suite.versions(args.package)) or 'none'}")
    except (DebsrcError, subprocess.SubprocessError, OSError) as error:
        print(f"debsrc: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
