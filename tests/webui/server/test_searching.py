"""The search of the palette over HTTP, and a tab that turns to a message that was found."""

from __future__ import annotations

from collections.abc import AsyncIterator
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import pytest

from core.engine import Engine
from core.errors import ConflictError, NotFoundError
from core.messages.message import Message
from core.settings import Settings
from core.storage.conversations import TEMPORARY, ConversationStore
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from core.workspace.workspace import Workspace
from tests.webui.server.served_app import Served, served
from tests.webui.server.test_approval import PUT, House, house  # noqa: F401 - a fixture
from webui.handlers.send import send
from webui.views import WINDOW, View

pytestmark = pytest.mark.anyio


@pytest.fixture
async def app(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Served]:
    settings = Settings(home=tmp_path, code="off")  # type: ignore[call-arg]
    async with Engine(settings, model=ScriptedModel("Yes.")) as engine, served(engine, settings) as app:
        yield app


async def talk(store: ConversationStore, title: str, *said: str) -> tuple[str, list[str]]:
    """A conversation of questions and replies in turn, and the ids of its turns."""
    made = await store.create(title)
    ids: list[str] = []
    for number, text in enumerate(said):
        role = "assistant" if number % 2 else "user"
        turn = await store.add_message(made.id, role, [Message(role, text)], ids[-1] if ids else None)
        ids.append(turn.id)
    return made.id, ids


async def test_the_owner_finds_messages_documents_and_libraries_and_nobody_else_does(app: Served) -> None:
    mine, other = app.engine.stores.of("local"), app.engine.stores.of("somebody")
    conversation, (question, reply) = await talk(mine.conversations, "Policy", "A storm?", "The **storm** passes.")
    await talk(other.conversations, "Their storm", "a storm of theirs")
    await mine.conversations.archive([conversation])
    library = await mine.libraries.create("Storms")
    async with httpx.AsyncClient(base_url=app.address) as browser:
        answer = await browser.get("/search", params={"q": "STORM"})
        assert answer.headers["cache-control"] == "no-store"
        assert answer.status_code == 200, answer.text
        found = answer.json()
        (shown,) = found["conversations"]
        assert (shown["id"], shown["title"], shown["archived"]) == (conversation, "Policy", True)
        assert shown["hits"] == [
            {"message": reply, "who": "reply", "text": "The storm passes.", "marks": [[4, 9]]},
            {"message": question, "who": "you", "text": "A storm?", "marks": [[2, 7]]},
        ]
        assert [(one["id"], one["name"], one["marks"]) for one in found["libraries"]] == [
            (library.id, "Storms", [[0, 5]])
        ]
        assert found["documents"] == []
        nothing = (await browser.get("/search")).json()
        assert nothing["conversations"] == []  # the only one is archived
        for strange in ('"', "%00", "\ud83d".encode("utf-8", "surrogatepass"), "\xff", "x" * 10_000):
            assert (await browser.get("/search", params={"q": strange})).status_code == 200


async def test_what_stands_in_documents_is_found_by_its_words_and_by_nobody_else(app: Served, tmp_path: Path) -> None:
    async with app.engine.workspaces.open("local") as mine:
        library = await mine.libraries.create("House")
        notes = "The **deductible** is 300 dollars for each claim.\n\n理赔的免赔额是三百元。"
        record = await mine.libraries.add(library.id, notes.encode(), "notes.md")
        passing = await mine.conversations.create("Passing", settings={TEMPORARY: True})
        file = await mine.files.put("secret.md", b"A deductible that nobody finds.")
        await mine.intake.add(passing.id, file)
        await until_read(mine, library.id, passing.id)
    async with httpx.AsyncClient(base_url=app.address) as browser:

        async def asked(text: str) -> list[dict[str, Any]]:
            answer = await browser.get("/search/passages", params={"q": text})
            assert answer.status_code == 200, answer.text
            return answer.json()["passages"]

        (one,) = await asked("DEDUCTIBLE cla")
        assert (one["where"], one["within"]) == ("notes.md", "House")
        assert one["text"].startswith("The deductible is 300 dollars")
        assert [one["text"][begin:end] for begin, end in one["marks"]] == ["deductible", "cla"]
        (chinese,) = await asked("免赔额")
        assert [chinese["text"][begin:end] for begin, end in chinese["marks"]] == ["免赔额"]
        for nothing in ("deductible storm", "", "the", '"', "x" * 10_000):
            assert await asked(nothing) == []
        named = (await browser.get("/search", params={"q": "notes"})).json()["documents"]
        assert [found["id"] for found in named] == [record.id]
        async with app.engine.workspaces.open("somebody") as theirs:
            assert (await theirs.document_search.find("deductible")).passages == ()
            assert not theirs.is_open  # nothing is opened for who has no documents


