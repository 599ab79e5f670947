"""Decoding SPI traffic: what the chip understood is what the trace viewer says, whatever the fillers."""

import json
import socket

import pytest
from typer.testing import CliRunner
from upyperf.cli.winc import app
from upyperf.errors import UpyperfError
from upyperf.virtual.winc import trace
from upyperf.virtual.winc.decode_hif import decode
from upyperf.virtual.winc.decode_spi import SpiDecoder
from upyperf.virtual.winc.trace import Recorder, Transfer
from winc_refhost import booted, raw_host, ready


def record(host, path):
    host.chip.trace = Recorder(path)
    return host


def entries_of(path, spi=False):
    entries, summary = decode(trace.read(path), spi)
    return list(entries), summary


@pytest.fixture
def session(tmp_path):
    """A trace with boot, join, TCP, UDP and close; and the host that made it."""
    path = tmp_path / "trace.csv"
    host = record(raw_host(strict=True, firmware="19.7.7"), path)
    host.power()
    host.read(0x1000)  # with CRC
    host.boot()
    host.join()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert host.connect(0, port, 1) == 0
        peer = listener.accept()[0]
    host.post_send(0, b"hello" * 200, 1)
    host.sent()
    host.recv_command(0, 1)
    peer.sendall(b"x" * 700)
    host.received()
    host.close(0, 1)
    host.bind(7, 0, 2)
    host.post_send(7, b"datagram", 2, host.addr("127.0.0.1", 9))
    host.sent(0x47)
    peer.close()
    host.chip.close()
    return path, host, port


def test_messages_and_events(session):
    path, _, port = session
    entries, summary = entries_of(path)
    lines = [e.text for e in entries if e.level == "hif"]
    assert f"-> IP connect: socket 0 session 1 to 127.0.0.1:{port}" in lines
    assert "-> IP send: socket 0 session 1, 1000 bytes" in lines
    assert "<- IP send: socket 0 session 1: 1000 bytes" in lines
    assert "-> IP recv: socket 0 session 1 for 1000 ms, buffer of 1460" in lines
    assert f"<- IP recv: socket 0 session 1: 700 bytes at 80 from 127.0.0.1:{port}" in lines
    assert "-> Wi-Fi connect: SSID 'upyperf', WPA/WPA2 PSK, key of 10 bytes" in lines
    assert "<- Wi-Fi state changed: connected" in lines
    assert any(
        line.startswith("<- Wi-Fi IP configuration: 192.168.77.20 mask 255.255.255.0") for line in lines
    )
    assert "-> IP sendto: socket 7 session 2, 8 bytes to 127.0.0.1:9" in lines
    assert "throughput" not in "".join(e.text for e in entries)  # a trace may be shown to others
    assert summary.problems == 0
    boot = [e.text for e in entries if e.level == "boot"]
    assert "SPI configuration 0x52: CRC off" in boot
    assert "version word: driver 19.6.1, at least 19.3.0" in boot


def test_every_command_of_the_chip_is_found(session):
    path, host, _ = session
    _, summary = entries_of(path)
    assert summary.commands == host.chip.stats()["commands"]
    assert summary.bytes == host.chip.pacer.bytes
    assert summary.stray_bytes == 0


@pytest.mark.parametrize("kind", ["logic1", "logic2", "plain", "pairs"])
def test_logic_analyser_tables(session, tmp_path, kind):
    """One byte in a row, as logic analysers export it."""
    path, _, _ = session
    rows = {
        "logic1": (["Time [s],Packet ID,MOSI,MISO"], "{t:.9f},0,0x{o:02X},0x{i:02X}"),
        "logic2": (
            ['name,type,start_time,duration,"mosi","miso"', "SPI,enable,0.0,1e-8,,"],
            '"SPI","result",{t},1e-06,0x{o:02X},0x{i:02X}',
        ),
        "plain": (["; sigrok", "MOSI,MISO"], "{o:02x},{i:02x}"),
        "pairs": (["start,SDO,SDI"], "{t},{o:02X},{i:02X}"),
    }
    head, row = rows[kind]
    table = tmp_path / "analyser.csv"
    with table.open("w") as file:
        file.write("\n".join(head) + "\n")
        for item in trace.read(path):
            if isinstance(item, Transfer):
                for out, back in zip(item.mosi, item.miso, strict=True):
                    file.write(row.format(t=item.time, o=out, i=back) + "\n")
    ours, summary = entries_of(path)
    theirs, other = entries_of(table)
    assert [e.text for e in theirs] == [e.text for e in ours if e.level != "pin"]
    assert other.commands == summary.commands


def test_a_trace_that_begins_in_the_middle(session, tmp_path):
    path, _, _ = session
    lines = path.read_text().splitlines()
    part = tmp_path / "part.csv"
    part.write_text("\n".join(lines[:1] + lines[-300:]) + "\n")
    entries, _ = entries_of(part)
    assert "-> IP close: socket 0 session 1" in [e.text for e in entries]


def test_a_dead_bus_is_named(tmp_path):
    path = tmp_path / "dead.csv"
    host = record(raw_host(), path)
    host.chip.control({"cmd": "fault", "name": "stuck", "value": 0})
    host.power()
    for _ in range(3):
        host.chip.transfer(bytes.fromhex("C900E824000000525C") + bytes(10))
    host.chip.close()
    entries, summary = entries_of(path)
    assert summary.problems == 3
    assert "no answer" in next(e.text for e in entries if e.level == "problem")


def test_wrong_crc_and_error_states(tmp_path):
    path = tmp_path / "crc.csv"
    host = record(raw_host(), path)
    host.power()
    host.chip.transfer(bytes.fromhex("CA00100000") + bytes(8))
    host.chip.close()
    entries, _ = entries_of(path)
    assert "CRC7 error" in entries[-1].text


