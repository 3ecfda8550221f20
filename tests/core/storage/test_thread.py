"""A conversation that is shown: its turns are those that are stored, and only what is shown is decoded."""

from __future__ import annotations

from typing import Any

import pytest

from core.messages.content import ContentItem
from core.messages.message import Message
from core.storage import base
from core.storage.base import StoredMessage
from core.storage.conversations import ConversationStore
from core.storage.database import Database
from core.storage.documents import DocumentStore

pytestmark = pytest.mark.anyio


async def talk(database: Database, turns: int) -> str:
    store = ConversationStore(database, "alice")
    conversation = (await store.create()).id
    above: str | None = None
    for number in range(turns):
        said = [ContentItem(text=f"turn {number} é 好 \u2028"), ContentItem(image="file.png")]
        role = "assistant" if number % 2 else "user"
        above = (await store.add_message(conversation, role, [Message(role, said)], above)).id
    return conversation


async def test_its_turns_are_those_that_are_stored(database: Database) -> None:
    conversation = await talk(database, 7)
    stored = await ConversationStore(database, "alice").thread(conversation)
    shown = (await DocumentStore(database, "alice").opened(conversation)).thread
    assert list(shown) == stored
    assert (len(shown), shown[-1], shown[2:5], shown[::-2]) == (7, stored[-1], stored[2:5], stored[::-2])
    assert shown[-1] is shown[6], "a turn is the same object each time"
    with pytest.raises(IndexError):
        shown[7]


async def test_only_the_turns_that_are_asked_for_are_decoded(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded: list[str] = []
    decode = base.stored_message

    def counted(row: Any, parts: Any) -> StoredMessage:
        decoded.append(row.id)
        return decode(row, parts)

    monkeypatch.setattr(base, "stored_message", counted)
    shown = (await DocumentStore(database, "alice").opened(await talk(database, 30))).thread
    assert decoded == []
    last = shown[-4:]
    assert shown[-1] is last[-1]
    assert decoded == [one.id for one in last]


async def test_a_conversation_without_turns_has_none(database: Database) -> None:
    shown = (await DocumentStore(database, "alice").opened(await talk(database, 0))).thread
    assert (list(shown), len(shown)) == ([], 0)
