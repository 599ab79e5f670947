"""The collector of device tests reports what MicroPython really did."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    """A small project with this suite's conftest and one folder of device tests."""
    (pytester.path / "tests/device").mkdir(parents=True)
    shutil.copy(TESTS / "conftest.py", pytester.path / "tests/conftest.py")
    paths = f"{TESTS} {TESTS.parent / 'firmware'} tests/device"
    pytester.makeini(f"[pytest]\npythonpath = {paths}\naddopts = --import-mode=importlib\n")
    return pytester


def run(suite: pytest.Pytester, text: str, *options: str) -> pytest.RunResult:
    (suite.path / "tests/device/test_sample.py").write_text(text)
    return suite.runpytest_subprocess("-v", "-p", "no:cacheprovider", *options, timeout=120)


def test_each_function_runs_under_both_and_as_mpy(suite: pytest.Pytester) -> None:
    result = run(suite, "def test_a():\n    assert 1 + 1 == 2\n\n\ndef helper():\n    raise ValueError\n")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(
        ["*::test_a PASSED*", "*::test_a?micropython? PASSED*", "*::test_a?mpy? PASSED*"]
    )


def test_it_is_really_micropython(suite: pytest.Pytester) -> None:
    result = run(suite, "import sys\n\n\ndef test_a():\n    assert sys.implementation.name == 'cpython'\n")
    result.assert_outcomes(passed=1, failed=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_a_failure_shows_the_traceback_of_the_board(suite: pytest.Pytester) -> None:
    text = (
        "import sys\n\n\ndef inner(x):\n    assert sys.implementation.name == 'cpython', 'the value %d' % x\n"
        "\n\ndef test_bad():\n    print('seen before')\n    inner(42)\n\n\ndef test_good():\n    pass\n"
    )
    result = run(suite, text)
    result.assert_outcomes(passed=4, failed=2)
    result.stdout.fnmatch_lines(
        ["seen before", "*test_sample.py*line 5, in inner", "AssertionError: the value 42"]
    )


def test_the_package_of_the_mpy_variant_is_compiled(suite: pytest.Pytester) -> None:
    text = (
        "import sys\nimport iperf.errors\n\nONLY = {'test_path': 'micropython'}\n\n\n"
        "def test_path():\n    print('loaded from', iperf.errors.__file__)\n"
        "    assert iperf.errors.__file__.endswith('.mpy')\n"
    )
    result = run(suite, text)
    result.assert_outcomes(passed=1, failed=1, deselected=1)
    result.stdout.fnmatch_lines(["*::test_path?micropython? FAILED*", "*::test_path?mpy? PASSED*"])


def test_an_import_error_fails_every_function(suite: pytest.Pytester) -> None:
    text = "import sys\n\nif sys.implementation.name == 'micropython':\n    import nosuchmodule\n\n\n"
    result = run(suite, text + "def test_a():\n    pass\n\n\ndef test_b():\n    pass\n")
    result.assert_outcomes(passed=2, failed=4)
    result.stdout.fnmatch_lines(["*ImportError: no module named 'nosuchmodule'*"])


def test_a_hang_costs_one_test(suite: pytest.Pytester) -> None:
    text = (
        "import sys\n\nTIMEOUT_S = 2\nONLY = {'test_hang': 'micropython', 'test_next': 'micropython'}\n\n\n"
        "def test_hang():\n    print('going in')\n"
        "    while True:\n        pass\n\n\ndef test_next():\n    pass\n"
    )
    result = run(suite, text)
    result.assert_outcomes(passed=2, failed=2, deselected=2)
    result.stdout.fnmatch_lines(["going in", "*test_hang: no end after 2 s*"])


def test_a_crash_costs_one_test(suite: pytest.Pytester) -> None:
    text = (
        "ONLY = {'test_crash': 'micropython', 'test_next': 'micropython'}\n\n\n"
        "def test_crash():\n    import uctypes\n\n    uctypes.bytearray_at(0, 8)[0]\n"
        "\n\ndef test_next():\n    pass\n"
    )
    result = run(suite, text)
    result.assert_outcomes(passed=2, failed=2, deselected=2)
    result.stdout.fnmatch_lines(["*test_crash: the process ended with -11*"])


def test_an_exit_is_a_failure(suite: pytest.Pytester) -> None:
    result = run(suite, "import sys\n\n\ndef test_exit():\n    'time' in sys.modules or sys.exit(0)\n")
    result.assert_outcomes(passed=1, failed=2)


def test_the_heap_is_the_one_asked_for(suite: pytest.Pytester) -> None:
    text = (
        "import gc\n\nHEAP = '200k'\nONLY = {'test_heap': 'micropython'}\n\n\n"
        "def test_heap():\n    assert gc.mem_free() + gc.mem_alloc() < 220 * 1024\n"
    )
    run(suite, text).assert_outcomes(passed=2, deselected=1)


def test_only_for_cpython(suite: pytest.Pytester) -> None:
    run(suite, "ONLY = {'test_a': 'cpython'}\n\n\ndef test_a():\n    pass\n").assert_outcomes(passed=1)


def test_one_function_can_be_chosen(suite: pytest.Pytester) -> None:
    text = "def test_a():\n    pass\n\n\ndef test_b():\n    pass\n"
    run(suite, text, "tests/device/test_sample.py::test_b[mpy]").assert_outcomes(passed=1)
    run(suite, text, "-k", "micropython").assert_outcomes(passed=2, deselected=4)


def test_no_micropython_is_a_failure(suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.delenv("MICROPYTHON", raising=False)
    conftest = suite.path / "tests/conftest.py"
    conftest.write_text(conftest.read_text() + "\nimport sys\nsys.executable = '/nonexistent/python'\n")
    result = run(suite, "def test_a():\n    pass\n")
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(["*no MicroPython here: run `make setup`*"])


def test_what_did_not_run_is_counted_with_its_reason(suite: pytest.Pytester) -> None:
    (suite.path / "tests/test_host.py").write_text(
        "import pytest\nfrom harness.notrun import not_run\n\n\n"
        "@pytest.mark.parametrize('n', [1, 2])\ndef test_board(n):\n    not_run('no ESP32 board here')\n\n\n"
        "def test_runs():\n    pass\n"
    )
    result = suite.runpytest_subprocess("tests/test_host.py", "-p", "no:cacheprovider", timeout=60)
    result.assert_outcomes(passed=1, skipped=2)
    result.stdout.fnmatch_lines(["not run: 2", "  2 x no ESP32 board here"])
    assert result.ret == 0


def test_a_skip_for_a_missing_tool_is_a_failure(suite: pytest.Pytester) -> None:
    (suite.path / "tests/test_host.py").write_text(
        "import pytest\n\n\ndef test_tool():\n    pytest.importorskip('nosuchmodule')\n\n\n"
        "@pytest.mark.skip(reason='later')\ndef test_later():\n    pass\n"
    )
    (suite.path / "tests/test_module.py").write_text(
        "import pytest\n\npytest.skip('no tool', allow_module_level=True)\n"
    )
    result = suite.runpytest_subprocess("tests", "-p", "no:cacheprovider", timeout=60)
    assert result.ret == pytest.ExitCode.INTERRUPTED  # the module that skipped itself is a collection error
    result.stdout.fnmatch_lines(["*skipped with 'no tool'*"])
    result = suite.runpytest_subprocess("tests/test_host.py", "-p", "no:cacheprovider", timeout=60)
    result.assert_outcomes(failed=1, errors=1)
    result.stdout.fnmatch_lines(["*skipped with 'later'*"])
