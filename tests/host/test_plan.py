"""Plans and iperf's quantities."""

import pytest
from upyperf import plan, quantities
from upyperf.errors import UpyperfError


@pytest.mark.parametrize(
    ("text", "version", "rate", "size"),
    [
        ("10M", 3, 10_000_000, 10 << 20),
        ("10m", 3, 10_000_000, 10 << 20),
        ("10M", 2, 10 << 20, 10 << 20),
        ("10m", 2, 10_000_000, 10_000_000),
        ("1.5k", 3, 1500, 1536),
        ("1470", 2, 1470, 1470),
        ("2G", 3, 2_000_000_000, 2 << 30),
        (640, 3, 640, 640),
    ],
)
def test_suffixes_count_as_each_iperf_does(text, version, rate, size):
    assert quantities.rate(text, version) == rate
    assert quantities.size(text, version) == size


@pytest.mark.parametrize("text", ["", "x", "10X", "-5", "1e3", "10 M", "nan", True])
def test_what_is_no_quantity(text):
    with pytest.raises(ValueError):  # noqa: PT011
        quantities.rate(text, 3)


def test_standard_plan_is_every_combination_once():
    tests = plan.expand(plan.load("standard"), ["socket"])
    assert {(t.version, t.proto, t.mode) for t in tests} == {
        (version, proto, mode)
        for version in (2, 3)
        for proto in ("tcp", "udp")
        for mode in ("send", "receive")
    }
    assert len(tests) == 8
    assert {t.options["bandwidth"] for t in tests if t.proto == "udp"} == {10_000_000}


@pytest.mark.parametrize("name", plan.names())
def test_shipped_plans_load(name):
    assert plan.expand(plan.load(name), ["socket"])


def test_overrides_win():
    tests = plan.expand(plan.load("standard"), ["socket"], overrides={"time": 2.5})
    assert {t.seconds for t in tests} == {2.5}


def test_layers():
    loaded = plan.load("quick")
    assert [t.layer for t in plan.expand(loaded, ["socket", "raw"], ["all"])] == ["socket", "raw"] * 2
    assert plan.expand(loaded, ["socket", "raw"], ["raw"])[0].name == "iperf3-tcp-send-raw"
    with pytest.raises(UpyperfError, match="no layer 'raw', only socket"):
        plan.expand(loaded, ["socket"], ["raw"])


def test_unknown_plan_lists_the_plans():
    with pytest.raises(UpyperfError, match=r"no plan 'standrd' \(did you mean standard\?\)") as caught:
        plan.load("standrd")
    assert caught.value.exit_code == 2


def test_plan_file_with_mistakes_names_all(tmp_path):
    path = tmp_path / "p.toml"
    path.write_text('[[test]]\nversion = 4\nproto = "sctp"\nbandwith = "1M"\nlength = "12Q"\n')
    with pytest.raises(UpyperfError) as caught:
        plan.load(str(path))
    for part in ("version", "proto", "bandwith: unknown key (did you mean bandwidth?)"):
        assert part in caught.value.text
    path.write_text('[[test]]\nlength = "12Q"\n')
    with pytest.raises(UpyperfError, match="'12Q' is not a size"):
        plan.load(str(path))


@pytest.mark.parametrize(
    ("version", "mode", "options", "text"),
    [
        (3, "dual", {}, "iPerf 3 has no dual: use bidir"),
        (3, "tradeoff", {}, "iPerf 3 has no tradeoff"),
        (2, "send", {"omit": 1}, "iPerf 2 has no omit"),
    ],
)
def test_combinations_that_do_not_exist(version, mode, options, text):
    with pytest.raises(UpyperfError, match=text):
        plan.make(version, "tcp", mode, "socket", options)


@pytest.mark.parametrize(
    ("version", "mode", "expected"),
    [
        (3, "send", {}),
        (3, "receive", {"reverse": True}),
        (3, "bidir", {"bidir": True}),
        (2, "bidir", {"full_duplex": True}),
        (2, "dual", {"dual": True}),
        (2, "tradeoff", {"tradeoff": True}),
    ],
)
def test_job_options_of_a_client(version, mode, expected):
    test = plan.make(version, "udp", mode, "socket", {"time": 2, "bandwidth": 1000})
    options = plan.job_options(test, "192.0.2.1", 5555)
    base = {"host": "192.0.2.1", "port": 5555, "version": version, "udp": True, "layer": "socket"}
    assert options == {**base, "time": 2, "bandwidth": 1000, **expected}


def test_job_options_of_a_server_leave_the_clients_options_out():
    test = plan.make(3, "tcp", "receive", "socket", {"time": 2, "parallel": 2, "window": 4096}, "server")
    options = plan.job_options(test, None, 5201)
    assert options == {
        "version": 3, "udp": False, "port": 5201, "layer": "socket", "window": 4096, "one_off": True,
    }  # fmt: skip
