"""A reply that goes on and on, begun in a process of its own: what tests run there to kill or to stop it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from core.messages.events import Event, MessageStarted, TextDelta
from core.messages.message import Message
from core.runs.manager import Runs
from core.runs.run import Run
from core.storage.database import Database
from core.storage.stores import Stores
from tests.core.stores import stores_over


class Slow:
    """Says a word each five milliseconds."""

    async def stream(self, messages: Any, **kwargs: Any) -> AsyncGenerator[Event]:
        yield MessageStarted()
        for number in range(100_000):
            yield TextDelta(f"word{number} ")
            await asyncio.sleep(0.005)


async def begun(path: str) -> tuple[Database, Stores, Runs, Run]:
    """Ask alice's question in a database, and say in which conversation."""
    database = await Database.open(Path(path))
    stores = stores_over(database)
    talk = await stores.of("alice").conversations.create()
    question = Message("user", "Count!")
    runs = Runs(stores)
    run = await runs.of("alice").start(talk.id, Slow(), user=question, parent_id=None, history=[question])
    print(talk.id, flush=True)
    return database, stores, runs, run
