"""Conversations deleted, one or several: gone after a moment, kept when that is taken back, and nobody else's."""

from __future__ import annotations

import asyncio
from json import dumps, loads
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from core.engine import Engine
from core.errors import StorageError
from core.settings import Settings
from core.storage.conversations import ConversationStore
from core.testing.scripted_model import ScriptedModel
from core.workspace.conversation import Conversation
from webui.context import WebContext
from webui.deletions import Deletions
from webui.handlers.act import act
from webui.handlers.desk import Desk
from webui.handlers.listing import ListRoutes
from webui.handlers.wiring import Handlers
from webui.histories import Histories
from webui.uploads import Uploads
from webui.views import View, Views
from webui.words import Words

pytestmark = pytest.mark.anyio


async def test_they_are_away_at_once_gone_after_a_moment_and_come_back_where_that_is_wanted(tmp_path: Path) -> None:
    settings = Settings.load(home=tmp_path / "home", code="off")
    async with Engine(settings, model=ScriptedModel("Yes.")) as engine:
        stores = engine.stores.of("alice").conversations
        kept, gone, archived = [(await stores.create(name)).id for name in ("kept", "gone", "archived")]
        theirs = (await engine.stores.of("bob").conversations.create("theirs")).id
        await stores.archive([archived])
        changed = asyncio.Event()
        engine.on_change(lambda _owner, _talk: changed.set())
        uploads = cast("Any", SimpleNamespace())
        desk = Desk(engine, uploads, Views(Words.of), Deletions(0.3))
        mine, other = View("alice", Words("en")), View("bob", Words("en"))
        await desk_acts(desk, mine, "delete_all", [kept, gone, archived, theirs, "nothing"])
        assert (await stores.get(gone)).archived_at is not None
        assert (await engine.stores.of("bob").conversations.get(theirs)).archived_at is None
        await desk_acts(desk, other, "keep", [gone])
        await desk_acts(desk, mine, "keep", [kept, archived])
        assert (await stores.get(kept)).archived_at is None
        assert (await stores.get(archived)).archived_at is not None, "it was in the archive before"
        async with asyncio.timeout(30):
            while len(await stores.list()) > 2:
                await changed.wait()
                changed.clear()
        assert {one.id for one in await stores.list()} == {kept, archived}
        for odd in (None, "x", {"a": 1}, [3, None]):
            await act(desk, mine, dumps({"do": "delete_all", "ids": odd}))
        assert len(await stores.list()) == 2


async def test_one_comes_back_like_several_and_is_nobodys_to_open_meanwhile(tmp_path: Path) -> None:
    settings = Settings.load(home=tmp_path / "home", code="off")
    async with Engine(settings, model=ScriptedModel("Yes.")) as engine:
        stores = engine.stores.of("alice").conversations
        one, other = [(await stores.create(name)).id for name in ("one", "other")]
        handlers = Handlers(WebContext(engine, settings, Words.of), Uploads(tmp_path / "tmp", 1000))
        await handlers.act(dumps({"do": "delete", "id": one}), tab("first", one))
        await handlers.opened(tab("second", one))
        assert handlers.views.of(tab("second", one)).conversation_id == "", "its address leads to a new one"
        assert (await stores.get(one)).archived_at is not None, "nothing is lost should Parlour end now"
        await handlers.act(dumps({"do": "keep", "ids": [one]}), tab("first"))
        assert (await stores.get(one)).archived_at is None
        await handlers.opened(tab("third", one))
        assert handlers.views.of(tab("third", one)).conversation_id == one
        with pytest.warns(UserWarning, match="no longer exists"):
            await handlers.act(dumps({"do": "delete", "id": other}), tab("theirs", owner="bob"))
        assert (await stores.get(other)).archived_at is None


async def test_what_goes_in_a_moment_is_in_no_list_and_what_is_taken_back_is(tmp_path: Path) -> None:
    settings = Settings.load(home=tmp_path / "home", code="off")
    async with Engine(settings, model=ScriptedModel("Yes.")) as engine:
        stores = engine.stores.of("alice").conversations
        one, other = [(await stores.create(name)).id for name in ("one", "other")]
        context = WebContext(engine, settings, Words.of)
        handlers, lists = (
            Handlers(context, Uploads(tmp_path / "tmp", 1000)),
            Histories(hidden=context.deletions.planned_of),
        )
        routes = ListRoutes(context, handlers.views)

        async def listed(archived: str) -> list[str]:
            request = SimpleNamespace(
                scope={"owner": "alice"}, headers={}, query_params={"archived": archived} if archived else {}
            )
            answer = await routes.ids(cast("Any", request))
            return [found for found, _ in loads(bytes(answer.body))["ids"]]

        async def has_archive() -> bool:
            lists.changed("alice")
            async with engine.workspaces.open("alice") as workspace:
                return (await lists.of(workspace)).has_archive

        await handlers.act(dumps({"do": "delete", "id": one}), tab("first", one))
        assert (await listed(""), await listed("on"), await has_archive()) == ([other], [], False)
        await handlers.act(dumps({"do": "archive", "ids": [other], "on": True}), tab("first"))
        assert (await listed(""), await listed("on"), await has_archive()) == ([], [other], True)
        await handlers.act(dumps({"do": "keep", "ids": [one]}), tab("first"))
        assert (await listed(""), await listed("on")) == ([one], [other])


