"""Calls of other packages of the name (field case P8): the right one is named."""

import iperf


def test_calls_of_iperf3_python_are_told_the_right_ones():
    for name in ("Client", "Server"):
        try:
            getattr(iperf, name)()
        except Exception as e:
            assert "iperf.client(" in str(e)
            assert "iperf3-python" in str(e)
        else:
            raise AssertionError(name)
