"""`parlour users` and `parlour audit`: for scripts, and for whoever has lost the way in; also while Parlour runs."""

from __future__ import annotations

import asyncio
import io
import re
import zipfile
from pathlib import Path

import pytest

from core.people.people import People, new_person
from core.storage.conversations import ConversationStore
from core.storage.database import Database
from core.storage.people import PeopleStore
from webui.__main__ import main

GOOD = "a sentence that nobody guesses"


async def joins(home: Path, token: str, name: str) -> str:
    database = await Database.open(home / "parlour.db")
    try:
        done = await People(PeopleStore(database)).accept(token, name, GOOD, browser="")
        await ConversationStore(database, done.person.id).create("A secret")
        return done.person.id
    finally:
        await database.aclose()


class Terminal(io.StringIO):
    """Somebody who types."""

    def isatty(self) -> bool:
        return True


def test_people_are_invited_listed_changed_helped_and_deleted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    home = ["--home", str(tmp_path), "--lang", "en"]

    def said(*words: str, code: int = 0) -> str:
        assert main([*words, *home]) == code
        out = capsys.readouterr()
        return out.err if code else out.out

    assert "There is no data" in said("users", "list", code=1)
    asyncio.run(Database.open(tmp_path / "parlour.db"))
    for name, role in (("Jan", "owner"), ("Mara", "member")):
        link = said("users", "invite", "--role", role, "--days", "1")
        found = re.fullmatch(r"http://127\.0\.0\.1:7860/link/(\S+)\n", link)
        assert found is not None
        asyncio.run(joins(tmp_path, found[1], name))
    listed = said("users", "list")
    assert re.search(r"^Jan  owner  \S+ \S+  Questions: 0", listed, re.MULTILINE)
    assert "A secret" not in listed
    assert said("users", "role", "MARA", "administrator") == "Mara has another role now: Administrator.\n"
    assert "/link/" in said("users", "reset", "mara")
    assert "There must be an owner" in said("users", "role", "jan", "guest", code=1)
    assert "There is no person 'nobody'" in said("users", "reset", "nobody", code=1)
    kept = tmp_path / "mara.zip"
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert "Add --yes if that is meant." in said("users", "delete", "mara", code=1)
    for typed in ("", "yes"):
        monkeypatch.setattr("sys.stdin", Terminal(f"{typed}\n"))
        assert said("users", "delete", "mara") == "Nothing was deleted.\n"
    assert "Mara" in said("users", "list")
    monkeypatch.setattr("sys.stdin", Terminal("Mara\n"))
    assert "deleted" in said("users", "delete", "mara", "--export", str(kept))
    assert zipfile.ZipFile(kept).namelist()
    assert "Mara" not in said("users", "list")
    acts = said("audit", "--last", "3")
    assert "terminal deleted the account of Mara." in acts
    assert acts.count("\n") == 3


def test_groups_are_made_filled_renamed_and_deleted_by_scripts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    home = ["--home", str(tmp_path), "--lang", "en"]

    def said(*words: str, code: int = 0) -> str:
        assert main([*words, *home]) == code
        out = capsys.readouterr()
        return out.err if code else out.out

    async def comes(name: str) -> None:
        database = await Database.open(tmp_path / "parlour.db")
        try:
            await PeopleStore(database).add(new_person(name, "member"), "terminal")
        finally:
            await database.aclose()

    for name in ("Mara", "Jan"):
        asyncio.run(comes(name))
    assert said("groups", "make", "Research") == "Done: Research.\n"
    assert "There is a group of this name" in said("groups", "make", "research", code=1)
    for name in ("mara", "jan"):
        said("groups", "add", "research", name)
    assert said("groups", "list") == "Research  Jan  Mara\n"
    said("groups", "remove", "research", "jan")
    said("groups", "rename", "research", "Lab")
    assert said("groups", "list") == "Lab  Mara\n"
    assert "There is no person 'nobody'" in said("groups", "add", "lab", "nobody", code=1)
    assert "There is no group 'research'" in said("groups", "delete", "research", code=1)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    unasked = said("groups", "delete", "lab", code=1)
    assert "The group Lab is deleted for good" in unasked
    assert "Add --yes if that is meant." in unasked
    for typed in ("", "yes"):
        monkeypatch.setattr("sys.stdin", Terminal(f"{typed}\n"))
        assert said("groups", "delete", "lab") == "Nothing was deleted.\n"
    assert said("groups", "list") == "Lab  Mara\n"
    monkeypatch.setattr("sys.stdin", Terminal("Lab\n"))
    assert said("groups", "delete", "lab") == "Done: Lab.\n"
    said("groups", "make", "Lab")
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert said("groups", "delete", "lab", "--yes") == "Done: Lab.\n"
    assert said("groups", "list").startswith("There are no groups.")
    assert "The terminal took Jan out of Research." in said("audit")
