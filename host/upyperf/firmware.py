"""Build a board's firmware: `make firmware BOARD=qemu-an386`, cached by what it is made from.

Sources are Debian's source packages (tools/debsrc.py, SHA-256 pinned, unpatched), or the user's own
checkouts in MPY_DIR and LWIP_DIR. Nothing is written into the sources.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from upyperf.errors import UpyperfError
from upyperf.paths import root

BUILD_TIMEOUT_S = 1200


@dataclass(frozen=True)
class Source:
    """A Debian source package: where it is from and what its upstream tarball hashes to."""

    suite: str
    package: str
    version: str
    sha256: str
    variable: str
    """Environment variable that names the user's own checkout instead."""
    probe: str
    """A file that tells that a folder is such a checkout."""


MICROPYTHON = Source(
    "trixie", "micropython", "1.25.0+ds-1",
    "7b25be99a502f070b2de81dafc08da7051d992325d6e67daa9045a918fffdbea", "MPY_DIR", "py/mkenv.mk",
)  # fmt: skip
LWIP = Source(
    "trixie", "lwip", "2.2.1+dfsg1-1+deb13u1",
    "83729c274c499d3348e9fbbe043a3113f3fa8953e7efddc7c21c7fcbb1f2b7b1", "LWIP_DIR", "src/Filelists.mk",
)  # fmt: skip
# The older release line, for the tests that build the C module against both.
LWIP_2_1 = Source(
    "bookworm", "lwip", "2.1.3+dfsg1-2",
    "0a8276d09fc4e97bbba2f953d74af2388fc2195ea156be9d7589e297a68fde24", "LWIP_2_1_DIR", "src/Filelists.mk",
)  # fmt: skip


def cache() -> Path:
    """The folder for everything that can be made again: $UPYPERF_CACHE, else .cache of the checkout."""
    return Path(os.environ.get("UPYPERF_CACHE") or root() / ".cache")


def sources(source: Source) -> Path:
    """The unpacked source, fetched when needed. Raises UpyperfError `config`."""
    named = os.environ.get(source.variable)
    if named:
        folder = Path(named).expanduser().absolute()
        if not (folder / source.probe).exists():
            raise UpyperfError(
                "config", f"{source.variable}={named} is no {source.package} tree: it has no {source.probe}"
            )
        return folder
    dest = cache() / "src" / f"{source.package}-{source.version}"
    if (dest / source.probe).exists():
        return dest
    command = [
        sys.executable, str(root() / "tools" / "debsrc.py"), "fetch",
        source.suite, source.package, source.version, source.sha256, str(dest),
    ]  # fmt: skip
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S, check=False,
        env={**os.environ, "UPYPERF_CACHE": str(cache())},
    )  # fmt: skip
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise UpyperfError(
            "config",
            f"cannot fetch the source of {source.package}: {reason}; set {source.variable} to a checkout",
        )
    return dest


def _run_make(arguments: list[str], log: Path, **env: str) -> None:
    with log.open("ab") as out:
        out.write(("make " + " ".join(arguments) + "\n").encode())
        out.flush()
        try:
            done = subprocess.run(
                ["make", "--no-print-directory", *arguments],
                stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                timeout=BUILD_TIMEOUT_S, check=False,
                env={k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))} | env,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise UpyperfError("config", f"the build took more than {BUILD_TIMEOUT_S} s: see {log}") from None
    if done.returncode:
        lines = log.read_text(errors="replace").splitlines()
        errors = [t for t in lines if "error:" in t or "Error" in t or "undefined reference" in t]
        raise UpyperfError("config", f"the build failed: {(errors or lines or ['?'])[0].strip()} (see {log})")


def _mpy_cross(mpy: Path) -> Path:
    """mpy-cross of the same tree, built once beside the cache's other builds."""
    build = cache() / "build" / ("mpy-cross-" + hashlib.sha256(str(mpy).encode()).hexdigest()[:8])
    program = build / "mpy-cross"
    if not program.exists():
        build.mkdir(parents=True, exist_ok=True)
        log = build / "build.log"
        _run_make(
            ["-C", str(mpy / "mpy-cross"), f"-j{os.cpu_count() or 1}", f"BUILD={build}", "USER_C_MODULES="],
            log,
        )
    return program


def _files(folders: Iterable[Path]) -> list[Path]:
    found: list[Path] = []
    for folder in folders:
        found += [
            p for p in folder.rglob("*")
            if p.is_file() and "__pycache__" not in p.parts and "build" not in p.relative_to(folder).parts
        ]  # fmt: skip
    return sorted(found)


