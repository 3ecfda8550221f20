"""The page names a new conversation in its address before it sends: whoever reloads at once lands in it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from core.engine import Engine
from core.settings import Settings
from core.storage.base import ConversationRecord, new_id
from core.storage.conversations import ConversationStore
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from webui.context import WebContext
from webui.frames import Frame
from webui.handlers.desk import untouched
from webui.handlers.wiring import Handlers
from webui.panels.catalog import PANELS
from webui.uploads import Uploads
from webui.words import Words

pytestmark = pytest.mark.anyio
QUESTION: Any = {"text": "Tell me", "files": []}


@pytest.fixture
async def engine(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Engine]:
    model = ScriptedModel(lambda _: Reply(text="Here."))
    async with Engine(Settings.load(home=tmp_path / "home"), model=model) as running:
        yield running


@pytest.fixture
def handlers(engine: Engine, tmp_path: Path) -> Handlers:
    return Handlers(WebContext(engine, engine.settings, Words.of), Uploads(tmp_path / "tmp", 1000))


def tab(name: str, conversation_id: str = "", owner: str = "alice") -> Any:
    headers = {"referer": f"http://127.0.0.1/?c={conversation_id}"}
    return SimpleNamespace(session_hash=name, username=owner, headers=headers)


def framed(values: tuple[Any, ...]) -> Frame:
    chat, *panels = values
    return Frame(chat, dict(zip([panel.name for panel in PANELS], panels, strict=True)))


async def first_frame(handlers: Handlers, request: Any) -> Frame:
    async with aclosing(handlers.follow(request)) as frames:
        return framed(await anext(frames))


async def test_a_new_conversation_gets_the_name_that_its_address_has(engine: Engine, handlers: Handlers) -> None:
    await handlers.opened(tab("one"))
    named = new_id()
    await handlers.send(QUESTION, tab("one", named))
    assert [one.id for one in await engine.stores.of("alice").conversations.list()] == [named]


@pytest.mark.parametrize("name", ["", "short", "x" * 23, "../../../../etc/passwd", "a b c d e f g h i j k ", "é" * 22])
async def test_a_name_that_is_none_is_not_taken(engine: Engine, handlers: Handlers, name: str) -> None:
    await handlers.opened(tab("one"))
    await handlers.send(QUESTION, tab("one", name))
    [made] = await engine.stores.of("alice").conversations.list()
    assert len(made.id) == len(new_id())
    assert made.id != name


async def test_a_name_that_is_taken_stays_with_its_owner(engine: Engine, handlers: Handlers) -> None:
    theirs = (await engine.stores.of("bob").conversations.create()).id
    mine = (await engine.stores.of("alice").conversations.create()).id
    for name in (theirs, mine):
        await handlers.opened(tab(f"at {name}"))
        await handlers.send(QUESTION, tab(f"at {name}", name))
    assert [one.id for one in await engine.stores.of("bob").conversations.list()] == [theirs]
    assert len({one.id for one in await engine.stores.of("alice").conversations.list()}) == 3
    assert await engine.stores.of("alice").conversations.thread(mine) == []


async def test_a_page_that_is_loaded_again_while_its_question_is_being_stored_waits_for_it(
    engine: Engine, handlers: Handlers, monkeypatch: pytest.MonkeyPatch
) -> None:
    create, may_go_on, asked = ConversationStore.create, asyncio.Event(), asyncio.Event()

    async def slow(*args: Any, **kwargs: Any) -> ConversationRecord:
        asked.set()
        await may_go_on.wait()
        return await create(*args, **kwargs)

    monkeypatch.setattr(ConversationStore, "create", slow)
    named = new_id()
    await handlers.opened(tab("before"))
    sending = asyncio.create_task(handlers.send(QUESTION, tab("before", named)))
    await asked.wait()
    async with aclosing(handlers.follow(tab("after", named))) as frames:
        frame = framed(await anext(frames))
        assert f'data-conversation="{named}"' in unescape(frame.panels["status"])
        may_go_on.set()
        await sending
        while "Here." not in str(frame.chat):
            frame = framed(await anext(frames))


@pytest.mark.parametrize("named", [new_id(), ""], ids=["named", "without a name"])
async def test_what_a_new_room_sends_twice_at_once_makes_one_conversation(
    engine: Engine, handlers: Handlers, named: str
) -> None:
    await handlers.opened(tab("one"))
    with pytest.warns(UserWarning, match="still being written"):
        first, second = await asyncio.gather(*(handlers.send(QUESTION, tab("one", named)) for _ in range(2)))
    assert (first, second) == (None, untouched())  # the one is kept, and the other's draft stays in the composer
    [made] = await engine.stores.of("alice").conversations.list()
    assert [turn.role for turn in await engine.stores.of("alice").conversations.thread(made.id)] == [
        "user",
        "assistant",
    ]


async def test_an_address_that_nobody_is_sending_to_shows_a_new_conversation(handlers: Handlers) -> None:
    frame = await first_frame(handlers, tab("one", new_id()))
    assert 'data-conversation=""' in frame.panels["status"]
