"""The list of conversations over HTTP: part by part, for its owner alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from selectolax.lexbor import LexborHTMLParser

from core.engine import Engine
from core.settings import Settings
from core.storage import conversation_list
from core.storage.conversation_list import ConversationList
from core.testing.scripted_model import ScriptedModel
from tests.webui.server.served_app import Served, served

pytestmark = pytest.mark.anyio
LIST = "/conversations/list/"


@pytest.fixture
async def app(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Served]:
    settings = Settings(home=tmp_path, code="off")  # type: ignore[call-arg]
    async with Engine(settings, model=ScriptedModel("Yes.")) as engine, served(engine, settings) as app:
        yield app


async def test_the_rest_of_the_list_comes_in_parts_under_headings_that_are_not_repeated(
    app: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation_list, "PART", 3)
    mine = app.engine.stores.of("local")
    made = [(await mine.conversations.create(f"About <b> {number}")).id for number in range(7)]
    folder = await mine.folders.create("Work & <b>")
    await mine.folders.put(made[:2], folder.id)
    await mine.folders.configure(folder.id, lambda kept: {**kept, "open": True})
    beginning = await mine.conversation_list.beginning(limit=1)
    async with httpx.AsyncClient(base_url=app.address) as browser:
        cut = (await browser.get(LIST + "parts", params={"after": beginning.end, "holding": made[4]})).json()
        assert [rows for _, rows in cut["parts"]] == [3, 3, 1]
        assert cut["at"] == 1
        shown: list[str] = []
        headings: list[str] = []
        after, places = beginning.end, list[str]()
        for to, _ in cut["parts"]:
            answer = await browser.get(LIST + "rows", params={"after": after, "to": to, "here": made[4]})
            assert answer.headers["cache-control"] == "no-store"
            tree = LexborHTMLParser(answer.json()["markup"])
            shown += [str(link.attributes["data-open"]) for link in tree.css("a[data-open]")]
            headings += [heading.text() for heading in tree.css("h2")]
            places += [str(link.attributes["data-open"]) for link in tree.css("[aria-current=page]")]
            assert not tree.css("b")
            after = to
        assert shown == [made[1], made[0], *made[:1:-1]]
        assert headings == ["Today"]  # of the folders it stands in the beginning
        assert places == [made[4]]
        ids = (await browser.get(LIST + "ids")).json()["ids"]
        assert ids == [[made[1], folder.id], [made[0], folder.id], *([one, ""] for one in made[:1:-1])]


async def test_somebody_elses_list_is_not_told(app: Served) -> None:
    others = app.engine.stores.of("somebody")
    await others.conversations.create("Theirs")
    async with httpx.AsyncClient(base_url=app.address) as browser:
        assert (await browser.get(LIST + "ids")).json() == {"ids": []}
        assert (await browser.get(LIST + "parts")).json() == {"parts": [], "at": None}
        assert (await browser.post(LIST + "ids")).status_code == 405


@pytest.mark.parametrize("asked", [{}, {"after": "x", "to": "y"}, {"after": "2~0.0~~1~nan~x"}, {"after": "~" * 10_000}])
async def test_what_is_no_place_of_the_list_is_refused_in_a_sentence(app: Served, asked: dict[str, str]) -> None:
    async with httpx.AsyncClient(base_url=app.address) as browser:
        answer = await browser.get(LIST + "rows", params=asked)
    assert answer.status_code == 404
    assert answer.json()["failed"]


async def test_a_database_that_fails_is_told_in_a_sentence(app: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    async def failing(*_: Any, **__: Any) -> Any:
        raise RuntimeError("the disk is gone")

    monkeypatch.setattr(ConversationList, "ids", failing)
    async with httpx.AsyncClient(base_url=app.address) as browser:
        answer = await browser.get(LIST + "ids")
    assert answer.status_code == 503
    assert answer.json()["failed"]
