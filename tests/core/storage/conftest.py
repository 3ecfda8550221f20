"""An open database with two owners who know nothing of each other."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from core.storage.conversations import ConversationStore
from core.storage.database import Database


@pytest.fixture
async def database(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Database]:
    """A new database."""
    opened = await Database.open(tmp_path / "parlour.db")
    store = partial(ConversationStore, opened)
    await store("alice").ensure_owner()
    await store("bob").ensure_owner()
    yield opened
    await opened.aclose()