def test_commands_by_hand():
    """Section 2.8 of the fact sheet, from both sides."""
    decoder = SpiDecoder()
    decoder.crc = False
    mosi = bytes.fromhex("CA00100000000000000000" + "C900108C133013770000")
    miso = bytes.fromhex("00000000CA00F3A0031000" + "0000000000000000C900")
    read, write = decoder.feed(0, mosi, miso)
    assert (read.addr, read.value, read.ok) == (0x1000, 0x001003A0, True)
    assert (write.addr, write.value, write.ok) == (0x108C, 0x13301377, True)
    block = bytes.fromhex("C7037000000008 0000 F3 0001020304050607 000000")
    back = bytes(7) + bytes.fromhex("C700") + bytes(9) + bytes.fromhex("00C300")
    (command,) = decoder.feed(1, block, back)
    assert (command.addr, command.size, command.data) == (0x37000, 8, bytes(range(8)))


def test_no_buffer_and_polls_are_counted(tmp_path):
    path = tmp_path / "full.csv"
    host = record(booted(), path)
    host.chip.control({"cmd": "fault", "name": "no-buffer", "count": 2})
    for _ in range(2):
        host.grant(1, 3, 8)
    host.event()
    host.chip.close()
    entries, summary = entries_of(path)
    assert summary.no_buffer == 2
    assert summary.empty_polls == 1
    assert "no buffer for RSSI request" in [e.text for e in entries]


def test_cli_trace(session):
    path, _, _ = session
    done = CliRunner().invoke(app, ["trace", str(path)])
    assert done.exit_code == 0
    assert "0 problems" in " ".join(done.stdout.split())
    done = CliRunner().invoke(app, ["trace", "--json", "--spi", str(path)])
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert {line.get("level") for line in lines[:-1]} == {"spi", "hif", "boot", "pin"}
    assert lines[-1]["summary"]["problems"] == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "No such file"),
        ("", "the file is empty"),
        ("a,b,c\n1,2,3\n", "no columns named MOSI and MISO"),
        ("time,mosi,miso\n0.1,0xC9\n", "line 2: 2 columns, 3 expected"),
        ("time,mosi,miso\n0.1,0xG9,0\n", "is not hex"),
        ("time,mosi,miso\nnoon,C9,00\n", "'noon' is not a time"),
        (b"\xff\xfe\x00\xd8", "codec"),
    ],
)
def test_bad_files_are_one_line(tmp_path, text, message):
    path = tmp_path / "bad.csv"
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    done = CliRunner().invoke(app, ["trace", str(path)])
    assert isinstance(done.exception, UpyperfError)
    assert done.exception.kind == "usage"
    assert message in done.exception.text
    assert "\n" not in done.exception.text


def test_cli_cost():
    done = CliRunner().invoke(app, ["cost", "--json", "--packets", "20"])
    costs = json.loads(done.stdout)
    assert done.exit_code == 0, costs
    assert {(c["direction"], c["filler"]) for c in costs} == {
        (d, f) for d in ("send", "receive") for f in ("none", "worst", "random")
    }
    assert all(c["simulated"] and c["payload_bytes"] == 1400 for c in costs)
    assert all(c["ratio"] > 1.12 for c in costs)


def test_cli_cost_beyond_a_limit(monkeypatch):
    monkeypatch.setattr("upyperf.virtual.winc.cost.CALL_LIMIT", 3)
    done = CliRunner().invoke(app, ["cost", "--json", "--packets", "5"])
    assert done.exit_code == 1
    assert any(c["ok"] is False for c in json.loads(done.stdout))
    assert done.stderr.count("\n") == 1


def test_registered_as_a_verb():
    import typer
    from upyperf.cli.winc import register

    parent = typer.Typer()
    register(parent)
    assert "trace" in CliRunner().invoke(parent, ["winc", "--help"]).stdout


def test_random_bytes_never_break_the_decoder():
    import random

    rng = random.Random(4)
    decoder = SpiDecoder()
    for i in range(300):
        size = rng.randrange(1, 60)
        mosi = bytes(
            rng.choice((0, 0xC7, 0xC8, 0xC9, 0xCA, 0xCF, 0xF3, rng.randrange(256))) for _ in range(size)
        )
        miso = bytes(rng.choice((0, 0xC7, 0xC8, 0xC9, 0xCA, 0xF3, rng.randrange(256))) for _ in range(size))
        list(decoder.feed(i, mosi, miso))
    list(decoder.finish())


def test_random_bytes_never_break_the_chip():
    import random

    rng = random.Random(5)
    host = ready(strict=False)
    for _ in range(500):
        size = rng.randrange(1, 80)
        host.chip.transfer(
            bytes(
                rng.choice((0, 0xC7, 0xC8, 0xC9, 0xCA, 0xCF, 0xF3, rng.randrange(256))) for _ in range(size)
            )
        )
    host.boot()
    host.join()


def test_cli_experiments():
    done = CliRunner().invoke(app, ["experiments", "w7", "W3", "-t", "0.1", "--json"])
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.exit_code == 0
    assert {row["experiment"] for row in rows} == {"W3", "W7"}
    assert all(row["simulated"] and row["mbps"] > 0 for row in rows)
    assert "Polling or DMA" in CliRunner().invoke(app, ["experiments", "W7", "-t", "0.1"]).stdout
    done = CliRunner().invoke(app, ["experiments", "W99"])
    assert isinstance(done.exception, UpyperfError)
    assert "W13" in done.exception.text
