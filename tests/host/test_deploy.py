"""Deploying: what is compiled how, what falls back, and that the lists of files are whole."""

import json
import subprocess
import sys

import pytest
from upyperf import boards, deploy, package_lists
from upyperf.errors import UpyperfError
from upyperf.paths import root

X64_63 = 6 | 3 << 8 | 2 << 10


@pytest.fixture
def board():
    return boards.load("unix")


class FakeLink:
    """Keeps files as a board does; `mpy` is what the board says of itself."""

    def __init__(self, mpy, files=()):
        self.mpy = mpy
        self.files = dict(files)
        self.calls = []

    def eval(self, expr, timeout):
        return self.mpy

    def exec(self, code, timeout):
        self.calls.append(code)
        for path in list(self.files):
            if repr(path) in code:
                del self.files[path]
        return ""

    def put_tree(self, files_by_path):
        changed = [path for path, data in files_by_path.items() if self.files.get(path) != data]
        self.files.update(files_by_path)
        return changed


@pytest.mark.parametrize(
    ("mpy", "version", "arch"),
    [
        (6 | 3 << 8, (6, 3), None),
        (X64_63, (6, 3), "x64"),
        (6 | 2 << 8 | 7 << 10, (6, 2), "armv7emsp"),
        (6 | 1 << 8 | 10 << 10, (6, 1), "xtensawin"),
    ],
)
def test_target_from_the_boards_number(mpy, version, arch):
    target = deploy.Target.of(mpy)
    assert (target.version, target.arch) == (version, arch)


def test_board_without_mpy_has_no_target():
    assert deploy.Target.of(None) is None
    assert deploy.Target.of(0) is None


def test_hot_files_are_native_and_the_rest_bytecode(board, tmp_path):
    files, deployed = deploy.build(board, X64_63, tmp_path)
    assert deployed.form == "mpy+native"
    header = {path: data[:3] for path, data in files.items()}
    # Byte 2 of an .mpy: sub-version in bits 0-1, architecture in bits 2-5.
    for path, (magic, version, features) in header.items():
        assert (magic, version) == (ord("M"), 6)
        native = path.rpartition("/")[2].startswith("hot")
        assert features >> 2 == (2 if native else 0), path
    assert any(path.endswith("/hot.mpy") for path in files)


def test_native_for_a_cortex_m(board, tmp_path):
    files, _ = deploy.build(board, 6 | 3 << 8 | 7 << 10, tmp_path)
    assert files["/lib/iperf/hot.mpy"][2] >> 2 == 7


def test_port_without_native_code_gets_bytecode_and_says_so(board, tmp_path):
    files, deployed = deploy.build(board, 6 | 3 << 8, tmp_path)
    assert deployed.form == "mpy"
    assert files["/lib/iperf/hot.mpy"][2] >> 2 == 0
    assert "no native code" in deployed.notes[0]


@pytest.mark.parametrize(("mpy", "note"), [(None, "loads no .mpy"), (7 | 1 << 8, "no .mpy version 7.1")])
def test_plain_files_where_mpy_does_not_match(board, tmp_path, mpy, note):
    files, deployed = deploy.build(board, mpy, tmp_path)
    assert deployed.form == "py"
    assert note in deployed.notes[0]
    assert files["/lib/iperf/__init__.py"] == (root() / "firmware/iperf/__init__.py").read_bytes()


def test_only_layers_of_the_board_go_there(board, tmp_path):
    files, _ = deploy.build(board, None, tmp_path)
    layers = {path.rpartition("/")[2] for path in files if "/layers/" in path}
    assert layers == {"__init__.py", "socket.py", "socket_open.py", "socket_serve.py"}


def test_only_changed_files_are_put(board, tmp_path):
    link = FakeLink(X64_63)
    first = deploy.deploy(link, board, tmp_path)
    assert first.changed == first.files > 10
    assert deploy.deploy(link, board, tmp_path).changed == 0
    link.files["/lib/iperf/errors.mpy"] = b"old"
    assert deploy.deploy(link, board, tmp_path).changed == 1


def test_a_file_of_the_other_form_does_not_hide_the_new_one(board, tmp_path):
    link = FakeLink(X64_63, {"/lib/iperf/errors.py": b"old", "/lib/iperf/mine.py": b"kept"})
    deploy.deploy(link, board, tmp_path)
    assert "/lib/iperf/errors.py" not in link.files
    assert link.files["/lib/iperf/mine.py"] == b"kept"


def test_syntax_error_is_one_line(tmp_path):
    source = tmp_path / "bad.py"
    source.write_text("def f(:\n")
    with pytest.raises(UpyperfError, match="mpy-cross: bad.py: SyntaxError") as caught:
        deploy.compile_file(
            deploy.Source("bad.py", source, False), deploy.Target((6, 3), None), False, tmp_path
        )
    assert caught.value.exit_code == 2


def test_lists_of_files_are_up_to_date():
    for path, text in package_lists.contents().items():
        assert (root() / path).read_text() == text, f"python -m upyperf.package_lists writes {path}"


def test_lists_name_every_file_of_the_package():
    names = package_lists.files()
    on_disk = {f"iperf/{p.relative_to(root() / 'firmware/iperf').as_posix()}" for p in
               (root() / "firmware/iperf").rglob("*.py")}  # fmt: skip
    assert on_disk - set(names) == {"iperf/manifest.py"}
    listed = json.loads((root() / "package.json").read_text())["urls"]
    assert [target for target, _ in listed] == names
    assert all((root() / source).is_file() for _, source in listed)


def test_mip_installs_the_package_on_a_board():
    from upyperf import virtual

    with virtual.start("unix") as running:
        mpremote = [sys.executable, "-m", "mpremote", "connect", running.device]
        done = subprocess.run(
            [*mpremote, "mip", "install", str(root() / "package.json"), "+", "exec", "import iperf.v3"],
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
