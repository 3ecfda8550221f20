"""Conversations and the tree of their turns."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from core.errors import NotFoundError
from core.messages.content import ContentItem
from core.messages.message import Message
from core.storage.base import new_id
from core.storage.conversations import ConversationStore, SummaryStore
from core.storage.database import Database
from core.storage.documents import DocumentStore
from core.storage.files import FileStore
from core.storage.runs import RunStore

pytestmark = pytest.mark.anyio


async def test_the_conversation_used_last_comes_first(database: Database) -> None:
    store = ConversationStore(database)
    first, second = await store.create("alice", "first"), await store.create("alice", "second")
    assert [c.title for c in await store.list("alice")] == ["second", "first"]
    await store.add_message("alice", first.id, "user", [Message("user", "hi")], None)
    assert [c.id for c in await store.list("alice")] == [first.id, second.id]
    assert await store.list("bob") == []


async def test_turns_form_a_tree_and_the_leaf_says_which_branch_is_shown(database: Database) -> None:
    store = ConversationStore(database)
    talk = await store.create("alice")
    question = await store.add_message("alice", talk.id, "user", [Message("user", "q")], None)
    one = await store.add_message("alice", talk.id, "assistant", [Message("assistant", "1")], question.id)
    two = await store.add_message("alice", talk.id, "assistant", [Message("assistant", "2")], question.id)
    assert [turn.id for turn in await store.thread("alice", talk.id)] == [question.id, two.id]
    assert [turn.id for turn in await store.siblings("alice", two.id)] == [one.id, two.id]
    await store.set_leaf("alice", talk.id, one.id)
    assert [turn.id for turn in await store.thread("alice", talk.id)] == [question.id, one.id]
    assert [turn.id for turn in await store.thread("alice", talk.id, two.id)] == [question.id, two.id]
    assert [turn.id for turn in await store.siblings("alice", question.id)] == [question.id]


async def test_what_was_said_comes_back_as_it_was(database: Database) -> None:
    store = ConversationStore(database)
    talk = await store.create("alice", "半 \ud83d title")
    parts = [
        Message("assistant", "", reasoning_content="hm"),
        Message("assistant", [ContentItem(text="看"), ContentItem(image="/files/x")]),
        Message("assistant", "half a pair \ud83d and \0", extra={"a": {"b": [1, None]}}),
        Message("assistant", "", function_call={"name": "f", "arguments": "{}"}),
        Message("function", "ok", name="f", extra={"failed": "tool_timeout"}),
    ]
    turn = await store.add_message("alice", talk.id, "assistant", parts, None)
    assert list((await store.message("alice", turn.id)).parts) == parts
    assert (await store.get("alice", talk.id)).title == "半 ? title"


async def test_a_parent_of_another_conversation_is_refused(database: Database) -> None:
    store = ConversationStore(database)
    here, there = await store.create("alice"), await store.create("alice")
    turn = await store.add_message("alice", there.id, "user", [Message("user", "q")], None)
    with pytest.raises(NotFoundError):
        await store.add_message("alice", here.id, "user", [Message("user", "q")], turn.id)
    with pytest.raises(NotFoundError):
        await store.set_leaf("alice", here.id, turn.id)


async def test_deleting_takes_along_what_nothing_else_needs(database: Database, tmp_path: Path) -> None:
    store, files, documents = ConversationStore(database), FileStore(database, tmp_path), DocumentStore(database)
    gone, stays = await store.create("alice"), await store.create("alice")
    own, shared = await files.put("alice", "own.txt", b"own"), await files.put("alice", "shared.txt", b"shared")
    for talk in (gone, stays):
        question = Message("user", [ContentItem(text="?"), ContentItem(file=shared.address)])
        await store.add_message("alice", talk.id, "user", [question], None)
        record = await documents.add("alice", talk.id, shared.id, shared.name)
        await documents.update("alice", record.id, "ready", library_id="shared")
    await documents.update(
        "alice", (await documents.add("alice", gone.id, own.id, "own.txt")).id, "ready", library_id="own"
    )
    runs = RunStore(database)
    run, _ = await runs.create("alice", gone.id, user=[Message("user", "q")], parent_id=None)
    assert await store.delete("alice", gone.id) == ([own], ["own"])
    for lost in (store.get("alice", gone.id), runs.get("alice", run.id), files.record("alice", own.id)):
        with pytest.raises(NotFoundError):
            await lost
    assert await files.record("alice", shared.id) == shared
    assert await store.delete("alice", stays.id) == ([shared], ["shared"])
    left = await database.read(
        lambda c: [
            c.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar()
            for table in ("messages", "runs", "run_events", "documents", "file_uses", "files")
        ]
    )
    assert left == [0] * 6


async def test_a_conversation_that_nobody_waited_for_is_not_left_behind(database: Database) -> None:
    store = ConversationStore(database)
    for turns in range(4):
        creating = asyncio.create_task(store.create("alice"))
        for _ in range(turns):
            await asyncio.sleep(0)
        creating.cancel()
        with pytest.raises(asyncio.CancelledError):
            await creating
    assert await store.list("alice") == []


async def test_a_conversation_that_was_asked_in_meanwhile_is_not_undone(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, wanted = ConversationStore(database), new_id()
    write, stored = database.write, asyncio.Event()

    async def slowly(*args: Any, **more: Any) -> Any:
        await write(*args, **more)
        stored.set()
        await asyncio.Event().wait()

    with monkeypatch.context() as patched:
        patched.setattr(database, "write", slowly)
        creating = asyncio.create_task(store.create("alice", wanted=wanted))
        await stored.wait()
    await store.add_message("alice", wanted, "user", [Message("user", "q")], None)
    creating.cancel()
    with pytest.raises(asyncio.CancelledError):
        await creating
    assert [talk.id for talk in await store.list("alice")] == [wanted]
    assert len(await store.thread("alice", wanted)) == 1


async def test_a_summary_is_of_turns_of_its_own_conversation(database: Database) -> None:
    talks, summaries = ConversationStore(database), SummaryStore(database)
    here, there = await talks.create("alice"), await talks.create("alice")
    turn = await talks.add_message("alice", there.id, "user", [Message("user", "q")], None)
    for owner, talk in (("alice", here.id), ("bob", there.id)):
        with pytest.raises(NotFoundError):
            await summaries.keep(owner, talk, turn.id, "what was said elsewhere")
    assert await summaries.list("alice", here.id) == await summaries.list("alice", there.id) == {}
    await summaries.keep("alice", there.id, turn.id, "a question")
    assert await summaries.list("alice", there.id) == {turn.id: "a question"}
