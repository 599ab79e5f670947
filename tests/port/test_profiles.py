"""lwIP profiles as data, and what a machine's limits make of them."""

import importlib.util
import tomllib

import pytest
from upyperf.firmware import profiles
from upyperf.paths import root

PORT = root() / "firmware" / "port"
spec = importlib.util.spec_from_file_location("lwip_profile", PORT / "tools" / "lwip_profile.py")
lwip_profile = importlib.util.module_from_spec(spec)
spec.loader.exec_module(lwip_profile)


@pytest.mark.parametrize("name", profiles())
def test_every_profile_is_consistent(name):
    profile = tomllib.loads((PORT / "profiles" / f"{name}.toml").read_text())
    machine = tomllib.loads((PORT / "machines/an386/machine.toml").read_text())
    values, _ = lwip_profile.effective(profile, machine)
    assert profile["about"]
    frames = values["TCP_WND"] / values["TCP_MSS"]
    assert frames * (values["TCP_MSS"] + 68) <= 10560  # what the receive FIFO holds
    assert values["TCP_SND_BUF"] >= 2 * values["TCP_MSS"]


def test_the_experiments_figures():
    def of(name):
        return lwip_profile.effective(tomllib.loads((PORT / "profiles" / f"{name}.toml").read_text()), {})[0]

    before, after = of("baseline"), of("j6-after")
    assert [before[k] for k in ("MEM_SIZE", "PBUF_POOL_SIZE", "MEMP_NUM_TCP_SEG")] == [25600, 65, 150]
    assert [after[k] for k in ("MEM_SIZE", "PBUF_POOL_SIZE", "MEMP_NUM_TCP_SEG")] == [32768, 96, 200]
    assert (before["TCP_WND"], after["TCP_WND"]) == (11 * 1460, 16 * 1460)
    before, after = of("z2-before"), of("z2-after")
    assert [before[k] for k in ("TCP_SND_BUF", "TCP_SND_QUEUELEN", "MEMP_NUM_PBUF")] == [16384, 8, 16]
    assert [after[k] for k in ("TCP_SND_BUF", "TCP_SND_QUEUELEN", "MEMP_NUM_PBUF")] == [23552, 64, 256]


def test_limits_lower_and_say_so():
    profile = {"options": {"TCP_MSS": 1000, "TCP_WND": "8 * TCP_MSS"}}
    machine = {"limits": {"TCP_WND": "6 * TCP_MSS"}, "why": {"TCP_WND": "small FIFO"}}
    assert lwip_profile.effective(profile, machine) == (
        {"TCP_MSS": 1000, "TCP_WND": 6000}, ["TCP_WND 8000 -> 6000 (small FIFO)"]
    )  # fmt: skip


@pytest.mark.parametrize("text", ["6 * TCP_NONE", "__import__('os')", "2 **", "TCP_WND"])
def test_what_cannot_be_read(text):
    with pytest.raises(lwip_profile.ProfileError):
        lwip_profile.effective({"options": {"TCP_WND": text}}, {})
