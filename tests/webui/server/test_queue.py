"""A message sent into a reply waits on the server; tabs show it, and what cannot wait says why."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from core.engine import Engine
from core.errors import NotFoundError, ParlourError
from core.models.model_name import ModelName
from core.settings import Settings
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from core.workspace.queue import ConversationQueue
from tests.core.talks import talk_of, world_of
from tests.webui.server.tabs_of_engine import Tabs
from webui.context import WebContext
from webui.handlers.queue import queue_up
from webui.handlers.send import Draft, send, start
from webui.handlers.wiring import Handlers
from webui.uploads import Uploads
from webui.views import View
from webui.words import Words

pytestmark = pytest.mark.anyio


@pytest.fixture
async def tabs(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Tabs]:
    model = ScriptedModel(lambda _: Reply(text=["slowly "] * 300, pace=0.01))
    async with Engine(Settings.load(home=tmp_path / "home"), model=model) as engine:
        yield Tabs(engine, Uploads(tmp_path / "tmp", 1000))


async def begun(tabs: Tabs) -> View:
    """A tab whose conversation is being answered."""
    view = tabs.tab()
    await send(tabs.desk, view, Draft(text="one", files=[]))
    return view


async def waiting(tabs: Tabs, view: View) -> list[str]:
    return [one.message.text for one in await world_of(tabs.engine, tabs.owner).queue(view.conversation_id).list()]


async def test_what_is_sent_into_a_reply_waits_in_every_tab_until_it_ends(tabs: Tabs) -> None:
    view = await begun(tabs)
    other = tabs.tab("two", conversation=view.conversation_id)
    other.show(view.conversation_id)
    await send(tabs.desk, view, Draft(text="two <b>", files=[]))
    for tab in (view, other):
        markup = unescape((await tabs.seen(tab, "two <b>")).panels["queue"])
        assert "sent when this reply ends" in markup
    assert await waiting(tabs, view) == ["two <b>"]


async def test_what_is_sent_now_stops_the_reply(tabs: Tabs) -> None:
    view = await begun(tabs)
    await send(tabs.desk, view, Draft(text="two", files=[]))
    await send(tabs.desk, view, Draft(text="now", files=[]), now=True)
    thread = await talk_of(tabs.engine, tabs.owner, view.conversation_id).messages()
    assert [turn.status for turn in thread] == ["complete", "stopped", "complete", "running"]
    assert await waiting(tabs, view) == ["two"]


async def test_the_request_says_whether_the_reply_is_stopped(tabs: Tabs, tmp_path: Path) -> None:
    engine = tabs.engine
    handlers = Handlers(WebContext(engine, engine.settings, Words.of), Uploads(tmp_path / "up", 1000))

    def request(**headers: str) -> Any:
        return SimpleNamespace(
            session_hash="s", username=tabs.owner, headers={"referer": "http://127.0.0.1/", **headers}
        )

    await handlers.send(Draft(text="one", files=[]), request())
    (talk,) = await engine.stores.of(tabs.owner).conversations.list()
    await handlers.send(Draft(text="two", files=[]), request())
    assert len(await talk_of(engine, tabs.owner, talk.id).messages()) == 2
    await handlers.send(Draft(text="now", files=[]), request(**{"x-parlour-send": "now"}))
    assert len(await talk_of(engine, tabs.owner, talk.id).messages()) == 4


async def test_a_stopped_reply_leaves_a_row_that_waits_for_its_owner(tabs: Tabs) -> None:
    view = await begun(tabs)
    await send(tabs.desk, view, Draft(text="two", files=[]))
    await talk_of(tabs.engine, tabs.owner, view.conversation_id).stop()
    assert "waits for you" in (await tabs.over(view)).panels["queue"]
    (row,) = await world_of(tabs.engine, tabs.owner).queue(view.conversation_id).list()
    await tabs.act(view, do="sendqueued", id=row.message.id)
    assert await waiting(tabs, view) == []
    with pytest.raises(NotFoundError):
        await tabs.act(view, do="sendqueued", id=row.message.id)


async def test_who_leaves_while_a_message_is_put_there_leaves_it_its_files(
    tabs: Tabs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def left(_: ConversationQueue) -> None:
        raise asyncio.CancelledError

    view = await begun(tabs)
    (tmp_path / "note.txt").write_text("The wren sings.")
    monkeypatch.setattr(ConversationQueue, "send_due", left)
    with pytest.raises(asyncio.CancelledError):
        await start(tabs.desk, view, "two", [(tmp_path / "note.txt", "note.txt")])
    (row,) = await world_of(tabs.engine, tabs.owner).queue(view.conversation_id).list()
    assert [one.name for one in row.files] == ["note.txt"]


async def test_a_row_is_removed_once_and_nonsense_removes_nothing(tabs: Tabs) -> None:
    view = await begun(tabs)
    await send(tabs.desk, view, Draft(text="two", files=[]))
    (row,) = await world_of(tabs.engine, tabs.owner).queue(view.conversation_id).list()
    for nonsense in ("", "nobody", 7, None, ["x"]):
        with pytest.raises(NotFoundError):
            await tabs.act(view, do="unqueue", id=nonsense)
    await tabs.act(view, do="unqueue", id=row.message.id)
    with pytest.raises(NotFoundError):
        await tabs.act(view, do="unqueue", id=row.message.id)
    assert await waiting(tabs, view) == []


async def test_a_row_is_put_before_another_and_nonsense_moves_nothing(tabs: Tabs) -> None:
    view = await begun(tabs)
    for text in ("two", "three"):
        await send(tabs.desk, view, Draft(text=text, files=[]))
    two, three = await world_of(tabs.engine, tabs.owner).queue(view.conversation_id).list()
    assert 'data-do="movequeued"' in (await tabs.seen(view, "three")).panels["queue"]
    for nonsense in ("", 7, None, ["x"]):
        with pytest.raises(NotFoundError):
            await tabs.act(view, do="movequeued", id=nonsense, before=two.message.id)
    await tabs.act(view, do="movequeued", id=three.message.id, before=two.message.id)
    assert await waiting(tabs, view) == ["three", "two"]
    await tabs.act(view, do="movequeued", id=three.message.id, before=None)
    assert await waiting(tabs, view) == ["two", "three"]


async def test_messages_sent_at_once_from_two_tabs_all_wait(tabs: Tabs) -> None:
    view = await begun(tabs)
    other = tabs.tab("two", conversation=view.conversation_id)
    other.show(view.conversation_id)
    await asyncio.gather(
        *(send(tabs.desk, tab, Draft(text=f"m{n}", files=[])) for n, tab in enumerate([view, other] * 3))
    )
    assert sorted(await waiting(tabs, view)) == [f"m{n}" for n in range(6)]


async def test_a_message_is_taken_back_over_its_route_by_its_owner_alone(tabs: Tabs) -> None:
    from starlette.applications import Starlette

    from webui.handlers.queue import QueueRoutes

    view = await begun(tabs)
    await send(tabs.desk, view, Draft(text="two", files=[]))
    (row,) = await world_of(tabs.engine, tabs.owner).queue(view.conversation_id).list()
    routes = QueueRoutes(WebContext(tabs.engine, tabs.engine.settings, Words.of)).table()
    app, path = Starlette(routes=routes), f"/conversations/{view.conversation_id}/queue/take"

    async def asked(owner: str | None, given: Any) -> httpx.Response:
        async def as_owner(scope: Any, receive: Any, send: Any) -> None:
            await app({**scope, "owner": owner}, receive, send)

        async with httpx.AsyncClient(transport=httpx.ASGITransport(as_owner), base_url="http://127.0.0.1") as client:
            return await client.post(path, json=given)

    assert (await asked(None, {"id": row.message.id})).status_code == 401
    for owner, given in (("bob", {"id": row.message.id}), (tabs.owner, {"id": 7}), (tabs.owner, ["x"])):
        refused = await asked(owner, given)
        assert (refused.status_code, "does not wait any more" in refused.json()["failed"]) == (404, True)
    assert (await asked(tabs.owner, {"id": row.message.id})).json() == {"text": "two", "files": []}
    assert await waiting(tabs, view) == []


async def test_what_waits_is_judged_by_the_model_of_its_own_conversation() -> None:
    """The owner's usual one may take no pictures where the conversation's does, and the other way round."""
    own, asked = ModelName("openai", "sees"), list[Any]()

    async def model() -> ModelName:
        return own

    async def unsupported_files(_files: Any, name: Any = None) -> list[ParlourError]:
        asked.append(name)
        return [ParlourError()]

    workspace: Any = SimpleNamespace(
        conversation=lambda _: SimpleNamespace(model=model), unsupported_files=unsupported_files
    )
    view: Any = None
    with pytest.raises(ParlourError):
        await queue_up(workspace, view, "c", "Look", [])
    assert asked == [own]
