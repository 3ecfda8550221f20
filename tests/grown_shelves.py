"""Libraries in PostgreSQL, for tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from core.rag.grown.shelf import PgShelves


@pytest.fixture(scope="session")
def shelves(migrated_postgres: str) -> Iterator[PgShelves]:
    """The shelves of a database with Parlour's tables; each test takes an owner of its own."""
    made = PgShelves(migrated_postgres)
    yield made
    made.close()
