"""The real programs that the other interop tests rely on run and talk to one another."""

from __future__ import annotations

import json
import signal

from harness import programs
from peers import Peer


def test_old_and_new_versions_are_here(peers: list[Peer]) -> None:
    versions = {(peer.program, peer.version[:3]) for peer in peers}
    assert ("iperf", "2.1") in versions
    assert ("iperf", "2.2") in versions
    assert len({peer.version for peer in peers if peer.program == "iperf3"}) >= 3


def test_each_program_tests_against_itself(peer: Peer) -> None:
    with programs.server(peer) as server:
        done = programs.client(peer, server.port, "-n", "1M")
        assert done.returncode == 0, done.stdout + done.stderr
        assert str(server.port) in done.stdout


def test_each_program_does_udp(peer: Peer) -> None:
    with programs.server(peer, udp=True) as server:
        done = programs.client(peer, server.port, "-u", "-b", "1M", "-t", "1")
        assert done.returncode == 0, done.stdout + done.stderr
        assert server.port


def test_iperf3_of_any_version_talks_json(iperf3_peer: Peer, peers: list[Peer]) -> None:
    oldest = next(peer for peer in peers if peer.program == "iperf3")
    with programs.server(iperf3_peer, "-1") as server:
        done = programs.client(oldest, server.port, "-J", "-t", "1", "-b", "80M")
        assert json.loads(done.stdout)["end"]["sum_received"]["bytes"] > 1e6
        assert "Accepted connection" in server.wait()


def test_a_server_that_hangs_is_ended(iperf2_peer: Peer) -> None:
    with programs.server(iperf2_peer, lifetime_s=1) as server:
        server.process.wait(6)
    assert server.process.returncode in (124, -signal.SIGKILL, 137)
