"""What is chosen for all conversations of an owner that were answered is stored at once, and for no others."""

from __future__ import annotations

from functools import partial

import pytest

from core.messages.message import Message
from core.storage.answered import AnsweredConversations
from core.storage.conversations import ConversationStore
from core.storage.database import Database

pytestmark = pytest.mark.anyio


async def test_only_answered_conversations_of_the_owner_change(database: Database) -> None:
    talks = partial(ConversationStore, database)
    mine, brought, empty, theirs = [(await talks(owner).create()).id for owner in ("alice", "alice", "alice", "bob")]
    for owner, talk, run in (("alice", mine, "r1"), ("alice", brought, None), ("bob", theirs, "r2")):
        await talks(owner).add_message(talk, "assistant", [Message("assistant", "a")], None, run_id=run)
    answered = AnsweredConversations(database, "alice")
    assert await answered.configure(lambda kept: {**kept, "model": "one"}) == 1
    assert await answered.configure(lambda kept: {**kept, "model": "one"}) == 0
    settings = [
        await talks(owner).settings(talk)
        for owner, talk in (("alice", mine), ("alice", brought), ("alice", empty), ("bob", theirs))
    ]
    assert [one.get("model") for one in settings] == ["one", None, None, None]
