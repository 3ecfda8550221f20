"""The stores over a database, its files beside it."""

from __future__ import annotations

from pathlib import Path

from core.storage.database import Database
from core.storage.sealing import Sealer
from core.storage.stores import Stores


def stores_over(database: Database, secret: str = "secret") -> Stores:
    """Those of all owners, whose keys are sealed with `secret`."""
    return Stores(database, Path(database.place).parent / "files", Sealer(secret))
