"""Modules that have done their work go, and come back when asked for."""

import gc
import sys

from iperf import memory

MP = sys.implementation.name == "micropython"


def loaded(name):
    return "iperf." + name in sys.modules


def test_a_stage_runs_and_goes():
    seen = []

    class Module:
        @staticmethod
        def run(a, b):
            seen.append((a, b))
            return a + b

    import iperf

    sys.modules["iperf.made_up"] = iperf.made_up = Module
    real = memory.__import__ if hasattr(memory, "__import__") else None
    memory.__import__ = lambda name: None
    try:
        assert memory.stage("made_up", 1, 2) == 3
    finally:
        if real:
            memory.__import__ = real
        else:
            del memory.__import__
    assert seen == [(1, 2)]
    assert loaded("made_up") != MP
    sys.modules.pop("iperf.made_up", None)


def test_a_forgotten_module_is_loaded_again():
    from iperf import units

    memory.forget("units")
    assert loaded("units") != MP
    from iperf import units as again

    assert (again is units) != MP
    assert again.size(1024) == units.size(1024)


def test_what_is_named_stays():
    from iperf import clock, units  # noqa: F401

    memory.forget_all("memory", "clock")
    assert loaded("memory")
    assert loaded("clock")
    assert loaded("units") != MP


def _load_engine():
    __import__("iperf.engine")


def _free():
    gc.collect()
    return gc.mem_free()


def test_forgotten_modules_are_memory_again():
    if not MP:
        return
    _load_engine()  # once before: the names of a module stay for ever
    memory.forget_all("memory")
    before = _free()
    _load_engine()
    with_engine = _free()
    memory.forget_all("memory")
    assert before - with_engine > 5000, (before, with_engine)
    assert before - _free() < 1000, (before, with_engine, _free())
