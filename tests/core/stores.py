"""The stores over a database, its files beside it."""

from __future__ import annotations

from core.storage.database import Database
from core.storage.stores import Stores


def stores_over(database: Database) -> Stores:
    """Those of all owners."""
    return Stores(database, database.path.parent / "files")
