"""The ledger of what was taken into named libraries from folders and stores, and of what could not be."""

from __future__ import annotations

import time
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, select

from core.storage.dialects import upsert
from core.storage.documents import check_collection
from core.storage.tables import documents, ingested

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.storage.base import DocumentStatus
    from core.storage.database import Database

_AT_ONCE = 500  # values that a query may name


@dataclass(frozen=True, slots=True)
class Ingested:
    """What became of a file.

    Args:
        place: Where it is: a path, or an address.
        mark: Tells this state of the file from others, such as its size and time.
        status: Of the document that it is; `None` where there is none.
        error: What went wrong: `key`, `message`, `hint` and `details`.
    """

    place: str
    mark: str
    status: DocumentStatus | None = None
    error: dict[str, Any] | None = None


class IngestedStore:
    """The ledger of one owner. What is somebody else's does not exist."""

    def __init__(self, database: Database, owner: str) -> None:
        self._database = database
        self._owner = owner

    async def known(self, collection_id: str, places: Sequence[str]) -> dict[str, Ingested]:
        """Those of the places that the ledger of a library has, by place. Raises StorageError."""

        def load(connection: Connection) -> dict[str, Ingested]:
            found: dict[str, Ingested] = {}
            for start in range(0, len(places), _AT_ONCE):
                keys = [_key(place) for place in places[start : start + _AT_ONCE]]
                query = (
                    select(ingested.c.place, ingested.c.mark, documents.c.status, ingested.c.error)
                    .outerjoin(documents, documents.c.id == ingested.c.document_id)
                    .where(ingested.c.collection_id == collection_id, ingested.c.owner_id == self._owner)
                    .where(ingested.c.key.in_(keys))
                )
                found |= {row[0]: Ingested(*row) for row in connection.execute(query)}
            return found

        return await self._database.read(load)

    async def note(
        self,
        collection_id: str,
        place: str,
        mark: str,
        *,
        document_id: str | None = None,
        error: dict[str, Any] | None = None,
    ) -> None:
        """Note what became of a file, in place of what was noted before.

        Args:
            document_id: The document of the library that it is.
            error: What went wrong, where it is none.

        Raises:
            NotFoundError: The library is not the owner's, or was deleted.
        """

        def keep(connection: Connection) -> None:
            check_collection(connection, self._owner, collection_id)
            values = {"place": place, "mark": mark, "document_id": document_id, "error": error, "at": time.time()}
            row = {"collection_id": collection_id, "key": _key(place), "owner_id": self._owner, **values}
            connection.execute(
                upsert(ingested).values(row).on_conflict_do_update(index_elements=["collection_id", "key"], set_=values)
            )

        await self._database.write(keep)


def _key(place: str) -> str:
    return sha256(place.encode(errors="replace")).hexdigest()
