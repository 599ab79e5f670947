"""iperf 2.1's own lines, against lines of the real program."""

from iperf import text2
from iperf.result import Result


def test_numbers_as_iperf_prints_them():
    for n, t in ((0, "0.000 Bytes"), (36, "36.0 Bytes"), (256000, " 250 KBytes"), (6291456, "6.00 MBytes"),
                 (5242880, "5.00 MBytes"), (12687769, "12.1 MBytes"), (1023, "1023 Bytes")):  # fmt: skip
        assert text2.size(n) == t, (n, text2.size(n))
    for r, f, t in ((50.3e6, "a", "50.3 Mbits/sec"), (999600, "a", "1000 Kbits/sec"),
                    (1.01e6, "a", "1.01 Mbits/sec"), (403e6, "a", " 403 Mbits/sec"),
                    (50681e3, "k", "50681 Kbits/sec"),
                    (50.7e6, "M", "6.04 MBytes/sec"), (51e6, "g", "0.051 Gbits/sec"),
                    (48e6, "A", "5.72 MBytes/sec")):  # fmt: skip
        assert text2.rate(r, f) == t, (r, f, text2.rate(r, f))
    assert text2.size(6422528, "k") == "6272 KBytes"
    assert text2.size(6422528, "g") == "0.006 GBytes"


def test_percent():
    for lost, total, t in ((0, 0, "-nan"), (0, 174, "0"), (1, 870, "0.11"), (2, 174, "1.1"), (22, 48, "46"),
                           (2, 2, "1e+02"), (1, 100000, "0.001"), (4624, 8507, "54"),
                           (10, 1000, "1")):  # fmt: skip
        assert text2._percent(lost, total) == t, (lost, total, text2._percent(lost, total))


def stream(id, sender, bytes, us, **more):
    d = {"id": id, "sender": sender, "bytes": bytes, "us": us, "packets": 0, "lost": 0, "ooo": 0, "dup": 0,
         "jitter_us": 0, "retries": 0, "enomem": 0, "stall_us": 0, "peer": None}  # fmt: skip
    d.update(more)
    return d


def result(role, udp, mode, **more):
    cfg = {"version": 2, "role": role, "udp": udp, "host": "10.0.0.1", "port": 5001, "layer": "socket",
           "format": "a", "bandwidth": 1000000, "length": 1470}  # fmt: skip
    cfg.update(more)
    return Result(cfg, mode)


def test_udp_client_with_report():
    r = result("client", True, "send")
    r.conns.append((1, ("10.0.0.2", 36347), ("10.0.0.1", 5001)))
    r.streams.append(stream(1, True, 255780, 2024600, packets=175, peer={
        "bytes": 255780, "us": 2024500, "packets": 174, "lost": 0, "ooo": 0, "jitter_us": 2}))  # fmt: skip
    assert text2.lines(r) == "\n".join([
        "-" * 60,
        "Client connecting to 10.0.0.1, UDP port 5001",
        "Sending 1470 byte datagrams, IPG target: 11760.00 us",
        "-" * 60,
        "[  1] local 10.0.0.2 port 36347 connected with 10.0.0.1 port 5001",
        "[ ID] Interval       Transfer     Bandwidth",
        "[  1] 0.0000-2.0246 sec   250 KBytes  1.01 Mbits/sec",
        "[  1] Sent 175 datagrams",
        "[  1] Server Report:",
        "[ ID] Interval       Transfer     Bandwidth        Jitter   Lost/Total Datagrams",
        "[  1] 0.0000-2.0245 sec   250 KBytes  1.01 Mbits/sec   0.002 ms 0/174 (0%)",
    ])  # fmt: skip


def test_no_report_is_said():
    r = result("client", True, "send")
    r.streams.append(stream(1, True, 1470, 1000000, packets=1))
    assert "[  1] Server Report: n/a" in text2.lines(r)


def test_server_lines_with_losses():
    r = result("server", True, "receive")
    r.streams.append(stream(1, False, 255780, 2024500, packets=174, lost=3, dup=1, ooo=2, jitter_us=None))
    t = text2.lines(r)
    assert "[  1] 0.0000-2.0245 sec   250 KBytes  1.01 Mbits/sec     n/a ms 2/174 (1.1%)" in t
    assert "[  1] 0.0000-2.0245 sec  3 datagrams received out-of-order" in t


def test_names_of_the_directions():
    r = result("client", False, "bidir")
    r.streams += [
        stream(1, True, 1, 1),
        stream(2, True, 1, 1),
        stream(3, False, 1, 1),
        stream(4, False, 1, 1),
    ]
    t = text2.lines(r)
    for name in ("[  1] ", "[  2] ", "[ *1] ", "[ *2] ", "[SUM] "):
        assert name in t, t
    r = result("client", False, "receive")
    r.streams.append(stream(1, False, 1, 1))
    assert "[ *1] " in text2.lines(r)
    r = result("server", False, "dual")
    r.streams += [stream(1, False, 1, 1), stream(2, True, 1, 1)]
    assert "[ *2] " in text2.lines(r) and "[  1] " in text2.lines(r)


def test_an_error_ends_the_text():
    r = result("client", False, "send")
    r.streams.append(stream(1, True, 1, 1))
    r.error = {"kind": "closed", "text": "gone"}
    assert text2.lines(r).endswith("iperf: error - gone")
