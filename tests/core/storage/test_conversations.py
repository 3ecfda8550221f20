"""Conversations and the tree of their turns."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from core.errors import NotFoundError
from core.messages.content import ContentItem
from core.messages.message import Message
from core.storage.base import new_id
from core.storage.conversations import ConversationStore
from core.storage.database import Database
from core.storage.documents import DocumentStore
from core.storage.files import AllFiles
from core.storage.runs import AllRuns
from core.storage.summaries import SummaryStore

pytestmark = pytest.mark.anyio


async def test_the_conversation_used_last_comes_first(database: Database) -> None:
    store = partial(ConversationStore, database)
    first, second = await store("alice").create("first"), await store("alice").create("second")
    assert [c.title for c in await store("alice").list()] == ["second", "first"]
    await store("alice").add_message(first.id, "user", [Message("user", "hi")], None)
    assert [c.id for c in await store("alice").list()] == [first.id, second.id]
    assert await store("bob").list() == []


async def test_turns_form_a_tree_and_the_leaf_says_which_branch_is_shown(database: Database) -> None:
    store = partial(ConversationStore, database)
    talk = await store("alice").create()
    question = await store("alice").add_message(talk.id, "user", [Message("user", "q")], None)
    one = await store("alice").add_message(talk.id, "assistant", [Message("assistant", "1")], question.id)
    two = await store("alice").add_message(talk.id, "assistant", [Message("assistant", "2")], question.id)
    assert [turn.id for turn in await store("alice").thread(talk.id)] == [question.id, two.id]
    assert [turn.id for turn in await store("alice").siblings(two.id)] == [one.id, two.id]
    await store("alice").set_leaf(talk.id, one.id)
    assert [turn.id for turn in await store("alice").thread(talk.id)] == [question.id, one.id]
    assert [turn.id for turn in await store("alice").thread(talk.id, two.id)] == [question.id, two.id]
    assert [turn.id for turn in await store("alice").siblings(question.id)] == [question.id]


async def test_what_was_said_comes_back_as_it_was(database: Database) -> None:
    store = partial(ConversationStore, database)
    talk = await store("alice").create("半 \ud83d title")
    parts = [
        Message("assistant", "", reasoning_content="hm"),
        Message("assistant", [ContentItem(text="看"), ContentItem(image="/files/x")]),
        Message("assistant", "half a pair \ud83d and \0", extra={"a": {"b": [1, None]}}),
        Message("assistant", "", function_call={"name": "f", "arguments": "{}"}),
        Message("function", "ok", name="f", extra={"failed": "tool_timeout"}),
    ]
    turn = await store("alice").add_message(talk.id, "assistant", parts, None)
    assert list((await store("alice").message(turn.id)).parts) == parts
    assert (await store("alice").get(talk.id)).title == "半 ? title"


async def test_a_parent_of_another_conversation_is_refused(database: Database) -> None:
    store = partial(ConversationStore, database)
    here, there = await store("alice").create(), await store("alice").create()
    turn = await store("alice").add_message(there.id, "user", [Message("user", "q")], None)
    with pytest.raises(NotFoundError):
        await store("alice").add_message(here.id, "user", [Message("user", "q")], turn.id)
    with pytest.raises(NotFoundError):
        await store("alice").set_leaf(here.id, turn.id)


async def test_deleting_takes_along_what_nothing_else_needs(database: Database, tmp_path: Path) -> None:
    store, files, documents = (
        partial(ConversationStore, database),
        AllFiles(database, tmp_path).of,
        partial(DocumentStore, database),
    )
    gone, stays = await store("alice").create(), await store("alice").create()
    own, shared = await files("alice").put("own.txt", b"own"), await files("alice").put("shared.txt", b"shared")
    for talk in (gone, stays):
        question = Message("user", [ContentItem(text="?"), ContentItem(file=shared.address)])
        await store("alice").add_message(talk.id, "user", [question], None)
        record = await documents("alice").add(talk.id, shared.id, shared.name)
        await documents("alice").update(record.id, "ready", library_id="shared")
    await documents("alice").update(
        (await documents("alice").add(gone.id, own.id, "own.txt")).id, "ready", library_id="own"
    )
    runs = AllRuns(database).of
    run, _ = await runs("alice").create(gone.id, user=[Message("user", "q")], parent_id=None)
    assert await store("alice").delete(gone.id) == ([own], ["own"])
    for lost in (store("alice").get(gone.id), runs("alice").get(run.id), files("alice").record(own.id)):
        with pytest.raises(NotFoundError):
            await lost
    assert await files("alice").record(shared.id) == shared
    assert await store("alice").delete(stays.id) == ([shared], ["shared"])
    left = await database.read(
        lambda c: [
            c.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar()
            for table in ("messages", "runs", "run_events", "documents", "file_uses", "files")
        ]
    )
    assert left == [0] * 6


async def test_a_conversation_that_nobody_waited_for_is_not_left_behind(database: Database) -> None:
    store = partial(ConversationStore, database)
    for turns in range(4):
        creating = asyncio.create_task(store("alice").create())
        for _ in range(turns):
            await asyncio.sleep(0)
        creating.cancel()
        with pytest.raises(asyncio.CancelledError):
            await creating
    assert await store("alice").list() == []


async def test_a_conversation_that_was_asked_in_meanwhile_is_not_undone(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, wanted = partial(ConversationStore, database), new_id()
    write, stored = database.write, asyncio.Event()

    async def slowly(*args: Any, **more: Any) -> Any:
        await write(*args, **more)
        stored.set()
        await asyncio.Event().wait()

    with monkeypatch.context() as patched:
        patched.setattr(database, "write", slowly)
        creating = asyncio.create_task(store("alice").create(wanted=wanted))
        await stored.wait()
    await store("alice").add_message(wanted, "user", [Message("user", "q")], None)
    creating.cancel()
    with pytest.raises(asyncio.CancelledError):
        await creating
    assert [talk.id for talk in await store("alice").list()] == [wanted]
    assert len(await store("alice").thread(wanted)) == 1


async def test_a_summary_is_of_turns_of_its_own_conversation(database: Database) -> None:
    talks, summaries = partial(ConversationStore, database), partial(SummaryStore, database)
    here, there = await talks("alice").create(), await talks("alice").create()
    turn = await talks("alice").add_message(there.id, "user", [Message("user", "q")], None)
    for owner, talk in (("alice", here.id), ("bob", there.id)):
        with pytest.raises(NotFoundError):
            await summaries(owner).keep(talk, turn.id, "what was said elsewhere")
    assert await summaries("alice").list(here.id) == await summaries("alice").list(there.id) == {}
    await summaries("alice").keep(there.id, turn.id, "a question")
    assert await summaries("alice").list(there.id) == {turn.id: "a question"}


async def test_a_conversation_is_read_with_what_was_chosen_for_it_by_its_owner_alone(database: Database) -> None:
    mine = ConversationStore(database, "alice")
    talk = await mine.create("a talk", settings={"model": "another"})
    assert await mine.with_settings(talk.id) == (await mine.get(talk.id), {"model": "another"})
    snapshot = await DocumentStore(database, "alice").opened(talk.id)
    assert (snapshot.conversation, snapshot.settings) == (talk, {"model": "another"})
    with pytest.raises(NotFoundError):
        await ConversationStore(database, "bob").with_settings(talk.id)
    with pytest.raises(NotFoundError):
        await DocumentStore(database, "bob").opened(talk.id)
