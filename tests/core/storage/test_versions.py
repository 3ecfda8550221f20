"""Versions of a turn: found in one query, and turned to with the newest branch under them."""

from __future__ import annotations

from functools import partial

import pytest

from core.errors import ConflictError, NotFoundError
from core.messages.message import Message
from core.storage.conversations import ConversationStore
from core.storage.database import Database
from core.storage.documents import DocumentStore
from core.storage.runs import AllRuns

pytestmark = pytest.mark.anyio


class Talk:
    """A conversation whose turns are put under each other by name."""

    def __init__(self, database: Database) -> None:
        self.store, self.documents, self.runs = (
            partial(ConversationStore, database),
            partial(DocumentStore, database),
            AllRuns(database).of,
        )
        self.ids: dict[str, str | None] = {"": None}

    async def begin(self, *turns: str) -> Talk:
        """Add turns such as `q>r2`: the turn r2 under q; those that begin with q are questions."""
        self.id = (await self.store("alice").create()).id
        for turn in turns:
            above, name = turn.split(">")
            role = "user" if name.startswith("q") else "assistant"
            parts = [Message(role, name)]
            made = await self.store("alice").add_message(self.id, role, parts, self.ids[above])
            self.ids[name] = made.id
        return self

    async def shown(self) -> str:
        thread = (await self.documents("alice").opened(self.id)).thread
        return " ".join(turn.parts[0].get_text_content() for turn in thread)

    async def turn_to(self, name: str, owner: str = "alice") -> None:
        await self.store(owner).turn_to(self.id, str(self.ids[name]))


async def test_turning_to_a_version_shows_the_newest_branch_under_it(database: Database) -> None:
    talk = await Talk(database).begin(
        ">q", "q>r1", "r1>qa", "qa>ra1", "r1>qb", "qb>rb", "qa>ra2", "q>r2", "r2>qc", "qc>rc"
    )
    assert await talk.shown() == "q r2 qc rc"
    await talk.turn_to("r1")
    assert await talk.shown() == "q r1 qa ra2"
    await talk.turn_to("qb")
    assert await talk.shown() == "q r1 qb rb"
    await talk.turn_to("r2")
    assert await talk.shown() == "q r2 qc rc"


async def test_turns_with_versions_are_told_with_all_of_them_and_no_others(database: Database) -> None:
    talk = await Talk(database).begin(">q", "q>r1", "q>r2", "r2>qa", "qa>ra", ">q2", "q2>rq2")
    await talk.turn_to("r1")
    found = (await talk.documents("alice").opened(talk.id)).versions
    ids = talk.ids
    assert found == {ids["q"]: (ids["q"], ids["q2"]), ids["r1"]: (ids["r1"], ids["r2"])}


async def test_a_version_is_nobody_elses_and_of_no_other_conversation(database: Database) -> None:
    talk = await Talk(database).begin(">q", "q>r1", "q>r2")
    elsewhere = await Talk(database).begin(">q")
    with pytest.raises(NotFoundError):
        await talk.turn_to("r1", owner="bob")
    with pytest.raises(NotFoundError):
        await talk.store("alice").turn_to(elsewhere.id, str(talk.ids["r1"]))
    assert await talk.shown() == "q r2"


async def test_while_a_reply_is_written_its_branch_stays_in_sight(database: Database) -> None:
    talk = await Talk(database).begin(">q", "q>r1", "q>r2")
    record, _ = await talk.runs("alice").create(talk.id, user=None, parent_id=talk.ids["q"])
    with pytest.raises(ConflictError) as caught:
        await talk.turn_to("r1")
    assert caught.value.words_key == "busy"
    await talk.runs("alice").finish(record.id, "complete", epoch=1, parts=[Message("assistant", "r3")])
    await talk.turn_to("r1")
    assert await talk.shown() == "q r1"
