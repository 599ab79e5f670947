"""Wi-Fi credentials: from the environment or a private file; they never reach a log."""

from __future__ import annotations

import os
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import platformdirs

from upyperf.errors import UpyperfError

SSID, KEY, FILE = "UPYPERF_WIFI_SSID", "UPYPERF_WIFI_KEY", "UPYPERF_WIFI_FILE"


@dataclass(frozen=True)
class WifiCredentials:
    """Name and key of a network; the key is in no repr."""

    ssid: str
    key: str = field(repr=False)


def default_file() -> Path:
    """The private file that is read when the environment says nothing."""
    return platformdirs.user_config_path("upyperf") / "wifi.toml"


def credentials(environment: Mapping[str, str] | None = None) -> WifiCredentials:
    """The credentials: the environment's first, then the file's (ssid = "…", key = "…").

    Raises UpyperfError of kind config: none given, a file others can read, a key that no
    network can have.
    """
    env = os.environ if environment is None else environment
    if env.get(SSID):
        return _checked(env[SSID], env.get(KEY, ""), f"${KEY}")
    path = Path(env[FILE]) if env.get(FILE) else default_file()
    if not path.exists():
        raise UpyperfError(
            "config",
            f"the board needs Wi-Fi: set {SSID} and {KEY} in the environment, or write ssid and key into "
            f"{path} (chmod 600)",
        )
    mode = path.stat().st_mode
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise UpyperfError(
            "config", f"{path} holds a key and others can read it (mode {mode & 0o777:o}): chmod 600 {path}"
        )
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError):
        # The parser's own words may quote the line with the key.
        raise UpyperfError("config", f'{path} is not TOML with ssid = "…" and key = "…"') from None
    ssid, key = table.get("ssid"), table.get("key", "")
    if not isinstance(ssid, str) or not isinstance(key, str) or not ssid:
        raise UpyperfError("config", f"{path}: ssid and key must be texts")
    return _checked(ssid, key, str(path))


def _checked(ssid: str, key: str, where: str) -> WifiCredentials:
    if len(ssid.encode()) > 32:
        raise UpyperfError("config", "the Wi-Fi name is longer than 32 bytes")
    length = len(key.encode())
    is_hex = length == 64 and all(c in "0123456789abcdefABCDEF" for c in key)
    # IEEE 802.11: none (open), 8 to 63 characters, or 64 hex digits.
    if length and not 8 <= length <= 63 and not is_hex:
        raise UpyperfError(
            "config",
            f"{where}: a Wi-Fi key has 8 to 63 characters or 64 hex digits, this one has {length}",
        )
    return WifiCredentials(ssid, key)
