"""What is typed wrongly at a command is told once, in a sentence that names it; and no command says nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from core.storage.conversations import ConversationStore
from core.storage.database import Database
from webui.__main__ import main

LINES = {
    "users list ada": "users list takes no 'ada'; write `parlour users list`",
    "users invite ada": "users invite takes no 'ada'",
    "users role": "users role needs a name; write it like `parlour users role ada member`",
    "users role ada": "users role needs one more word; write it like `parlour users role ada member`",
    "users role ada admin": "role must be one of 'guest', 'member', 'administrator', 'owner', not 'admin'",
    "users delete": "users delete needs a name; write it like `parlour users delete ada`",
    "users invite --days -1": "--days must be a whole number from 1, not '-1'",
    "users": "these are missing: do",
    "groups make": "groups make needs a name; write it like `parlour groups make team`",
    "groups add a": "groups add needs one more word; write it like `parlour groups add team ada`",
    "groups delete a b": "groups delete takes no 'b'",
    "keys create": "keys create needs a name; write it like `parlour keys create editor`",
    "keys create k --budget -3": "--budget must be a number above 0, not '-3'",
    "keys create k --budget nan": "--budget must be a number above 0, not 'nan'",
    "keys create k --budget x": "--budget must be a number above 0, not 'x'",
    "keys create k --budget": "--budget needs a value behind it",
    "keys create k --for nope": "--for must be one of 'chat', 'files', 'embeddings', 'embed', not 'nope'",
    "keys revoke": "keys revoke needs a name",
    "keys list k": "keys list takes no 'k'; write `parlour keys list`",
    "keys list --home ''": "--home must be the path of a folder, not ''",
    "--home ''": "--home must be the path of a folder, not ''",
    "export ''": "a conversation must be an id, not ''; `parlour export` lists all",
    "export --out o.zip": "--out needs what is written; name a conversation, or write --all",
    "ingest '' --library L": "SOURCE must be a file, a folder, a pattern or s3://bucket/prefix, not ''",
    "models foo": "act must be one of 'list', 'get', 'remove', not 'foo'",
    "schema suite extra": "it takes no extra",
    "--prot 5": "there is no --prot, perhaps --port is meant",
    "--nonsense": "it takes no --nonsense",
}


@pytest.mark.parametrize("line", LINES)
def test_arguments_that_make_no_sense_are_named_with_what_to_write(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main([word.replace("''", "") for word in line.split()])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith(f"parlour: {LINES[line]}")
    assert said.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()

    (tmp_path / "home").mkdir(mode=0o700)

    async def filled() -> None:
        database = await Database.open(tmp_path / "home" / "parlour.db")
        await database.aclose()

    asyncio.run(filled())
    return ["--home", "home"]


def test_where_there_is_nothing_the_lists_say_so(home: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for words, said in {
        ("users", "list"): "Nobody has an account. `parlour users invite` makes a link for the first.",
        ("groups", "list"): "There are no groups. `parlour groups make NAME` makes one.",
        ("audit",): "Nothing was done about people.",
        ("export",): "There are no conversations.",
        ("keys", "list"): "There are no keys.",
    }.items():
        assert main([*words, *home, "--lang", "en"]) == 0
        assert capsys.readouterr().out == f"{said}\n"
        assert main([*words, *home, "--lang", "zh"]) == 0
        assert "\u4e00" <= capsys.readouterr().out[0] <= "\u9fff"


def test_an_export_says_what_it_wrote(home: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    async def one() -> None:
        database = await Database.open(Path("home/parlour.db"))
        await ConversationStore(database, "local").create("Tea")
        await database.aclose()

    asyncio.run(one())
    for words in (("--all", "--out", "all.zip"), ("--bundle", "all.zip")):
        assert main(["export", *words, *home, "--lang", "en"]) == 0
        assert capsys.readouterr().out == "all.zip: 1 conversation.\n"


def test_names_that_are_not_there_are_told(home: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for words, said in {
        ("users", "role", "ada", "member"): "There is no person 'ada'. `parlour users list` lists all.",
        ("groups", "delete", "team"): "There is no group 'team'. `parlour groups list` lists all.",
        ("keys", "revoke", "editor"): "There is no key 'editor'. `parlour keys list` lists all.",
        ("import", "folder"): "folder is a folder. Name a file in it.",
        ("import", "/folder/none.json"): "There is no file /folder/none.json.",
        ("restore", "folder"): "folder is a folder. Name a backup in it.",
    }.items():
        assert main([*words, *home, "--lang", "en"]) == 1
        assert capsys.readouterr().err == f"parlour: {said}\n"


def test_a_file_that_is_not_there_is_told_once(home: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for file, said in {
        "nope.yaml": "There is no file nope.yaml.",
        "folder": "folder is a folder; name a file in it.",
        "": "There is no file ''.",
    }.items():
        assert main(["check", file, "--lang", "en"]) == 1
        assert capsys.readouterr().err == f"{said}\n"
    assert main(["demo", "folder", "--lang", "en"]) == 1
    assert capsys.readouterr().err == "parlour: folder is a folder. Name a file in it.\n"
