"""What is still needed: a file by a conversation or a named library, a text in the index by any document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, CompoundSelect, Connection, delete, select, union

from core.storage.base import FileRecord
from core.storage.tables import documents, file_uses, files

if TYPE_CHECKING:
    from collections.abc import Sequence


def needed_files() -> CompoundSelect[Any]:
    """The ids of all files that a conversation or a named library needs."""
    shelved = select(documents.c.file_id).where(documents.c.collection_id.is_not(None))
    return union(select(file_uses.c.file_id), shelved)


def freed_files(connection: Connection, candidates: Sequence[str]) -> list[FileRecord]:
    """Delete the rows of those files that nothing needs any more, inside a transaction, and return them."""
    columns = [files.c[name] for name in FileRecord.__slots__]
    query = select(*columns).where(files.c.id.in_(candidates), files.c.id.not_in(needed_files()))
    freed = [FileRecord(*row) for row in connection.execute(query).all()]
    connection.execute(delete(files).where(files.c.id.in_([file.id for file in freed])))
    return freed


def library_ids(connection: Connection, where: ColumnElement[bool]) -> list[str]:
    """The ids in the owner's index of the documents that were read, each once, inside a transaction."""
    query = select(documents.c.library_id).where(where, documents.c.library_id.is_not(None)).distinct()
    return [str(found) for (found,) in connection.execute(query).all()]


def unneeded(connection: Connection, owner: str, candidates: Sequence[str]) -> list[str]:
    """Those of these ids in the owner's index that no document of the owner has, nor will have once it is read."""
    mine = documents.c.owner_id == owner
    kept = set(library_ids(connection, mine & documents.c.library_id.in_(candidates)))
    coming = select(files.c.sha256).join(documents, documents.c.file_id == files.c.id)
    coming = coming.where(mine, documents.c.status == "reading", files.c.sha256.in_(candidates))
    kept.update(str(found) for (found,) in connection.execute(coming).all())
    return [found for found in candidates if found not in kept]
