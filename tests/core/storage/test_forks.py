"""A fork begins with everything up to a turn, shares what it rests on, and goes its own way from there."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from core.errors import ConflictError, NotFoundError
from core.messages.message import ASSISTANT, USER, Message
from core.storage.base import AgentThought, EventRow
from core.storage.database import Database
from core.storage.sealing import Sealer
from core.storage.stores import OwnerStores, Stores

pytestmark = pytest.mark.anyio


@pytest.fixture
def mine(database: Database, tmp_path: Path) -> OwnerStores:
    return Stores(database, tmp_path / "files", Sealer("secret")).of("alice")


async def answered(mine: OwnerStores) -> tuple[str, str]:
    """A conversation of a question with a file and its reply; with the id of the reply."""
    talk = await mine.conversations.create("Herons")
    file = await mine.files.put("birds.md", b"Herons nest in trees.")
    question = await mine.conversations.add_message(
        talk.id, "user", [Message(USER, [{"text": "Where?"}, {"file": f"/files/{file.id}"}])], None
    )
    document = await mine.documents.add(talk.id, file.id, "birds.md")
    await mine.documents.update(document.id, "ready", library_id=file.sha256, pages=1)
    run, reply = await mine.runs.create(talk.id, user=None, parent_id=question.id, worker="1@1.0")
    rows = [
        EventRow(1, 0.1, "message_started", {"name": ""}),
        EventRow(2, 0.2, "text_delta", {"text": "In trees [1]."}),
    ]
    step = AgentThought("t1", reply.id, "Let me look.", "ask_documents", "{}", "found", 1)
    said = [Message(ASSISTANT, "In trees [1].")]
    await mine.runs.finish(run.id, "complete", parts=said, rows=rows, thoughts=[step], epoch=1)
    return talk.id, reply.id


async def test_a_fork_has_the_turns_events_steps_files_and_documents_of_its_beginning(mine: OwnerStores) -> None:
    talk, reply = await answered(mine)
    await mine.conversations.add_message(talk, "user", [Message(USER, "And then?")], reply)
    fork = await mine.whole.fork(talk, reply)
    assert (fork.title, fork.id != talk) == ("Herons (2)", True)
    question, copied = await mine.conversations.thread(fork.id)
    assert [turn.parts for turn in (question, copied)] == [
        turn.parts for turn in (await mine.conversations.thread(talk, reply))
    ]
    assert copied.run_id is not None
    assert [row.payload for row in await mine.runs.events(copied.run_id)][-1] == {"text": "In trees [1]."}
    outline = await mine.whole.outline(fork.id)
    assert [file.name for file in outline.files] == ["birds.md"]
    assert [one.status for one in outline.documents] == ["ready"]
    (turn,) = await mine.whole.turns(fork.id, [copied.id])
    assert [step.tool_name for step in turn.thoughts] == ["ask_documents"]


async def test_forks_are_told_apart_by_their_titles(mine: OwnerStores) -> None:
    talk, reply = await answered(mine)
    first = await mine.whole.fork(talk, reply)
    second = await mine.whole.fork(talk, reply)
    *_, copied = await mine.conversations.thread(first.id)
    of_a_fork = await mine.whole.fork(first.id, copied.id)
    assert [one.title for one in (first, second, of_a_fork)] == ["Herons (2)", "Herons (3)", "Herons (4)"]
    await mine.conversations.rename(second.id, "100 % _ herons (1958)")
    *_, copied = await mine.conversations.thread(second.id)
    assert (await mine.whole.fork(second.id, copied.id)).title == "100 % _ herons (1958) (2)"
    assert (await mine.whole.fork(talk, reply)).title == "Herons (3)"  # which is free again


async def test_what_is_done_in_one_of_both_changes_nothing_in_the_other(mine: OwnerStores) -> None:
    talk, reply = await answered(mine)
    fork = await mine.whole.fork(talk, reply)
    *_, copied = await mine.conversations.thread(fork.id)
    await mine.conversations.add_message(fork.id, "user", [Message(USER, "Elsewhere?")], copied.id)
    assert len(await mine.conversations.thread(talk)) == 2
    freed, unread = await mine.conversations.delete(talk)
    assert (freed, unread) == ([], [])  # the fork needs both
    assert len(await mine.conversations.thread(fork.id)) == 3
    freed, unread = await mine.conversations.delete(fork.id)
    assert (len(freed), len(unread)) == (1, 1)


async def test_a_document_that_is_still_being_read_can_be_read_again_in_the_fork(mine: OwnerStores) -> None:
    talk, reply = await answered(mine)
    file = await mine.files.put("more.md", b"More.")
    await mine.documents.add(talk, file.id, "more.md")
    fork = await mine.whole.fork(talk, reply)
    assert sorted((one.name, one.status) for one in await mine.documents.list(fork.id)) == [
        ("birds.md", "ready"),
        ("more.md", "cancelled"),
    ]


async def test_a_reply_that_is_being_written_cannot_be_forked(mine: OwnerStores) -> None:
    talk, reply = await answered(mine)
    _, live = await mine.runs.create(talk, user=[Message(USER, "And?")], parent_id=reply, worker="1@1.0")
    with pytest.raises(ConflictError):
        await mine.whole.fork(talk, live.id)


async def test_a_turn_of_somebody_else_or_of_another_conversation_cannot_be_forked(
    mine: OwnerStores, database: Database, tmp_path: Path
) -> None:
    talk, reply = await answered(mine)
    other = await mine.conversations.create("Other")
    hers = Stores(database, tmp_path / "files", Sealer("secret")).of("bob")
    for forbidden in (hers.whole.fork(talk, reply), mine.whole.fork(other.id, reply), mine.whole.fork(talk, "no")):
        with pytest.raises(NotFoundError):
            await forbidden
    assert len(await mine.conversations.list()) == 2


async def test_a_fork_that_fails_leaves_nothing_behind(mine: OwnerStores, monkeypatch: pytest.MonkeyPatch) -> None:
    talk, reply = await answered(mine)

    def broken(_: object) -> None:
        raise sqlite3.OperationalError("disk full")

    monkeypatch.setattr("core.storage.whole_conversations._Copying.surroundings", broken)
    with pytest.raises(Exception, match="disk full"):
        await mine.whole.fork(talk, reply)
    assert [one.id for one in await mine.conversations.list()] == [talk]
