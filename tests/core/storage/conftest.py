"""An open database with two owners who know nothing of each other, of each kind."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from core.storage.conversations import ConversationStore
from core.storage.database import Database
from tests.grown_postgres import FORMS, opened_form


@pytest.fixture(params=FORMS)
async def database(request: pytest.FixtureRequest, tmp_path: Path, anyio_backend: str) -> AsyncIterator[Database]:
    """A new database."""
    opened = await opened_form(request, tmp_path)
    store = partial(ConversationStore, opened)
    await store("alice").ensure_owner()
    await store("bob").ensure_owner()
    yield opened
    await opened.aclose()
