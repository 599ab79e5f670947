# ruff: noqa: PT018
"""The build: with both lwIP release lines, from own checkouts, and what it says when it cannot."""

import subprocess

import pytest
from upyperf import firmware
from upyperf.errors import UpyperfError


def test_second_build_is_cached(elf):
    before = elf.stat().st_mtime_ns
    assert firmware.build("qemu-an386") == elf
    assert elf.stat().st_mtime_ns == before


@pytest.mark.timeout(900)
def test_builds_with_lwip_2_1_without_a_warning(elf, isolated_build):
    other = firmware.build("qemu-an386", lwip=firmware.LWIP_2_1)
    assert other != elf
    assert b"2.1.3" in other.read_bytes()
    assert b"2.2.1" in elf.read_bytes()


@pytest.fixture
def isolated_build():
    return firmware.sources(firmware.LWIP_2_1)


def test_own_checkouts(monkeypatch, tmp_path):
    tree = firmware.sources(firmware.LWIP)
    monkeypatch.setenv("LWIP_DIR", str(tree))
    assert firmware.sources(firmware.LWIP) == tree
    monkeypatch.setenv("LWIP_DIR", str(tmp_path))
    with pytest.raises(UpyperfError, match="is no lwip tree"):
        firmware.sources(firmware.LWIP)


def test_sources_are_untouched(elf):
    tree = firmware.sources(firmware.MICROPYTHON)
    assert not (tree / "mpy-cross" / "build").exists()
    assert not [p for p in tree.glob("ports/*/build*") if p.is_dir()]


def test_unknown_names():
    with pytest.raises(UpyperfError, match="no firmware that we build"):
        firmware.build("unix")
    with pytest.raises(UpyperfError, match="no lwIP profile"):
        firmware.build("qemu-an386", "nope")


def test_build_failure_is_one_line(elf):
    with pytest.raises(UpyperfError) as caught:
        firmware.build("qemu-an386", cflags="-DTCP_MSS=this_is_not_c")
    assert "\n" not in caught.value.text and "build.log" in caught.value.text


def test_netconn_has_no_undefined_or_port_specific_symbol(elf):
    # The module goes into other ports: it may use lwIP and MicroPython, nothing of ours.
    found = (firmware.cache() / "build").glob("qemu-an386-*/netconn/nc_tcp.o")
    build = max(found, key=lambda p: p.stat().st_mtime).parent
    symbols = subprocess.run(
        ["arm-none-eabi-nm", "--undefined-only", *sorted(build.glob("*.o"))],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    names = {line.split()[-1] for line in symbols.splitlines() if " U " in line}
    assert not {
        n for n in names if n.startswith(("machine_", "mac_", "net_", "port_")) and n != "port_lwip_asserts"
    }
