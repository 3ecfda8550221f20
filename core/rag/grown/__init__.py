"""The grown shelf: the passages of all libraries in PostgreSQL, compared by pgvector."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.errors import extra_for

if TYPE_CHECKING:
    from pathlib import Path

    from core.rag.grown.makers import Maker
    from core.rag.grown.shelf import PgShelves


def shelves_at(place: Path | str, reader: str = "", maker: Maker | None = None) -> PgShelves | None:
    """The shelves of a database; `None` where that is a file, and each library has a file of its own.

    Args:
        place: As `Database.open` takes it.
        reader: What this process calls the connections by which it holds what it reads.
        maker: As of `PgShelves`.

    Raises:
        MissingExtraError: What speaks to PostgreSQL is not installed.
    """
    if not isinstance(place, str):
        return None
    with extra_for("A library in PostgreSQL"):
        from core.rag.grown.shelf import PgShelves
    return PgShelves(place, reader, maker)
