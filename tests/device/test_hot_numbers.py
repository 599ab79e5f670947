"""Each hot loop's file has its own copy of the numbers of iperf.hot: they are the same ones."""

from iperf import hot, hot_blast, hot_paced, hot_recv, hot_tcp

# MicroPython keeps no constant whose name begins with an underscore
ONLY = {"test_same_numbers": "cpython"}


def test_same_numbers():
    compared = 0
    for loop in (hot_blast, hot_paced, hot_recv, hot_tcp):
        for name, number in vars(loop).items():
            if name[0] != "_" or name[1:2] == "_" or not isinstance(number, int):
                continue
            if name in ("_ID_MASK", "_ID_HALF", "_ID_JUMP", "_D_MAX"):
                continue
            shared = getattr(hot, name[1:], getattr(hot, name, None))
            assert number == shared, (loop.__name__, name)
            compared += 1
    assert compared > 40, compared
