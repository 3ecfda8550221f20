"""What a tab shows: always one conversation, its true state, and what nobody has seen is said to be new."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from core import limits
from core.engine import Engine
from core.errors import TooManyRequestsError
from core.settings import Settings
from core.storage.base import ConversationSnapshot
from core.storage.documents import DocumentStore
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from core.workspace.conversation import Conversation
from tests.core.talks import talk_of
from webui.context import WebContext
from webui.frames import Frames
from webui.handlers.desk import Desk, toast, untouched
from webui.handlers.wiring import Handlers
from webui.uploads import Uploads
from webui.views import View
from webui.words import Words

pytestmark = pytest.mark.anyio


@pytest.fixture
def model() -> ScriptedModel:
    """A model that takes its time."""
    return ScriptedModel(lambda _: Reply(text=["slowly "] * 40, pace=0.01))


@pytest.fixture
async def engine(tmp_path: Path, model: ScriptedModel, anyio_backend: str) -> AsyncIterator[Engine]:
    async with Engine(Settings.load(home=tmp_path / "home"), model=model) as running:
        yield running


@pytest.fixture
def handlers(engine: Engine, tmp_path: Path) -> Handlers:
    return Handlers(WebContext(engine, engine.settings, Words.of), Uploads(tmp_path / "tmp", 1000))


def tab(name: str, conversation_id: str = "") -> Any:
    headers = {"referer": f"http://127.0.0.1/?c={conversation_id}"}
    return SimpleNamespace(session_hash=name, username="alice", headers=headers)


def test_a_tab_in_a_frame_shows_the_conversation_of_its_place_where_the_referer_has_no_query(
    handlers: Handlers,
) -> None:
    cut = {"referer": "https://room.test/", "x-parlour-place": "?__theme=dark&c=a-talk"}
    framed = view_of(handlers, SimpleNamespace(session_hash="framed", username="alice", headers=cut))
    assert (framed.conversation_id, framed.address) == ("a-talk", "a-talk")
    demo = {"referer": "https://room.test/", "x-parlour-place": "?demo=tools"}
    view = view_of(handlers, SimpleNamespace(session_hash="demo", username="alice", headers=demo))
    assert (view.conversation_id, view.wanted_demo) == ("", "tools")


def view_of(handlers: Handlers, request: Any) -> View:
    return desk_of(handlers).views.of(request)


def desk_of(handlers: Handlers) -> Desk:
    return handlers._desk  # pyright: ignore[reportPrivateUsage]


async def ended(engine: Engine, conversation_id: str) -> None:
    run = engine.runs.live(conversation_id)
    if run is not None:
        await run.wait()


async def test_a_reply_that_ended_after_its_tab_was_closed_is_new(engine: Engine, handlers: Handlers) -> None:
    talk = (await engine.stores.of("alice").conversations.create()).id
    request = tab("closed", talk)
    await talk_of(engine, "alice", talk).ask("Tell me")
    async with aclosing(handlers.follow(request)) as frames:
        await anext(frames)
    await ended(engine, talk)
    views = desk_of(handlers).views
    assert views.unread("alice") == {talk}
    assert views.unread("alice", current=talk) == frozenset()


async def test_a_reply_that_ended_before_the_readers_eyes_is_not_new(engine: Engine, handlers: Handlers) -> None:
    talk = (await engine.stores.of("alice").conversations.create()).id
    await talk_of(engine, "alice", talk).ask("Tell me")
    async for _ in handlers.follow(tab("open", talk)):
        pass
    assert desk_of(handlers).views.unread("alice") == frozenset()


async def test_a_new_chat_whose_choices_are_not_known_here_is_not_sent_before_its_reader_has_looked(
    engine: Engine, handlers: Handlers, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr("gradio.Warning", lambda text, duration: said.append(text))
    elsewhere = tab("loaded at another Parlour", "named-ahead-by-page")
    draft: Any = {"text": "A secret that should be temporary", "files": []}
    await handlers.send(draft, elsewhere)
    assert "what was chosen for this new chat" in said[0]
    assert (await engine.stores.of("alice").conversation_list.beginning()).rows == ()
    view_of(handlers, elsewhere).show("")  # as the follower does that paints it now
    await handlers.send(draft, elsewhere)
    assert len((await engine.stores.of("alice").conversation_list.beginning()).rows) == 1
    assert len(said) == 1
    await handlers.opened(tab("loaded here", "deleted-meanwhile"))
    await handlers.send(draft, tab("loaded here", "deleted-meanwhile"))
    assert "what was chosen" not in said[1]


async def test_a_reply_begins_when_its_page_shows_the_question_and_a_refused_one_holds_up_nobody(
    engine: Engine, handlers: Handlers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "FEW_ARRIVALS", 0)
    monkeypatch.setattr(limits, "ARRIVES_WITHIN", 60.0)
    page = tab("one")
    question: Any = {"text": "Tell me", "files": []}
    await handlers.send(question, page)
    assert engine.runs.arrivals.are_many
    async with asyncio.timeout(30):
        async for _ in handlers.follow(page):
            pass
    assert not engine.runs.arrivals.are_many
    monkeypatch.setattr("gradio.Warning", lambda text, duration: None)
    question["text"] = "x" * 3_000_000
    await handlers.send(question, page)
    assert not engine.runs.arrivals.are_many


@pytest.mark.parametrize("lang", ["en", "zh"])
async def test_what_holds_for_hours_is_told_until_it_is_closed(monkeypatch: pytest.MonkeyPatch, lang: str) -> None:
    told: list[float | None] = []
    monkeypatch.setattr("gradio.Warning", lambda _, duration: told.append(duration))
    toast(Words.of(lang), TooManyRequestsError("Enough.", hint="Wait.", key="quota_messages", limit=5, hours=6))
    toast(Words.of(lang), {"key": "unexpected"})
    assert told[0] is None
    assert told[1]


async def test_a_deleted_conversation_is_not_remembered_as_new(engine: Engine, handlers: Handlers) -> None:
    talk = (await engine.stores.of("alice").conversations.create()).id
    await talk_of(engine, "alice", talk).ask("Tell me")
    await handlers.act(f'{{"do": "delete", "id": "{talk}"}}', tab("any"))
    assert desk_of(handlers).views.unread("alice") == frozenset()


async def test_a_tab_that_turns_while_it_is_read_shows_one_conversation(
    engine: Engine, handlers: Handlers, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = [(await engine.stores.of("alice").conversations.create(title)).id for title in ("Old", "New")]
    request = tab("turning", old)
    view = view_of(handlers, request)
    real = DocumentStore.opened

    async def turning(documents: DocumentStore, conversation_id: str) -> ConversationSnapshot:
        if conversation_id == old:
            await engine.stores.of("alice").conversations.delete(old)
            view.show(new)
        return await real(documents, conversation_id)

    monkeypatch.setattr(DocumentStore, "opened", turning)
    async with aclosing(handlers.follow(request)) as frames:
        _, top, status, *_ = await anext(frames)
    assert f'data-conversation="{new.replace("-", "&#45;").replace("_", "&#95;")}"' in status
    assert "New" in top


async def test_a_reader_who_turned_to_another_conversation_while_a_question_was_sent_stays_there(
    engine: Engine, handlers: Handlers, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = (await engine.stores.of("alice").conversations.create("Other")).id
    request = tab("turning")
    view = view_of(handlers, request)
    real = Conversation.ask

    async def turning(*given: Any) -> Any:
        view.show(other)
        return await real(*given)

    monkeypatch.setattr(Conversation, "ask", turning)
    await handlers.send({"text": "Tell me", "files": []}, request)
    assert view.conversation_id == other
    assert len(await engine.stores.of("alice").conversations.list()) == 2


async def test_stop_that_came_too_late_is_not_said_of_the_next_reply(engine: Engine, handlers: Handlers) -> None:
    talk = (await engine.stores.of("alice").conversations.create()).id
    request = tab("late", talk)
    await handlers.stop(request)
    await talk_of(engine, "alice", talk).ask("Tell me")
    async with aclosing(handlers.follow(request)) as frames:
        _, _, status, *_ = await anext(frames)
    assert 'data-state="running"' in status
    await asyncio.wait_for(handlers.stop(request), 10)


@pytest.mark.filterwarnings("ignore:This no longer exists")  # how Gradio says it where there is no page
@pytest.mark.parametrize(
    "message",
    [None, 5, "", "null", "[]", "[" * 100_000, '{"do": []}', '{"do": "open", "id": {}}', '{"do": "page", "n": 1e999}']
    + [f'{{"do": "{do}", "id": "\\ud800", "message": "\\ud800"}}' for do in ("open", "delete", "cite", "regenerate")],
)
async def test_a_forged_message_of_the_script_is_no_accident(
    handlers: Handlers, message: Any, caplog: pytest.LogCaptureFixture
) -> None:
    await handlers.act(message, tab("forger"))
    assert "failed" not in caplog.text


async def test_what_was_written_while_a_reply_came_stays_in_the_composer_when_it_ends(
    engine: Engine, handlers: Handlers
) -> None:
    asked = handlers.send_and_follow({"text": "Tell me", "files": []}, tab("asks"))
    composer = [frame[0] async for frame in asked]
    assert composer[0] is None, "what was sent leaves the composer"
    assert len(composer) > 1, "Gradio repeats the last one when the call ends"
    assert composer[1:] == [untouched()] * (len(composer) - 1)


async def test_what_stands_at_the_right_is_drawn_once_and_left_alone_while_a_reply_grows(
    engine: Engine, handlers: Handlers
) -> None:
    request = tab("reads")
    await handlers.send({"text": "Tell me", "files": []}, request)
    panel = [frame[0] async for frame in handlers.act_and_follow('{"do": "steering"}', request)]
    assert "p-steer" in str(panel[0])
    assert len(panel) > 1
    assert panel[1:] == [untouched()] * (len(panel) - 1)


async def test_a_question_that_is_refused_stays_in_the_composer_and_the_tab_is_painted_all_the_same(
    engine: Engine, handlers: Handlers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gradio.Warning", lambda text, duration: None)
    asked = handlers.send_and_follow({"text": " ", "files": []}, tab("asks nothing"))
    frames = [frame async for frame in asked]
    assert [frame[0] for frame in frames] == [untouched()] * len(frames)
    assert "data-state" in str(frames[-1])


async def test_what_a_tab_asks_for_is_answered_also_where_nothing_is_painted(
    engine: Engine, handlers: Handlers
) -> None:
    request = tab("rests")
    frames = [frame async for frame in handlers.act_and_follow('{"do": "rest"}', request)]
    assert [set(map(str, frame[1:])) for frame in frames] == [{str(untouched())}] * len(frames)
    assert len(frames) == 2


async def test_a_question_that_is_kept_leaves_the_composer_also_where_the_tab_cannot_be_painted(
    engine: Engine, handlers: Handlers, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> None:
        raise RuntimeError("no frame")

    monkeypatch.setattr(Frames, "_frame", broken)
    asked = handlers.send_and_follow({"text": "Tell me", "files": []}, tab("asks"))
    assert (await anext(asked))[0] is None, "else it would be sent once more"
    with pytest.raises(RuntimeError, match="no frame"):
        await anext(asked)


async def test_of_several_things_asked_at_once_each_is_answered_once_and_a_tab_that_leaves_holds_nothing(
    engine: Engine, handlers: Handlers
) -> None:
    async with engine.workspaces.open("alice") as workspace:
        request = tab("hasty", (await workspace.conversations.create()).id)

    async def answers(frames: AsyncGenerator[tuple[Any, ...], None]) -> list[Any]:
        return [frame[0] async for frame in frames]

    one, two, _ = await asyncio.gather(
        answers(handlers.send_and_follow({"text": "One", "files": []}, request)),
        answers(handlers.send_and_follow({"text": "Two", "files": []}, request)),
        answers(handlers.act_and_follow('{"do": "archived", "on": true}', request)),
    )
    for told in (one, two):
        assert told == [None, *[untouched()] * (len(told) - 1)]
        assert len(told) > 1
    asked = handlers.send_and_follow({"text": "Three", "files": []}, request)
    assert (await anext(asked))[0] is None
    await asked.aclose()
    view = view_of(handlers, request)
    assert (view.followers, view.painting.locked()) == (0, False)
