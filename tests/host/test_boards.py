"""board.toml: every mistake at once, unknown keys with a hint, unknown boards listed."""

import json

import pytest
from upyperf import boards
from upyperf.boards.model import Board
from upyperf.errors import UpyperfError
from upyperf.tomlmodel import load

GOOD = {
    "name": "x", "title": "X", "kind": "hardware", "tested": "none", "port": "stm32",
    "layers": ["socket"], "nic": {"kind": "lan"}, "twin": "unix",
}  # fmt: skip


def mistakes(**changes):
    with pytest.raises(UpyperfError) as caught:
        load(Board, {**GOOD, **changes}, "x/board.toml")
    assert caught.value.exit_code == 2
    assert "\n" not in caught.value.text
    return caught.value.text


def test_all_mistakes_are_named_at_once_with_their_keys():
    text = mistakes(
        tested="no",
        nic={"kind": "lan", "link_mbit": "fast"},
        flash=[{"method": "esptol"}],
        serial={"baud": "x"},
    )
    for key in ("x/board.toml:", "tested:", "nic.link_mbit:", "flash[0].method:", "serial.baud:"):
        assert key in text


@pytest.mark.parametrize(
    ("changes", "hint"),
    [
        ({"titel": "X"}, "titel: unknown key (did you mean title?)"),
        ({"serial": {"buad": 9600}}, "serial.buad: unknown key (did you mean baud?)"),
        (
            {"serial": {"usb": [{"vendor": 1, "pdi": 2}]}},
            "serial.usb[0].pdi: unknown key (did you mean pid?)",
        ),
    ],
)
def test_unknown_key_gets_a_hint(changes, hint):
    assert hint in mistakes(**changes)


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"kind": "virtual", "twin": None}, "virtual: a virtual board needs"),
        ({"virtual": {"launcher": "unix"}}, "virtual: a hardware board has no"),
        ({"time": "virtual"}, "time: a hardware board keeps wall time"),
        ({"serial": {"machine": "("}}, "serial.machine: not a regular expression"),
    ],
)
def test_contradictions_are_refused(changes, part):
    assert part in mistakes(**changes)


def test_unknown_board_lists_the_boards():
    with pytest.raises(UpyperfError, match=r"no board 'unx' \(did you mean unix\?\); the boards are: .*unix"):
        boards.load("unx")


def test_name_must_be_the_folder(tmp_path):
    folder = tmp_path / "b"
    folder.mkdir()
    text = (boards.folder() / "unix" / "board.toml").read_text()
    (folder / "board.toml").write_text(text)
    with pytest.raises(UpyperfError, match="name: is 'unix', its folder 'b'"):
        boards.load_file(folder / "board.toml")


def test_not_toml_is_one_line(tmp_path):
    (tmp_path / "board.toml").write_text("name = \n")
    with pytest.raises(UpyperfError, match="not TOML: .*line 1") as caught:
        boards.load_file(tmp_path / "board.toml")
    assert "\n" not in caught.value.text


def test_every_board_of_the_repository_loads():
    loaded, errors = boards.load_all()
    assert not errors
    assert "unix" in [board.name for board in loaded]
    by_name = {board.name: board for board in loaded}
    for board in loaded:
        assert board.twin is None or by_name[board.twin].kind == "virtual"


def test_schema_is_json_and_hides_what_is_not_a_key():
    schema = json.loads(json.dumps(boards.schema()))
    assert "folder" not in schema["properties"]
    assert set(schema["required"]) == {"name", "title", "kind", "tested", "port", "layers", "nic"}
