"""Benches as the runner would make them, for the tests of analysis and report."""

from __future__ import annotations

import math
from typing import Any

from upyperf.analysis.ends import VIRTUAL_TIME, pair_all
from upyperf.records import (
    Bench,
    BoardInfo,
    BoardRef,
    BoardResult,
    ErrorInfo,
    Heap,
    HostRef,
    Interval,
    NetworkRef,
    PeerResult,
    RunResult,
    Stream,
    Sum,
    Test,
)

HOSTILE = (
    "</script><script>alert(1)</script>\x1b[31m\x04\x00 & \"q\" 'a' | `x` $x_1$ {{ 7*7 }} "
    "\u202e @user [l](http://x) =1+1 漢"
)
PLAN = [(v, p, m) for v in (3, 2) for p in ("tcp", "udp") for m in ("send", "receive")]


def total(bps: float, seconds: float, block: int, udp: bool, lost: int = 0, **more: Any) -> Sum:
    """What an end counts that moves `bps` bit/s for `seconds` in blocks of `block` bytes."""
    packets = round(bps * seconds / 8 / block)
    return Sum(
        bytes=(packets - lost) * block,
        us=round(seconds * 1e6),
        packets=packets if udp else None,
        lost=lost if udp else None,
        **more,
    )


def intervals(
    bps: float,
    seconds: float,
    sender: bool,
    *,
    udp: bool,
    block: int,
    lost: int = 0,
    omit: int = 0,
    wobble: float = 0.02,
    stream: int = 1,
    peer: bool = False,
) -> list[Interval]:
    """One row a second, the rate wobbling by the given share.

    `sender`: the board sends; `peer`: the rows are the peer's.
    """
    rows = []
    receives = sender == peer
    for n in range(math.ceil(seconds)):
        rate = bps * (1 + wobble * math.sin(n * 1.7))
        packets = round(rate / 8 / block)
        rows.append(
            Interval(
                id=stream,
                sender=sender,
                start_us=n * 1_000_000,
                end_us=(n + 1) * 1_000_000,
                bytes=packets * block,
                packets=packets if udp else None,
                lost=(lost // math.ceil(seconds) if udp and receives else None),
                jitter_us=120.0 if udp and receives else None,
                retries=3 if sender and not peer else None,
                enomem=(1 if sender and n == 2 else 0) if sender and not peer else None,
                omitted=n < omit,
            )
        )
    return rows


def run(
    number: int = 1,
    version: int = 3,
    proto: str = "tcp",
    mode: str = "send",
    *,
    bps: float = 94.1e6,
    peer_bps: float | None = None,
    seconds: float = 10,
    lost: int = 0,
    options: dict[str, Any] | None = None,
    repeat: int = 1,
    with_intervals: bool = True,
    exempt: str | None = None,
    name: str | None = None,
    omit: int = 0,
) -> RunResult:
    """A run in which all went well."""
    udp = proto == "udp"
    block = 1458 if udp else 4096
    peer_bps = bps if peer_bps is None else peer_bps
    opts = {"time": seconds, **({"bandwidth": round(bps)} if udp else {}), **(options or {})}
    sends, receives = mode != "receive", mode != "send"
    board = BoardResult(
        version=version,
        role="client",
        proto=proto,
        mode=mode,
        layer="socket",
        host="192.0.2.1",
        port=5201 if version == 3 else 5001,
        options={**opts, "length": block},
        heap=Heap(free_before=98304, free_after=97280),
        counters={"send_calls": 1234, "eagain": 17},
    )
    peer = PeerResult(program="iperf3 3.12" if version == 3 else "iperf 2.1.8")
    if sends:
        board.sent = total(bps, seconds, block, udp, retries=31, enomem=2, stall_us=1500)
        peer.received = total(peer_bps, seconds, block, udp, lost=lost, jitter_us=130.5 if udp else None)
        board.streams.append(Stream(id=1, sender=True, **board.sent.model_dump(exclude={"bits_per_second"})))
        if with_intervals:
            board.intervals += intervals(bps, seconds, True, udp=udp, block=block, omit=omit)
            peer.intervals += intervals(
                peer_bps, seconds, True, udp=udp, block=block, lost=lost, wobble=0.04, peer=True
            )
    if receives:
        board.received = total(bps, seconds, block, udp, lost=lost, jitter_us=88.0 if udp else None)
        peer.sent = total(peer_bps, seconds, block, udp)
        board.streams.append(
            Stream(id=3, sender=False, **board.received.model_dump(exclude={"bits_per_second"}))
        )
        if with_intervals:
            board.intervals += intervals(bps, seconds, False, udp=udp, block=block, lost=lost, stream=3)
            peer.intervals += intervals(peer_bps, seconds, False, udp=udp, block=block, stream=3, peer=True)
    return RunResult(
        id=f"r{number:02d}",
        test=Test(
            name=name or f"iperf{version}-{proto}-{mode}",
            version=version,
            proto=proto,
            mode=mode,
            options=opts,
        ),
        repeat=repeat,
        started=f"2026-11-30T13:{number % 60:02d}:00.000Z",
        ended=f"2026-11-30T13:{number % 60:02d}:10.100Z",
        board=board,
        peer=peer,
        directions=pair_all(mode, proto, board, peer, exempt),
    )


def failed(
    number: int = 1,
    kind: str = "refused",
    text: str = "nothing listens at 192.0.2.1 port 5201: start iperf3 -s there",
    status: str = "error",
    **test: Any,
) -> RunResult:
    """A run that gave no figure."""
    fields = {"version": 3, "proto": "tcp", "mode": "send", **test}
    return RunResult(
        id=f"r{number:02d}",
        test=Test(name="iperf{version}-{proto}-{mode}".format(**fields), **fields),
        status=status,
        error=ErrorInfo(kind=kind, text=text),
        started="2026-11-30T13:00:00.000Z",
        ended="2026-11-30T13:00:01.000Z",
    )


def bench(runs: list[RunResult] | None = None, **more: Any) -> Bench:
    """A bench of the standard plan, or of the runs given."""
    if runs is None:
        rates = {"tcp": 94.1e6, "udp": 90e6}
        runs = [
            run(n, v, p, m, bps=rates[p] * (0.6 if v == 2 else 1), lost=20 if p == "udp" else 0)
            for n, (v, p, m) in enumerate(PLAN, 1)
        ]
    fields: dict[str, Any] = {
        "id": "20261130T130000Z-stm32f407",
        "started": "2026-11-30T13:00:00.000Z",
        "ended": "2026-11-30T13:02:00.000Z",
        "board": BoardRef(
            name="stm32f407",
            title="STM32F407 with RMII Ethernet",
            kind="hardware",
            mcu="stm32f407vgt6",
            port="/dev/ttyACM0",
            connection="usb",
            link_mbit=100,
        ),
        "info": BoardInfo(
            micropython="1.24.1",
            machine="STM32F4DISC with STM32F407",
            platform="pyboard",
            mpy=6,
            heap_free=98304,
            heap_alloc=12288,
            layers=["socket", "netconn"],
            lwip={"TCP_MSS": 1460, "TCP_WND": 5840, "TCP_SND_BUF": 5840, "MEM_SIZE": 25600},
            nics=[{"name": "LAN", "address": "192.0.2.20", "mac": "02:00:00:00:00:01", "speed": 100}],
            unique_id="3b0034000e51363131383436",
            iperf="0.1.0",
        ),
        "network": NetworkRef(
            interface="eth0", pc_address="192.0.2.1", board_address="192.0.2.20", mode="dhcp"
        ),
        "host": HostRef(
            hostname="bench-pc",
            platform="Linux-6.1-x86_64",
            python="3.11.7",
            upyperf="0.1.0",
            tools={"iperf3": "3.12", "iperf": "2.1.8", "mpremote": "1.29.0"},
        ),
        "plan": "standard",
        "command": ["upyperf", "bench", "stm32f407"],
        "config": {"firmware": "stm32f407-v1.24.1.bin", "deploy": "mpy"},
        "runs": runs,
    }
    return Bench(**{**fields, **more})


def virtual_bench(runs: list[RunResult] | None = None, *, time: str = "wall", **more: Any) -> Bench:
    """A bench of the unix board."""
    return bench(
        runs if runs is not None or time == "wall" else [run(1, exempt=VIRTUAL_TIME, peer_bps=50e6)],
        **{
            "id": "20261130T130000Z-unix",
            "board": BoardRef(
                name="unix", title="MicroPython unix port", kind="virtual", time=time, port="/dev/pts/3"
            ),
            **more,
        },
    )


def mixed() -> Bench:
    """Each kind of run once: fine, disagreeing, failed, without intervals, both ways."""
    return bench(
        [
            run(1),
            run(2, 3, "udp", "receive", bps=90e6, lost=4000),
            run(3, 2, bps=60e6, peer_bps=51e6),
            failed(4, version=2, proto="udp"),
            run(5, 3, "tcp", "bidir", bps=40e6, with_intervals=False),
        ]
    )


def hostile_bench() -> Bench:
    """HOSTILE in every string that a board, a network or a peer may fill."""
    a_run = run(1, name=HOSTILE, options={HOSTILE: HOSTILE})
    a_run.id = HOSTILE
    a_run.board.layer = a_run.test.layer = HOSTILE
    a_run.board.adapted = [HOSTILE]
    a_run.board.counters = {HOSTILE: HOSTILE}
    a_run.board.peer_text = HOSTILE
    a_run.board.host = HOSTILE
    a_run.peer.program = HOSTILE
    a_run.peer.text = HOSTILE
    a_run.notes = [HOSTILE]
    broken = failed(2, text=HOSTILE)
    return bench(
        [a_run, broken],
        id=HOSTILE,
        board=BoardRef(
            name=HOSTILE, title=HOSTILE, kind="virtual", twin_of=HOSTILE, mcu=HOSTILE, port=HOSTILE
        ),
        info=BoardInfo(
            micropython=HOSTILE, machine=HOSTILE, lwip={HOSTILE: HOSTILE}, nics=[{"ssid": HOSTILE}, HOSTILE]
        ),
        plan=HOSTILE,
        command=[HOSTILE],
        config={HOSTILE: {HOSTILE: [HOSTILE]}},
        notes=[HOSTILE],
        error=ErrorInfo(kind="flash", text=HOSTILE),
    )