async def test_who_deletes_again_what_was_taken_back_has_as_long_to_take_it_back_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings.load(home=tmp_path / "home", code="off")
    async with Engine(settings, model=ScriptedModel("Yes.")) as engine:
        stores = engine.stores.of("alice").conversations
        twice, once = [(await stores.create(name)).id for name in ("twice", "once")]
        changed, over, never = asyncio.Event(), asyncio.Event(), asyncio.Event()
        moments = iter([over, never])
        timed = SimpleNamespace(sleep=lambda _: next(moments).wait(), create_task=asyncio.create_task)
        monkeypatch.setattr("webui.deletions.asyncio", timed)
        engine.on_change(lambda _owner, _talk: changed.set())
        desk = Desk(engine, cast("Any", SimpleNamespace()), Views(Words.of))
        mine = View("alice", Words("en"))
        await desk_acts(desk, mine, "delete_all", [twice, once])
        await desk_acts(desk, mine, "keep", [twice])
        await asyncio.sleep(0)  # the first moment has begun
        await desk_acts(desk, mine, "delete_all", [twice])
        over.set()
        async with asyncio.timeout(30):
            while len(await stores.list()) > 1:
                await changed.wait()
                changed.clear()
        assert [one.id for one in await stores.list()] == [twice]


def tab(name: str, conversation_id: str = "", owner: str = "alice") -> Any:
    headers = {"referer": f"http://127.0.0.1/?c={conversation_id}"}
    return SimpleNamespace(session_hash=name, username=owner, headers=headers)


async def desk_acts(desk: Desk, view: View, what: str, ids: list[str]) -> None:
    await act(desk, view, dumps({"do": what, "ids": ids}))


async def test_what_is_planned_when_parlour_ends_is_deleted_then(tmp_path: Path) -> None:
    settings = Settings.load(home=tmp_path / "home", code="off")
    async with Engine(settings, model=ScriptedModel("Yes.")) as engine:
        stores = engine.stores.of("alice").conversations
        gone, kept = (await stores.create("gone")).id, (await stores.create("kept")).id
        desk = Desk(engine, cast("Any", SimpleNamespace()), Views(Words.of))
        view = View("alice", Words("en"))
        await act(desk, view, dumps({"do": "delete", "id": gone}))
        await act(desk, view, dumps({"do": "delete", "id": kept}))
        await act(desk, view, dumps({"do": "keep", "ids": [kept]}))
        await desk.deletions.finish(engine)
        assert [one.id for one in await stores.list()] == [kept]


async def test_what_could_not_be_put_away_stays_in_sight_and_is_not_deleted_when_parlour_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(*_: object, **__: object) -> None:
        raise StorageError("The disk is full.")

    settings = Settings.load(home=tmp_path / "home", code="off")
    async with Engine(settings, model=ScriptedModel("Yes.")) as engine:
        stores = engine.stores.of("alice").conversations
        before, kept = (await stores.create("before")).id, (await stores.create("kept")).id
        deletions, views, view = Deletions(), Views(Words.of), View("alice", Words("en"))
        await deletions.plan(engine, views, view, [before])
        with monkeypatch.context() as broken, pytest.raises(StorageError):
            broken.setattr(ConversationStore, "archive", fails)
            await deletions.plan(engine, views, view, [before, kept])
        assert deletions.planned_of("alice") == {before}
        await deletions.finish(engine)
        assert [one.id for one in await stores.list()] == [kept]


async def test_what_is_being_deleted_as_parlour_ends_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings.load(home=tmp_path / "home", code="off")
    async with Engine(settings, model=ScriptedModel("Yes.")) as engine:
        stores = engine.stores.of("alice").conversations
        gone = (await stores.create("gone")).id
        begun, go, remove = asyncio.Event(), asyncio.Event(), Conversation.delete

        async def slowly(self: Conversation) -> None:
            begun.set()
            await go.wait()
            await remove(self)

        monkeypatch.setattr(Conversation, "delete", slowly)
        deletions = Deletions(0.0)
        await deletions.plan(engine, Views(Words.of), View("alice", Words("en")), [gone])
        await begun.wait()
        ending = asyncio.create_task(deletions.finish(engine))
        await asyncio.sleep(0)
        go.set()
        await ending
        assert await stores.list() == []