async def until_read(workspace: Workspace, library: str, conversation: str) -> None:
    """Wait until all documents of both were read."""
    records = [*await workspace.documents.list(conversation), *(await workspace.libraries.opened(library)).documents]
    read = await workspace.intake.wait(conversation, [one.id for one in records], 300)
    assert {one.status for one in read} == {"ready"}


async def shown(of: House, view: View) -> str:
    return unescape(str((await of.over(view)).chat))  # a question's signs are escaped, so that it stands as typed


@pytest.mark.parametrize("house", [("Never asked.",)], indirect=True)
async def test_a_message_outside_the_window_is_shown_with_some_before_it(house: House) -> None:  # noqa: F811
    store = house.engine.stores.of(house.owner).conversations
    conversation, ids = await talk(store, "Long", *[f"Turn {number}." for number in range(WINDOW * 2)])
    tab = house.tab()
    await house.act(tab, do="open", id=conversation, message=ids[10])
    chat = await shown(house, tab)
    assert "Turn 10." in chat
    assert "Turn 6." in chat
    assert "Turn 5." not in chat
    assert f"Turn {WINDOW * 2 - 1}." in chat
    await house.act(tab, do="open", id=conversation, message=ids[-1])
    assert "Turn 10." not in await shown(house, tab)
    assert tab.window == WINDOW


@pytest.mark.parametrize("house", [("Never asked.",)], indirect=True)
async def test_a_message_of_another_branch_is_turned_to(house: House) -> None:  # noqa: F811
    store = house.engine.stores.of(house.owner).conversations
    conversation, ids = await talk(store, "Branches", "Which way?", "Left.")
    other = await store.add_message(conversation, "assistant", [Message("assistant", "Right.")], ids[0])
    await store.add_message(conversation, "user", [Message("user", "And then?")], other.id)
    await store.set_leaf(conversation, ids[1])
    tab = house.tab()
    await house.act(tab, do="open", id=conversation)
    assert "Left." in await shown(house, tab)
    await house.act(tab, do="open", id=conversation, message=other.id)
    chat = await shown(house, tab)
    assert "Left." not in chat
    assert "Right." in chat
    assert "And then?" in chat
    assert (await store.get(conversation)).leaf_id != ids[1]


@pytest.mark.parametrize("house", [("One.", "Two.", Reply(calls=[("storage", PUT)]), "Done.")], indirect=True)
async def test_while_a_reply_is_written_the_conversation_is_opened_and_its_branch_stays(house: House) -> None:  # noqa: F811
    tab = house.tab()
    store = house.engine.stores.of(tab.owner).conversations
    await send(house.desk, tab, {"text": "Why?", "files": []})
    await house.over(tab)
    first = (await store.thread(tab.conversation_id))[-1].id
    await house.act(tab, do="regenerate", id=first)
    await house.over(tab)
    await house.ask(tab)
    other = house.tab("two")
    with pytest.raises(ConflictError):
        await house.act(other, do="open", id=tab.conversation_id, message=first)
    assert other.conversation_id == tab.conversation_id
    assert "Two." in str((await house.seen(other, "p-asks")).chat)


async def test_a_message_of_somebody_else_or_of_nobody_is_not_turned_to(house: House) -> None:  # noqa: F811
    theirs = house.engine.stores.of("b-bob").conversations
    conversation, ids = await talk(theirs, "Theirs", "Theirs alone.")
    mine, _ = await talk(house.engine.stores.of(house.owner).conversations, "Mine", "Mine alone.")
    tab = house.tab()
    for where, message in ((conversation, ids[0]), (mine, ids[0]), (mine, "nothing")):
        with pytest.raises(NotFoundError):
            await house.act(tab, do="open", id=where, message=message)
    assert "Mine alone." in await shown(house, tab)
