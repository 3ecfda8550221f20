"""`parlour keys`: keys are made, listed and revoked, and a line says where what one is for is switched off."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from core.doors.embedding import embedding_models
from core.storage import api_keys
from core.storage.api_keys import AllApiKeys
from core.storage.database import Database
from core.storage.sealing import Sealer
from core.storage.stores import Stores
from core.workspace.personas import Persona, Personas
from webui.__main__ import main

EMBED = ["keys", "create", "blog", "--for", "embed", "--model", "parlour"]


def made(capsys: pytest.CaptureFixture[str], command: list[str], home: Path, lang: str = "en") -> list[str]:
    assert main([*command, "--home", str(home), "--lang", lang]) == 0
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(("lang", "said"), [("en", "The small chat is off"), ("zh", "小聊天窗尚未开启")])
def test_a_key_for_the_small_chat_says_where_no_site_may_show_it(
    lang: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, key, note = made(capsys, EMBED, tmp_path / "home", lang)
    assert key.startswith("pk-")
    assert note.startswith(said)
    assert "PARLOUR_EMBED_SITES" in note


def test_a_key_for_what_is_on_says_no_more_than_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(made(capsys, ["keys", "create", "editor"], tmp_path / "home")) == 2
    monkeypatch.setenv("PARLOUR_EMBED_SITES", "https://blog.example.com")
    assert len(made(capsys, EMBED, tmp_path / "home")) == 2


def test_a_key_for_what_answers_nowhere_here_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = tmp_path / "home"
    known = ("parlour", "installed", "agent:guide", "ollama/qwen3:4b")
    asked = [part for one in (*known, "nosuch", "persona:gone", "nosuch/model") for part in ("--model", one)]
    *_, note = made(capsys, ["keys", "create", "editor", *asked], home)
    assert note.startswith("Nothing that answers is called nosuch, persona:gone, nosuch/model here now")

    async def persona() -> str:
        database = await Database.open(home / "parlour.db")
        try:
            settings = Stores(database, home / "files", Sealer("key")).of("local").settings
            return (await Personas(settings).save(Persona("", "Teacher"))).id
        finally:
            await database.aclose()

    there = f"persona:{asyncio.run(persona())}"
    assert len(made(capsys, ["keys", "create", "desk", "--model", there], home)) == 2


def test_a_key_for_what_makes_vectors_here_says_no_more_than_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = [part for one in embedding_models() for part in ("--model", one)]
    assert len(made(capsys, ["keys", "create", "index", "--for", "embeddings", *named], tmp_path / "home")) == 2


def test_keys_are_listed_by_their_names_and_never_shown_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "home"
    keys = [made(capsys, ["keys", "create", name], home)[1] for name in ("editor", "desk")]
    listed = made(capsys, ["keys", "list"], home)
    assert sorted(line.split()[1] for line in listed) == ["desk", "editor"]
    assert not [key for key in keys if key in "".join(listed)]


@pytest.mark.parametrize("by", ["name", "id"])
def test_a_key_that_is_revoked_lets_nobody_in_from_the_next_second_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    home = tmp_path / "home"
    _, key = made(capsys, ["keys", "create", "editor"], home)
    _, other = made(capsys, ["keys", "create", "desk"], home)
    id_ = next(line.split()[0] for line in made(capsys, ["keys", "list"], home) if " editor " in line)
    now = time.monotonic()
    monkeypatch.setattr(api_keys.time, "monotonic", lambda: now)

    async def running() -> list[bool]:
        """What a Parlour that runs all the while knows of both: before, and a second after."""
        nonlocal now
        database = await Database.open(home / "parlour.db")
        try:
            keys = AllApiKeys(database)
            found = [await keys.owner_of_key(one) is not None for one in (key, other)]
            told = await asyncio.to_thread(made, capsys, ["keys", "revoke", "editor" if by == "name" else id_], home)
            assert told == ["Revoked: nobody is let in with it any more."]
            now += 1.0
            return found + [await keys.owner_of_key(one) is not None for one in (key, other)]
        finally:
            await database.aclose()

    assert asyncio.run(running()) == [True, True, False, True]
    listed = made(capsys, ["keys", "list"], home)
    assert ["revoked" in line for line in sorted(listed, key=lambda line: line.split()[1])] == [False, True]
    assert main(["keys", "revoke", "editor", "--home", str(home), "--lang", "en"]) == 1
    assert "There is no key 'editor'" in capsys.readouterr().err
