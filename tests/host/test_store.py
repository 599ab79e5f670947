"""Results: written as they come, indexed, found again; settings and where they come from."""

import json
import sqlite3

import pytest
from upyperf import events, settings
from upyperf.errors import UpyperfError
from upyperf.records import Bench, BoardRef, Direction, HostRef, RunResult, Sum, Test
from upyperf.store import Index, RunFolder


def bench(ident="b1", board="unix", started="2026-01-01T00:00:00.000Z", code=0):
    run = RunResult(
        id="r01",
        test=Test(name="iperf3-tcp-send"),
        directions=[Direction(way="send", peer=Sum(bytes=125_000, us=1_000_000))],
    )
    host = HostRef(hostname="h", platform="p", python="3", upyperf="0")
    return Bench(
        id=ident,
        started=started,
        board=BoardRef(name=board, kind="virtual"),
        host=host,
        runs=[run],
        exit_code=code,
    )


def stored(base, **kw):
    made = bench(**kw)
    folder = RunFolder(base / made.id)
    folder.save(made)
    folder.close()
    Index(base).add(made, folder.path)
    return folder.path


def test_events_are_in_the_file_at_once(tmp_path):
    folder = RunFolder.new(tmp_path, "unix")
    folder.record(events.NoteEvent(source="host", text="one"))
    # Not closed: a crash now must lose nothing.
    lines = (folder.path / "records.jsonl").read_text().splitlines()
    assert json.loads(lines[0])["text"] == "one"
    folder.close()
    folder.record(events.NoteEvent(source="host", text="late"))


def test_names_do_not_collide(tmp_path):
    folders = [RunFolder.new(tmp_path, "unix") for _ in range(3)]
    assert len({folder.path for folder in folders}) == 3
    assert all(folder.path.name.split("Z-")[1].startswith("unix") for folder in folders)
    for folder in folders:
        folder.close()


def test_results_are_whole_and_come_back(tmp_path):
    with RunFolder(tmp_path / "x") as folder:
        folder.save(bench())
        folder.save(bench(code=5))
    assert Bench.model_validate_json((tmp_path / "x/results.json").read_text()) == bench(code=5)
    assert not list((tmp_path / "x").glob("*.part"))


def test_folder_with_results_is_not_overwritten(tmp_path):
    with RunFolder.at(tmp_path / "x") as folder:
        folder.save(bench())
    with pytest.raises(UpyperfError, match="holds results already"):
        RunFolder.at(tmp_path / "x")


def test_folder_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UpyperfError, match="cannot write results to"):
        RunFolder.new(tmp_path / "file", "unix")


def test_finding(tmp_path):
    first = stored(tmp_path, ident="20260101T000000Z-unix", started="2026-01-01T00:00:00Z")
    second = stored(
        tmp_path, ident="20260102T000000Z-stm32f407", board="stm32f407", started="2026-01-02T00:00:00Z"
    )
    index = Index(tmp_path)
    assert index.find("latest") == second
    assert index.find("latest:unix") == first
    assert index.find("latest~1") == first
    assert index.find("20260101") == first
    assert index.find(second.name) == second
    assert index.find(str(first)) == first
    assert index.find(str(first / "results.json")) == first
    for name, text in (("2026", "means 2 results"), ("nope", "no results 'nope'"), ("latest~2", "2 there")):
        with pytest.raises(UpyperfError, match=text) as caught:
            index.find(name)
        assert caught.value.exit_code == 2


def test_index_is_made_again_from_the_folders(tmp_path):
    path = stored(tmp_path, ident="20260101T000000Z-unix")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken/results.json").write_text("{")
    index = Index(tmp_path)
    index.path.unlink()
    assert index.find("latest") == path
    index.path.write_bytes(b"not a database, but long enough to be looked at" * 10)
    assert index.find("latest") == path
    problems = index.rebuild()
    assert len(problems) == 1
    assert "broken" in problems[0]
    with sqlite3.connect(index.path) as connection:
        rows = connection.execute("SELECT test, way, bytes, us FROM figure").fetchall()
    assert rows == [("iperf3-tcp-send", "send", 125_000, 1_000_000)]


def test_deleted_folder_is_not_found(tmp_path):
    first = stored(tmp_path, ident="a", started="2026-01-01T00:00:00Z")
    second = stored(tmp_path, ident="b", started="2026-01-02T00:00:00Z")
    (second / "results.json").unlink()
    assert Index(tmp_path).find("latest") == first


def test_precedence_of_settings(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "upyperf.toml").write_text('board = "from-file"\nresults = "r"\n')
    assert settings.resolve().board == "from-file"
    monkeypatch.setenv("UPYPERF_BOARD", "from-env")
    assert settings.resolve().board == "from-env"
    assert settings.resolve(board="from-flag").board == "from-flag"
    assert settings.resolve(board=None).results == "r"


def test_mistakes_in_the_settings_file(tmp_path):
    (tmp_path / "upyperf.toml").write_text('bord = "x"\nport = 3\n')
    with pytest.raises(UpyperfError, match="bord: unknown key") as caught:
        settings.settings(tmp_path, {})
    assert "port:" in caught.value.text
