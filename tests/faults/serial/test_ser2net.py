"""S11: a board behind ser2net, by rfc2217:// and socket://."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness.programs import free_port
from upyperf import link, virtual
from upyperf.errors import UpyperfError

CONFIG = """\
%YAML 1.1
---
connection: &rfc2217
  accepter: telnet(rfc2217),tcp,127.0.0.1,{telnet}
  connector: serialdev,{device},115200n81,local
connection: &raw
  accepter: tcp,127.0.0.1,{raw}
  connector: serialdev,{second},115200n81,local
"""


@pytest.fixture(scope="module")
def ports(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, int]]:
    """(rfc2217 port, raw TCP port), each with a unix board behind it."""
    ser2net = shutil.which("ser2net", path=os.environ.get("PATH", "") + ":/usr/sbin")
    assert ser2net, "ser2net is not installed: apt-get install ser2net"
    telnet, raw = free_port(), free_port()
    config = tmp_path_factory.mktemp("ser2net") / "ser2net.yaml"
    with virtual.start("unix") as board, virtual.start("unix") as second:
        config.write_text(CONFIG.format(telnet=telnet, raw=raw, device=board.device, second=second.device))
        server = subprocess.Popen(
            [ser2net, "-n", "-u", "-c", str(config)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            for port in (telnet, raw):
                wait_for(port)
            yield telnet, raw
        finally:
            server.terminate()
            server.wait(5)


def wait_for(port: int) -> None:
    for _ in range(100):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                time.sleep(0.3)  # until ser2net has the device free again
                return
        time.sleep(0.05)
    raise AssertionError(f"ser2net does not listen on {port}")


def use(url: str, tmp_path: Path) -> None:
    with link.connect(url, timeout=20) as connection:
        assert connection.eval("6*7") == 42
        data = os.urandom(3000)
        assert connection.put_tree({"lib/x.bin": data}) == ["lib/x.bin"]
        assert connection.put_tree({"lib/x.bin": data}) == []
        assert connection.identify().platform == "linux"
        connection.soft_reset()
        lines: list[str] = []
        connection.exec("for i in range(300): print('line', i)", on_line=lines.append)
        assert lines == [f"line {i}" for i in range(300)]


def test_rfc2217_without_its_option_says_what_to_append(ports: tuple[int, int]) -> None:
    with pytest.raises(UpyperfError) as caught:
        link.connect(f"rfc2217://127.0.0.1:{ports[0]}", timeout=5)
    assert caught.value.kind == "board"
    assert "?ign_set_control" in caught.value.text


def test_rfc2217(ports: tuple[int, int], tmp_path: Path) -> None:
    use(f"rfc2217://127.0.0.1:{ports[0]}?ign_set_control", tmp_path)


def test_socket(ports: tuple[int, int], tmp_path: Path) -> None:
    use(f"socket://127.0.0.1:{ports[1]}", tmp_path)


@pytest.mark.parametrize("scheme", ["socket", "rfc2217"])
def test_nobody_listens(scheme: str) -> None:
    with pytest.raises(UpyperfError) as caught:
        link.connect(f"{scheme}://127.0.0.1:{free_port()}", timeout=5)
    assert caught.value.kind == "board"
    assert "refused" in caught.value.text
