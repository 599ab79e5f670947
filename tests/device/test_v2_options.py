"""What iPerf 2 refuses before anything is sent, and what it adapts."""

from iperf import options
from iperf.errors import IperfError
from iperf.layers import get
from iperf.v2 import check


def checked(**kw):
    cfg = options.client("10.0.0.1", 2, kw)
    options.check_layer(cfg, get("socket"))
    return cfg, check.check(cfg)


def refused(**kw):
    try:
        checked(**kw)
    except IperfError as e:
        assert e.kind == "usage", e.kind
        return e.text
    raise AssertionError("not refused: %s" % kw)


def test_modes():
    for kind in ("reverse", "full_duplex", "dual", "tradeoff"):
        assert checked(**{kind: True})[1] == kind
    assert checked()[1] is None
    assert "only one" in refused(dual=True, reverse=True)


def test_what_cannot_be_asked_of_a_server():
    assert "time=0" in refused(reverse=True, time=0)
    assert "2147483647" in refused(dual=True, num_bytes="3G")
    assert checked(num_bytes="3G")[1] is None
    assert "76" in refused(udp=True, dual=True, length=60)
    assert checked(udp=True, length=60)[1] is None


def test_compat():
    assert "header" in refused(compat=True, dual=True)
    assert "knows no" in refused(compat="2.0.9", reverse=True, udp=True)
    assert "not known" in refused(compat="3.7")
    cfg, _ = checked(udp=True, compat="2.0.6")
    assert cfg["old"] and not cfg["signed"]
    cfg, _ = checked(udp=True, compat="2.0.11")
    assert cfg["signed"] and not cfg["old"]
    assert "36" in refused(udp=True, compat="2.0.6", dual=True, length=20)


def test_rates():
    cfg, _ = checked(udp=True, pps=500, length=200)
    assert cfg["bandwidth"] == 800000
    assert "udp" in refused(pps=500)
    cfg, _ = checked(udp=True, bandwidth="1m")
    assert cfg["bandwidth"] == 1000000
    cfg, _ = checked(udp=True, bandwidth="1M")
    assert cfg["bandwidth"] == 1048576


def test_tcp_blocks_of_a_paced_test():
    assert "second" in refused(bandwidth="100k", length=20000)
    cfg, _ = checked(bandwidth="100k")
    assert cfg["length"] == 1024 and "blocks of 1024" in cfg["adapted"][0]
    cfg, _ = checked(bandwidth="50m")
    assert cfg["length"] is None and not cfg["adapted"]


def test_file_goes_with_tcp_sending():
    assert "TCP" in refused(udp=True, file="x")
    assert "TCP" in refused(reverse=True, file="x")
