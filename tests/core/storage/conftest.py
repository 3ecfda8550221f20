"""An open database with two owners who know nothing of each other."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from core.storage.conversations import ConversationStore
from core.storage.database import Database


@pytest.fixture
async def database(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Database]:
    """A new database."""
    opened = await Database.open(tmp_path / "parlour.db")
    store = ConversationStore(opened)
    await store.ensure_owner("alice")
    await store.ensure_owner("bob")
    yield opened
    await opened.aclose()
