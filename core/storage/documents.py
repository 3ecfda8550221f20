"""Documents of conversations: which files were handed over, and how far reading them is."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Row, delete, insert, select, update

from core.errors import NotFoundError
from core.storage.base import DocumentRecord, Opened, new_id
from core.storage.conversations import conversation_of, thread_of, use_files
from core.storage.tables import documents, files

if TYPE_CHECKING:
    from core.storage.base import DocumentStatus
    from core.storage.database import Database


class DocumentStore:
    """Documents of owners. What is somebody else's does not exist."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, owner: str, conversation_id: str, file_id: str, name: str) -> DocumentRecord:
        """Note that a file became a document of a conversation, still to be read; the same file is noted once.

        Raises:
            NotFoundError: The conversation or file is not the owner's.
        """

        def note(connection: Connection) -> DocumentRecord:
            conversation_of(connection, owner, conversation_id)
            if (
                connection.execute(select(files.c.id).where(files.c.id == file_id, files.c.owner_id == owner)).first()
                is None
            ):
                raise NotFoundError("There is no such file.", kind="file")
            same = (documents.c.conversation_id == conversation_id) & (documents.c.file_id == file_id)
            known = connection.execute(select(documents).where(same)).first()
            if known is not None:
                return _record(known)
            fresh = DocumentRecord(
                new_id(), owner, conversation_id, file_id, name, None, "reading", None, None, time.time()
            )
            values = {column: getattr(fresh, column) for column in DocumentRecord.__slots__}
            connection.execute(insert(documents).values(values))
            use_files(connection, owner, conversation_id, [file_id])
            return fresh

        return await self._database.write(note)

    async def update(
        self,
        owner: str,
        document_id: str,
        status: DocumentStatus,
        *,
        library_id: str | None = None,
        pages: int | None = None,
        error: dict[str, Any] | None = None,
    ) -> DocumentRecord:
        """Note how reading went. Raises NotFoundError."""

        def note(connection: Connection) -> DocumentRecord:
            _document_of(connection, owner, document_id)
            values = {"status": status, "library_id": library_id, "pages": pages, "error": error}
            connection.execute(update(documents).where(documents.c.id == document_id).values(values))
            return _document_of(connection, owner, document_id)

        return await self._database.write(note)

    async def get(self, owner: str, document_id: str) -> DocumentRecord:
        """One document. Raises NotFoundError."""
        return await self._database.read(lambda c: _document_of(c, owner, document_id))

    async def list(self, owner: str, conversation_id: str) -> list[DocumentRecord]:
        """The conversation's documents, the oldest first. Raises NotFoundError."""

        def load(connection: Connection) -> list[DocumentRecord]:
            conversation_of(connection, owner, conversation_id)
            return _documents_of(connection, conversation_id)

        return await self._database.read(load)

    async def opened(self, owner: str, conversation_id: str) -> Opened:
        """A conversation with its turns and documents, all of the same moment. Raises NotFoundError."""

        def load(connection: Connection) -> Opened:
            conversation, thread = thread_of(connection, owner, conversation_id)
            return Opened(conversation, thread, _documents_of(connection, conversation_id))

        return await self._database.read(load)

    async def owns_library_document(self, owner: str, library_id: str) -> bool:
        """Whether any conversation of the owner has the document of this library id."""
        query = (
            select(documents.c.id).where(documents.c.owner_id == owner, documents.c.library_id == library_id).limit(1)
        )
        return await self._database.read(lambda c: c.execute(query).first()) is not None

    async def unread(self) -> list[DocumentRecord]:
        """Every document still to be read, of all owners: for the start of a process."""
        query = select(documents).where(documents.c.status == "reading").order_by(documents.c.created_at)
        rows = await self._database.read(lambda c: c.execute(query).all())
        return [_record(row) for row in rows]

    async def delete(self, owner: str, document_id: str) -> None:
        """Take it out of its conversation; its file stays where messages name it. Raises NotFoundError."""

        def remove(connection: Connection) -> None:
            _document_of(connection, owner, document_id)
            connection.execute(delete(documents).where(documents.c.id == document_id))

        await self._database.write(remove)


def _documents_of(connection: Connection, conversation_id: str) -> list[DocumentRecord]:
    query = select(documents).where(documents.c.conversation_id == conversation_id)
    rows = connection.execute(query.order_by(documents.c.created_at, documents.c.id)).all()
    return [_record(row) for row in rows]


def _document_of(connection: Connection, owner: str, document_id: str) -> DocumentRecord:
    query = select(documents).where(documents.c.id == document_id, documents.c.owner_id == owner)
    row = connection.execute(query).first()
    if row is None:
        raise NotFoundError("There is no such document.", kind="document")
    return _record(row)


def _record(row: Row[Any]) -> DocumentRecord:
    return DocumentRecord(
        id=row.id,
        owner_id=row.owner_id,
        conversation_id=row.conversation_id,
        file_id=row.file_id,
        name=row.name,
        library_id=row.library_id,
        status=row.status,
        error=row.error,
        pages=row.pages,
        created_at=row.created_at,
    )
