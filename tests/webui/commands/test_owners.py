"""`--owner`: a person's name or an owner's id; what is neither is refused, and nothing comes of it."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from core.people.people import new_person
from core.storage.conversations import ConversationStore
from core.storage.database import Database
from core.storage.people import PeopleStore
from webui.__main__ import main


def inhabited(home: Path) -> dict[str, str]:
    """A house with Mara, who has an account, and a guest; the ids of their conversations by whose they are."""

    async def fill() -> dict[str, str]:
        database = await Database.open(home / "parlour.db")
        try:
            mara = await PeopleStore(database).add(new_person("Mara", "member"), "terminal")
            talks: dict[str, str] = {}
            for name, owner in (("Mara", mara.id), ("guest-1", "guest-1")):
                talks[name] = (await ConversationStore(database, owner).create(f"Of {name}")).id
            return talks
        finally:
            await database.aclose()

    return asyncio.run(fill())


def owners(home: Path) -> set[str]:
    with closing(sqlite3.connect(home / "parlour.db")) as rows:
        return {one for (one,) in rows.execute("SELECT id FROM owners")}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder of which commands search by words."""
    monkeypatch.setenv("PARLOUR_RETRIEVAL", "keyword")
    return tmp_path / "home"


@pytest.mark.parametrize("typed", ["Mara", "  mara ", "guest-1"])
def test_a_person_is_named_as_people_are_and_a_guest_by_her_id(
    typed: str, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home.mkdir()
    whose = "Mara" if "ara" in typed else "guest-1"
    talk = inhabited(home)[whose]
    before = owners(home)
    given = ["--owner", typed, "--home", str(home), "--lang", "en"]
    bundle, paper = tmp_path / "all.zip", tmp_path / "lamp.md"
    paper.write_text("The green lamp stands beside the door.")
    assert main(["export", *given]) == 0
    assert capsys.readouterr().out.startswith(f"{talk}  ")
    assert main(["export", "--bundle", str(bundle), *given]) == 0
    assert main(["import", str(bundle), *given]) == 0
    assert main(["ingest", str(paper), "--library", "Papers", *given]) == 0
    assert main(["keys", "create", "a script", *given]) == 0
    assert owners(home) == before


@pytest.mark.parametrize("typed", ["Mraa", "", "../up", "\x1b[31mred", "\udcff", "x" * 5000])
def test_who_is_unknown_is_refused_and_nothing_is_made(
    typed: str, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home.mkdir()
    inhabited(home)
    before, files = owners(home), set(home.rglob("*"))
    paper = tmp_path / "lamp.md"
    paper.write_text("The green lamp stands beside the door.")
    for command in (
        ["export"],
        ["import", str(paper)],
        ["ingest", str(paper), "--library", "Papers"],
        ["keys", "create", "a script"],
        ["record", "x", str(tmp_path / "x.jsonl")],
    ):
        for lang in ("en", "zh"):
            assert main([*command, f"--owner={typed}", "--home", str(home), "--lang", lang]) == 1
            said = capsys.readouterr()
            assert not said.out
            assert said.err.count("\n") == 1
            assert repr(typed[:100]) in said.err
            assert "`parlour users list`" in said.err
            assert len(said.err) < 400
    assert owners(home) == before
    assert set(home.rglob("*")) - files <= {home / "parlour.db-wal", home / "parlour.db-shm"}


@pytest.mark.parametrize("command", [["export"], ["keys", "list"], ["ingest", "x", "--library", "x"]])
def test_where_no_data_is_nobody_is_and_none_is_made(
    command: list[str], home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command, "--owner", "Mara", "--home", str(home), "--lang", "en"]) == 1
    assert capsys.readouterr().err.startswith("parlour: There is no owner 'Mara'.")
    assert not home.exists()
