"""The memory of texts under keys: what it says, and that nothing leaves its folder."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import BadArgumentsError, SettingsError, ToolError
from core.tools.approval import Policy
from core.tools.builtin.storage import KeyNotExistsError, Storage
from core.tools.notes import KeyFiles, parts_of
from core.tools.taint import Taint


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "kept"


def ask(root: Path, operate: str, key: str = "/", value: str | None = None, **cfg: object) -> str:
    arguments = {"operate": operate, "key": key} | ({} if value is None else {"value": value})
    return Storage({"storage_root_path": str(root), **cfg}).call(arguments)


def files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_what_one_tool_keeps_another_one_finds_whichever_way_the_key_is_written(root: Path) -> None:
    assert ask(root, "put", "345/456/11", "hello") == "Successfully saved 345/456/11."
    assert ask(root, "put", "/345/456/12", "你好\r\n") == "Successfully saved 345/456/12."
    assert ask(root, "get", "/345/456/11") == "hello"
    assert ask(root, "get", "345//456/12/") == "你好\r\n"
    assert ask(root, "scan", "/345/456") == ask(root, "scan", "345/456/") == "/11: hello\n/12: 你好\r\n"
    assert ask(root, "scan", "345/456/11") == "/345/456/11: hello"


def test_what_is_not_there_is_said_in_words(root: Path) -> None:
    with pytest.raises(KeyNotExistsError, match=r"^Get Failed: a does not exist$"):
        ask(root, "get", "/a")
    assert ask(root, "delete", "a") == "Delete Failed: a does not exist"
    assert ask(root, "scan") == "Scan Failed: / does not exist"
    assert not root.exists()


def test_the_folders_of_a_value_go_with_it_where_they_hold_nothing_else(root: Path) -> None:
    ask(root, "put", "a/b/c/d", "1")
    ask(root, "put", "a/e", "2")
    ask(root, "delete", "a/b/c/d")
    assert [path.name for path in (root / "a").iterdir()] == ["e"]
    ask(root, "delete", "a/e")
    assert list(root.iterdir()) == []
    ask(root, "put", "a/b", "3")
    assert ask(root, "scan") == "/a/b: 3"


def test_what_is_kept_beside_something_that_is_deleted_stays(root: Path) -> None:
    def again_and_again(key: str) -> None:
        for _ in range(50):
            ask(root, "put", key, "1")
            assert ask(root, "get", key) == "1"
            ask(root, "delete", key)

    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(again_and_again, ["a/b/c", "a/b/d"])) == [None, None]
    assert list(root.iterdir()) == []


def test_a_value_takes_the_place_of_an_older_one_and_of_folders_that_hold_nothing(root: Path) -> None:
    ask(root, "put", "a/b/c", "1")
    with pytest.raises(ToolError, match="either a value or a folder"):
        ask(root, "put", "a/b/c/d", "2")
    with pytest.raises(ToolError, match="cannot be used"):
        ask(root, "put", "a", "2")
    assert ask(root, "delete", "a") == "Delete Failed: a does not exist"
    assert ask(root, "delete", "a/b/c") == "Successfully deleted a/b/c"
    ask(root, "put", "a", "2")
    ask(root, "put", "a", "3")
    assert ask(root, "scan") == "/a: 3"


OUTSIDE = [
    "../x",
    "a/../../x",
    "..",
    "a/..",
    ".",
    "...",
    ". .",
    "C:/x",
    "/C:x",
    "c:x",
    "a\\..\\x",
    "a\0b",
    "a\nb",
    "\x7f",
]


@pytest.mark.parametrize("operate", ["put", "get", "delete", "scan"])
@pytest.mark.parametrize("key", [*OUTSIDE, "k" * 201, "键" * 67, "k/" * 300, "\ud800", ".half-written-1"])
def test_a_key_that_no_file_inside_can_have_is_refused_in_one_sentence(root: Path, operate: str, key: str) -> None:
    with pytest.raises(BadArgumentsError) as caught:
        ask(root, operate, key, "x")
    assert "\n" not in str(caught.value)
    assert str(root.parent) not in str(caught.value)
    assert list(root.parent.iterdir()) == []


@pytest.mark.parametrize("key", ["link", "link/x", "file", "circle/x"])
@pytest.mark.parametrize("operate", ["put", "get", "delete"])
def test_links_lead_nowhere(root: Path, operate: str, key: str) -> None:
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "x").write_text("secret")
    root.mkdir()
    (root / "link").symlink_to(outside)
    (root / "file").symlink_to(outside / "x")
    (root / "circle").symlink_to(root / "circle")
    with pytest.raises(ToolError, match=r"leads out|cannot be used"):
        ask(root, operate, key, "mine")
    assert "secret" not in ask(root, "scan")
    assert files(outside) == ["x"]
    assert (outside / "x").read_text() == "secret"


def test_the_folder_itself_may_be_a_link(root: Path) -> None:
    (root.parent / "far").mkdir()
    root.symlink_to(root.parent / "far")
    ask(root, "put", "a", "1")
    assert ask(root, "get", "a") == "1"


def test_values_and_their_number_have_limits(root: Path) -> None:
    with pytest.raises(BadArgumentsError, match="at most 4 may be kept"):
        ask(root, "put", "a", "你好", longest_value=4)
    ask(root, "put", "a", "123", most_bytes=6)
    ask(root, "put", "a", "123456", most_bytes=6)
    with pytest.raises(ToolError, match="no room: 6 bytes"):
        ask(root, "put", "b", "1", most_bytes=6)
    with pytest.raises(ToolError, match="no room: 1 values"):
        ask(root, "put", "b", "1", most_keys=1)
    assert files(root) == ["a"]


@pytest.mark.parametrize("limit", ["many", 0, -1, None, 1.5])
def test_a_limit_that_makes_no_sense_is_refused_by_name(limit: object) -> None:
    with pytest.raises(SettingsError, match="'most_keys' must be a whole number"):
        Storage({"most_keys": limit})


def test_a_long_listing_ends_with_the_word_that_there_is_more(root: Path) -> None:
    for number in range(4):
        ask(root, "put", f"n{number}", "x" * 100_000)
    listed = ask(root, "scan").splitlines()
    assert [line[:4] for line in listed] == ["/n0:", "/n1:", "/n2:", "… Th"]


def test_put_needs_a_value_and_a_key_and_a_value_is_text(root: Path) -> None:
    with pytest.raises(BadArgumentsError, match="'value' is missing"):
        ask(root, "put", "a")
    with pytest.raises(BadArgumentsError, match="needs a key"):
        ask(root, "put", "/", "x")
    with pytest.raises(BadArgumentsError, match="'value' must be text"):
        Storage({"storage_root_path": str(root)}).call('{"operate": "put", "key": "a", "value": {"b": 1}}')
    with pytest.raises(BadArgumentsError, match="'operate' must be text"):
        Storage({"storage_root_path": str(root)}).call({"operate": 1})


def test_a_value_that_cannot_be_written_leaves_the_older_one(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ask(root, "put", "a", "old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ToolError, match="No space left on device") as caught:
        ask(root, "put", "a", "new")
    assert str(root) not in str(caught.value)
    assert ask(root, "scan") == "/a: old"
    assert files(root) == ["a"]


def test_many_writers_never_leave_half_a_value(root: Path) -> None:
    seen: set[str] = set()

    def write(letter: str) -> None:
        for _ in range(20):
            ask(root, "put", "a/b", letter * 5000)
            seen.add(ask(root, "get", "a/b"))

    writers = [threading.Thread(target=write, args=(letter,)) for letter in "xyz"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert seen <= {letter * 5000 for letter in "xyz"}
    assert files(root) == ["a/b"]


def test_it_says_that_it_writes_and_makes_no_folder_before_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tool = Storage()
    assert (tool.reads, tool.writes, tool.runs_code, tool.reaches_out) == (True, True, False, False)
    assert list(tmp_path.iterdir()) == []


@given(st.text(alphabet=st.sampled_from("ab./\\ :~\0\n\u202e键%"), max_size=20))
def test_every_key_stays_inside_or_is_refused(key: str) -> None:
    try:
        parts = parts_of(key)
    except BadArgumentsError:
        return
    assert all(part not in {"", ".", ".."} and "/" not in part and "\\" not in part for part in parts)


@given(st.text(max_size=50))
def test_any_text_is_kept_as_it_is(tmp_path_factory: pytest.TempPathFactory, value: str) -> None:
    kept = KeyFiles(tmp_path_factory.getbasetemp() / "any")
    kept.put("a", value)
    assert kept.get("a") == value


def test_to_forget_is_asked_about_each_time_also_where_notes_may_be_kept_in_this_chat(root: Path) -> None:
    notes = Storage({"storage_root_path": str(root)})
    allowed = Policy(lasting=("storage",))
    found = {one: allowed.verdict(notes, {"operate": one, "key": "a"}, Taint()) for one in ("put", "get", "delete")}
    assert found == {"put": "run", "get": "run", "delete": "destructive"}
    assert Policy().verdict(notes, {"operate": "delete", "key": "a"}, Taint()) == "destructive"
    assert Policy().verdict(notes, {"operate": "put", "key": "a", "value": "b"}, Taint()) == "writes"


@pytest.mark.parametrize("operate", ["list", "SCAN", "", "put "])
def test_an_operation_that_there_is_not_is_refused_with_those_that_there_are(root: Path, operate: str) -> None:
    ask(root, "put", "a", "1")
    with pytest.raises(BadArgumentsError, match='"put", "get", "delete", "scan"'):
        ask(root, operate, "a", "2")
    assert ask(root, "scan") == "/a: 1"
