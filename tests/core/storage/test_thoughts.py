"""The steps of replies: numbered from 1 without a gap by the database itself, and gone with their reply."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

import pytest
from sqlalchemy import Connection

from core.errors import ConflictError, NotFoundError
from core.messages.message import Message
from core.storage.base import AgentThought
from core.storage.conversations import ConversationStore
from core.storage.database import Database
from core.storage.runs import AllRuns
from core.storage.thoughts import ThoughtStore

pytestmark = pytest.mark.anyio

_INSERT = (
    "INSERT INTO message_agent_thoughts SELECT 'x', owner_id, message_id, '', NULL, NULL, NULL, {}, 0"
    " FROM message_agent_thoughts WHERE position = 1"
)
WHEN = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)


def step(position: int, message_id: str = "") -> AgentThought:
    return AgentThought(
        f"{message_id}{position}", message_id, "because", "look", '{"at": "墙"}', "seen", position, WHEN
    )


async def a_reply(database: Database, owner: str = "alice") -> tuple[str, str]:
    """A conversation and a reply in it."""
    talks = partial(ConversationStore, database)
    talk = (await talks(owner).create()).id
    return talk, (await talks(owner).add_message(talk, "assistant", [Message("assistant", "a")], None)).id


async def count(database: Database) -> int:
    return await database.read(lambda c: c.exec_driver_sql("SELECT count(*) FROM message_agent_thoughts").scalar_one())


async def test_steps_come_back_as_they_were_the_first_one_first(database: Database) -> None:
    store = partial(ThoughtStore, database)
    talk, reply = await a_reply(database)
    given = [step(1, reply), replace(step(2, reply), tool_name=None, tool_input=None, observation=None)]
    await store("alice").add(reply, [given[1], given[0]])
    assert await store("alice").list(reply) == given
    assert await store("alice").of_conversation(talk) == {reply: given}
    assert given[0].to_dict() == {
        "id": f"{reply}1",
        "message_id": reply,
        "thought": "because",
        "tool_name": "look",
        "tool_input": {"at": "墙"},
        "observation": "seen",
        "position": 1,
        "created_at": "2026-05-04T03:02:01+00:00",
    }
    assert given[1].to_dict()["tool_input"] is None


async def test_steps_stored_twice_are_there_once(database: Database) -> None:
    store = partial(ThoughtStore, database)
    _, reply = await a_reply(database)
    await store("alice").add(reply, [step(1, reply)])
    await store("alice").add(reply, [replace(step(1, reply), id="again"), step(2, reply)])
    assert [(one.id, one.position) for one in await store("alice").list(reply)] == [(f"{reply}1", 1), (f"{reply}2", 2)]


async def test_who_goes_on_with_a_reply_stores_the_steps_that_it_does_not_have_yet(database: Database) -> None:
    talk, every = (await ConversationStore(database, "alice").create()).id, AllRuns(database)
    record, place = await every.of("alice").create(talk, user=None, parent_id=None, worker="dead")
    await ThoughtStore(database, "alice").add(place.id, [step(1, place.id)])
    ((_, lease),) = await every.running()
    taken = await every.take_over(record, lease, "another")
    steps = [replace(step(1, place.id), id="again"), step(2, place.id)]
    await every.of("alice").finish(record.id, "complete", epoch=taken.epoch, parts=[], thoughts=steps)
    kept = await ThoughtStore(database, "alice").list(place.id)
    assert [(one.id, one.position) for one in kept] == [(f"{place.id}1", 1), (f"{place.id}2", 2)]


async def test_a_gap_is_refused_and_nothing_of_it_is_stored(database: Database) -> None:
    store = partial(ThoughtStore, database)
    _, reply = await a_reply(database)
    for positions in ((1, 3), (2,), (1, 2, 4)):
        with pytest.raises(ConflictError):
            await store("alice").add(reply, [step(at, reply) for at in positions])
    assert await store("alice").list(reply) == []


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE message_agent_thoughts SET position = 9 WHERE position = 3",
        "UPDATE message_agent_thoughts SET position = 2 WHERE position = 3",
        "UPDATE message_agent_thoughts SET message_id = (SELECT id FROM messages WHERE id <> message_id LIMIT 1)",
        "DELETE FROM message_agent_thoughts WHERE position = 2",
        *(_INSERT.format(at) for at in (5, 3, 0)),
    ],
)
async def test_the_database_itself_keeps_the_positions(database: Database, statement: str) -> None:
    store = partial(ThoughtStore, database)
    await a_reply(database)
    _, reply = await a_reply(database)
    await store("alice").add(reply, [step(at, reply) for at in (1, 2, 3)])
    with pytest.raises(ConflictError):
        await database.write(lambda c: c.exec_driver_sql(statement).rowcount)
    assert [one.position for one in await store("alice").list(reply)] == [1, 2, 3]


@pytest.mark.parametrize("statement", ["DELETE FROM messages", "DELETE FROM conversations", "DELETE FROM owners"])
async def test_steps_go_with_their_reply(database: Database, statement: str) -> None:
    _, reply = await a_reply(database)
    await ThoughtStore(database, "alice").add(reply, [step(at, reply) for at in (1, 2, 3)])

    def delete(connection: Connection) -> int:
        return connection.exec_driver_sql(statement).rowcount

    await database.write(delete)
    assert await count(database) == 0


async def test_what_no_file_can_hold_is_stored_readably(database: Database) -> None:
    store = partial(ThoughtStore, database)
    _, reply = await a_reply(database)
    odd = replace(step(1, reply), thought="half \ud83d", tool_name="n" * 400, tool_input="{", observation="\ud83d")
    await store("alice").add(reply, [odd])
    (kept,) = await store("alice").list(reply)
    assert (kept.thought, kept.observation, len(kept.tool_name or "")) == ("half ?", "?", 255)
    assert kept.to_dict()["tool_input"] == "{"


async def test_steps_of_somebody_elses_reply_do_not_exist(database: Database) -> None:
    store = partial(ThoughtStore, database)
    talk, reply = await a_reply(database)
    await store("alice").add(reply, [step(1, reply)])
    for attempt in (
        store("bob").list(reply),
        store("bob").of_conversation(talk),
        store("bob").add(reply, [step(2, reply)]),
    ):
        with pytest.raises(NotFoundError):
            await attempt
    assert len(await store("alice").list(reply)) == 1
