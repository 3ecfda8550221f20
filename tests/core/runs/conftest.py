"""A conversation of alice's, and the runs over it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from core.messages.events import Event
from core.messages.message import Message
from core.runs.manager import Runs
from core.runs.run import Run
from core.storage.base import StoredMessage
from core.storage.conversations import ConversationStore
from core.storage.database import Database
from core.storage.runs import RunStore
from core.storage.stores import Stores
from core.testing.scripted_model import ScriptedModel
from tests.core.stores import stores_over


class Speaker:
    """An agent that passes on what its model says."""

    def __init__(self, *turns: Any) -> None:
        self.model = ScriptedModel(*turns)
        self.asked: list[list[Message]] = []

    async def stream(self, messages: list[Message], **kwargs: Any) -> AsyncGenerator[Event, None]:
        from contextlib import aclosing

        from core.llm.request import ChatRequest

        self.asked.append(messages)
        async with aclosing(self.model.stream(ChatRequest(tuple(messages)))) as events:
            async for event in events:
                yield event


@dataclass
class Talk:
    """Runs, their stores, and alice's conversation."""

    runs: Runs
    stores: Stores
    store: RunStore
    talks: ConversationStore
    database: Database
    id: str

    async def ask(self, agent: Any, text: str = "Hello?", **more: Any) -> Run:
        thread = await self.thread()
        question = Message("user", text)
        parent = thread[-1].id if thread else None
        return await self.runs.of("alice").start(
            self.id, agent, user=question, parent_id=parent, history=[question], **more
        )

    async def thread(self) -> Sequence[StoredMessage]:
        return await self.talks.thread(self.id)

    async def last(self) -> StoredMessage:
        return (await self.thread())[-1]


@pytest.fixture
async def talk(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Talk]:
    """A new conversation."""
    database = await Database.open(tmp_path / "parlour.db")
    stores = stores_over(database)
    mine = stores.of("alice")
    runs = Runs(stores)
    yield Talk(runs, stores, mine.runs, mine.conversations, database, (await mine.conversations.create()).id)
    await runs.aclose()
    await database.aclose()


@pytest.fixture
def speaker() -> type[Speaker]:
    """The class of agents that play a script."""
    return Speaker
