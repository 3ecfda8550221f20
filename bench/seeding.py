"""Puts a long conversation into a data folder, as if it had been held."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

from core.messages.message import Message
from core.storage.base import LOCAL_OWNER
from core.storage.conversations import ConversationStore
from core.storage.database import Database

REPLY = """Here is what I found, in **three** points:

1. The first point has some `code` in it.
2. The second one is longer, since it wants to say a little more than the first one did.
3. The third is short.

| name | value |
|---|---|
| one | 1 |
| two | 2 |
"""


def seed(database: Path, messages: int) -> str:
    """Store a conversation of `messages` messages; gives its id."""
    return asyncio.run(_seed(database, messages))


async def _seed(path: Path, messages: int) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    database = await Database.open(path)
    try:
        store = partial(ConversationStore, database)
        await store(LOCAL_OWNER).ensure_owner()
        conversation = await store(LOCAL_OWNER).create(f"{messages} messages")
        parent: str | None = None
        for number in range(messages // 2):
            question = [Message("user", f"Question {number + 1}?")]
            asked = await store(LOCAL_OWNER).add_message(conversation.id, "user", question, parent)
            answer = [Message("assistant", REPLY)]
            parent = (await store(LOCAL_OWNER).add_message(conversation.id, "assistant", answer, asked.id)).id
        return conversation.id
    finally:
        await database.aclose()