def _digest(files: Iterable[Path], *words: str) -> str:
    total = hashlib.sha256()
    for word in words:
        total.update(word.encode() + b"\0")
    for path in files:
        total.update(str(path.relative_to(root())).encode() + b"\0" + path.read_bytes() + b"\0")
    return total.hexdigest()[:16]


def compiler() -> str:
    """First line of the cross compiler's version. Raises UpyperfError `config` where there is none."""
    program = shutil.which("arm-none-eabi-gcc")
    if not program:
        raise UpyperfError(
            "config",
            "arm-none-eabi-gcc is not here: apt-get install gcc-arm-none-eabi libnewlib-arm-none-eabi",
        )
    done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=30, check=False)
    return done.stdout.splitlines()[0] if done.stdout else program


def profiles() -> list[str]:
    """Names of the lwIP option profiles there are, sorted."""
    return sorted(p.stem for p in (root() / "firmware" / "port" / "profiles").glob("*.toml"))


def build(
    board: str, profile: str = "tuned", *, lwip: Source = LWIP, freeze: Iterable[Path] = (), cflags: str = ""
) -> Path:
    """The firmware of a board of our port (an ELF file), built unless it is in the cache.

    profile: a name of profiles(); lwip: which lwIP; freeze: further Python modules or packages to freeze
    in (for comparisons); cflags: more flags for the compiler.
    Raises UpyperfError `config`: unknown board or profile, missing tools, sources or a failing build.
    """
    port = root() / "firmware" / "port"
    folder = root() / "boards" / board
    if not (folder / "board.mk").exists():
        have = ", ".join(sorted(p.parent.name for p in (root() / "boards").glob("*/board.mk")))
        raise UpyperfError("config", f"board {board} has no firmware that we build (these have: {have})")
    if profile not in profiles():
        raise UpyperfError("config", f"no lwIP profile {profile!r}: there are {', '.join(profiles())}")
    gcc = compiler()
    mpy, lwip_dir = sources(MICROPYTHON), sources(lwip)
    extra = [p.absolute() for p in freeze]
    words = [gcc, profile, str(mpy), str(lwip_dir), cflags, *(f"{p} {_extra_digest(p)}" for p in extra)]
    in_c = _files([port, root() / "firmware" / "netconn", folder])
    key = _digest([*in_c, *_files([root() / "firmware" / "iperf"])], *words)
    done = cache() / "firmware" / f"{board}-{profile}-{key}" / "firmware.elf"
    if done.exists():
        return done
    structure = _digest(in_c, *words)
    work = cache() / "build" / f"{board}-{profile}-{structure}"
    work.mkdir(parents=True, exist_ok=True)
    with (work / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if done.exists():
            return done
        arguments = [
            "-C", str(port), f"-j{os.cpu_count() or 1}", f"BOARD={board}", f"PROFILE={profile}",
            f"BUILD={work}", f"MPY_DIR={mpy}", f"LWIP_DIR={lwip_dir}", f"MICROPY_MPYCROSS={_mpy_cross(mpy)}",
            "MICROPY_MPYCROSS_DEPENDENCY=", f"CFLAGS_EXTRA={cflags}",
        ]  # fmt: skip
        _run_make(arguments, work / "build.log", UPYPERF_FREEZE_EXTRA=":".join(map(str, extra)))
        done.parent.mkdir(parents=True, exist_ok=True)
        for name in ("firmware.map", "lwip_profile.h"):
            shutil.copy2(work / name, done.parent / name)
        shutil.copy2(work / "firmware.elf", done.with_suffix(".new"))
        done.with_suffix(".new").rename(done)
    return done


def _extra_digest(path: Path) -> str:
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
    total = hashlib.sha256()
    for file in files:
        total.update(file.read_bytes())
    return total.hexdigest()[:16]


def main(argv: list[str] | None = None) -> int:
    """`python -m upyperf.firmware BOARD [--profile NAME]`: prints the path of the ELF file."""
    parser = argparse.ArgumentParser(prog="upyperf.firmware", description="Build a board's firmware.")
    parser.add_argument("board")
    parser.add_argument("--profile", default="tuned", help="lwIP options: " + ", ".join(profiles()))
    args = parser.parse_args(argv)
    try:
        print(build(args.board, args.profile))
    except UpyperfError as error:
        print(f"upyperf: {error.text}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
