"""Documents of conversations and named libraries: which files were handed over, and how far reading them is."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, Connection, Row, func, insert, select, update

from core.errors import NotFoundError
from core.storage.base import DocumentRecord, Opened, new_id
from core.storage.conversations import conversation_of, thread_of, use_files
from core.storage.libraries import collection_of, libraries_used
from core.storage.needs import library_ids, unneeded
from core.storage.tables import conversation_libraries, documents, files
from core.storage.versions import versions_of

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from core.storage.base import DocumentStatus
    from core.storage.database import Database

_AT_ONCE = 500  # values that a query may name


class DocumentStore:
    """Documents of owners. What is somebody else's does not exist."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(
        self, owner: str, conversation_id: str | None, file_id: str, name: str, *, collection_id: str | None = None
    ) -> DocumentRecord:
        """Note that a file became a document, still to be read; the same is noted once.

        Args:
            owner: Whose all of it is.
            conversation_id: The conversation that it belongs to; `None` if it belongs to a named library.
            file_id: The file. In a conversation the same file is the same document, in a named library the same bytes.
            name: What to call it.
            collection_id: The named library.

        Raises:
            NotFoundError: The conversation, library or file is not the owner's.
        """

        def note(connection: Connection) -> DocumentRecord:
            if collection_id is None:
                conversation_of(connection, owner, conversation_id or "")
            else:
                collection_of(connection, owner, collection_id)
            mine = select(files.c.sha256).where(files.c.id == file_id, files.c.owner_id == owner)
            digest = connection.execute(mine).scalar()
            if digest is None:
                raise NotFoundError("There is no such file.", kind="file")
            known = _known(connection, conversation_id, file_id, collection_id, digest)
            if known is not None:
                return _record(known)
            fresh = DocumentRecord(
                new_id(),
                owner,
                conversation_id,
                file_id,
                name,
                None,
                "reading",
                None,
                None,
                time.time(),
                collection_id=collection_id,
            )
            values = {column: getattr(fresh, column) for column in DocumentRecord.__slots__}
            connection.execute(insert(documents).values(values))
            if conversation_id is not None:
                use_files(connection, owner, conversation_id, [file_id])
            return fresh

        return await self._database.write(note)

    async def update(  # noqa: PLR0913 - the columns of a row
        self,
        owner: str,
        document_id: str,
        status: DocumentStatus,
        *,
        library_id: str | None = None,
        pages: int | None = None,
        error: dict[str, Any] | None = None,
        facts: dict[str, Any] | None = None,
        only_if: Collection[DocumentStatus] = (),
    ) -> DocumentRecord:
        """Note how reading went; what is left out is cleared. Raises NotFoundError.

        The document stays as it is if it has none of the states `only_if` at that very moment; any will do by default.

        Returns:
            The document as it is then.
        """

        def note(connection: Connection) -> DocumentRecord:
            _document_of(connection, owner, document_id)
            values = {"status": status, "library_id": library_id, "pages": pages, "error": error, "facts": facts}
            change = update(documents).where(documents.c.id == document_id)
            if only_if:
                change = change.where(documents.c.status.in_(only_if))
            connection.execute(change.values(values))
            return _document_of(connection, owner, document_id)

        return await self._database.write(note)

    async def renewed(self, record: DocumentRecord) -> list[str | None]:
        """A text was read, further or anew: tell so of the owner's other documents that have the same text.

        Returns:
            The conversations that these belong to; `None` is a named library.
        """

        def note(connection: Connection) -> list[str | None]:
            same = (documents.c.owner_id == record.owner_id) & (documents.c.library_id == record.library_id)
            is_over = documents.c.status.in_(("ready", "cancelled"))
            others = documents_where(connection, same & (documents.c.id != record.id) & is_over)
            for other in others:
                noted = record.error
                if noted is not None:
                    noted = {**noted, "details": {**noted.get("details", {}), "name": other.name}}
                known = {"known": True} if (other.facts or {}).get("known") else {}
                values = {
                    "status": record.status,
                    "pages": record.pages,
                    "facts": {**(record.facts or {}), **known},
                    "error": noted,
                }
                connection.execute(update(documents).where(documents.c.id == other.id).values(values))
            return [other.conversation_id for other in others]

        return await self._database.write(note)

    async def rename(self, owner: str, document_id: str, name: str) -> DocumentRecord:
        """Call a document something else. Raises NotFoundError."""

        def note(connection: Connection) -> DocumentRecord:
            _document_of(connection, owner, document_id)
            connection.execute(update(documents).where(documents.c.id == document_id).values(name=name))
            return _document_of(connection, owner, document_id)

        return await self._database.write(note)

    async def get(self, owner: str, document_id: str) -> DocumentRecord:
        """One document. Raises NotFoundError."""
        return await self._database.read(lambda c: _document_of(c, owner, document_id))

    async def list(self, owner: str, conversation_id: str) -> list[DocumentRecord]:
        """The conversation's documents, the oldest first. Raises NotFoundError."""

        def load(connection: Connection) -> list[DocumentRecord]:
            conversation_of(connection, owner, conversation_id)
            return documents_where(connection, documents.c.conversation_id == conversation_id)

        return await self._database.read(load)

    async def list_shelved(self, owner: str, collection_id: str) -> list[DocumentRecord]:
        """The documents of a named library, the oldest first. Raises NotFoundError."""

        def load(connection: Connection) -> list[DocumentRecord]:
            collection_of(connection, owner, collection_id)
            return documents_where(connection, documents.c.collection_id == collection_id)

        return await self._database.read(load)

    async def within_reach(self, owner: str, conversation_id: str) -> list[str]:
        """What a conversation is answered from: its documents and those of the libraries that it uses.

        Returns:
            Their ids in the owner's index, each once, the conversation's own first.

        Raises:
            NotFoundError: The conversation is not the owner's.
        """

        def load(connection: Connection) -> list[str]:
            conversation_of(connection, owner, conversation_id)
            own = library_ids(connection, documents.c.conversation_id == conversation_id)
            return list(dict.fromkeys([*own, *library_ids(connection, _is_shelved_for(conversation_id))]))

        return await self._database.read(load)

    async def attached(self, owner: str, conversation_id: str) -> list[DocumentRecord]:
        """The documents of a conversation, and after them those of the libraries that it uses, however reading went.

        Raises:
            NotFoundError: The conversation is not the owner's.
        """

        def load(connection: Connection) -> list[DocumentRecord]:
            conversation_of(connection, owner, conversation_id)
            own = documents_where(connection, documents.c.conversation_id == conversation_id)
            return [*own, *documents_where(connection, _is_shelved_for(conversation_id))]

        return await self._database.read(load)

    async def known_in_part(self, owner: str, conversation_id: str, most: int) -> list[DocumentRecord]:
        """Documents of a conversation or its libraries that were stopped, or of its libraries and still being read.

        The oldest `most` of them.

        Raises:
            NotFoundError: The conversation is not the owner's.
        """

        def load(connection: Connection) -> list[DocumentRecord]:
            conversation_of(connection, owner, conversation_id)
            is_shelved, is_own = _is_shelved_for(conversation_id), documents.c.conversation_id == conversation_id
            is_stopped = (documents.c.status == "cancelled") & documents.c.library_id.is_not(None)
            is_read = (documents.c.status == "reading") & is_shelved
            return documents_where(connection, is_read | (is_stopped & (is_shelved | is_own)), most)

        return await self._database.read(load)

    async def opened(self, owner: str, conversation_id: str) -> Opened:
        """A conversation with its turns, documents and libraries, all of the same moment. Raises NotFoundError."""

        def load(connection: Connection) -> Opened:
            conversation, thread = thread_of(connection, owner, conversation_id)
            own = documents_where(connection, documents.c.conversation_id == conversation_id)
            versions = versions_of(connection, conversation_id, thread)
            return Opened(conversation, thread, own, libraries_used(connection, conversation_id), versions)

        return await self._database.read(load)

    async def owns_library_document(self, owner: str, library_id: str) -> bool:
        """Whether any conversation or named library of the owner has the document of this library id."""
        query = (
            select(documents.c.id).where(documents.c.owner_id == owner, documents.c.library_id == library_id).limit(1)
        )
        return await self._database.read(lambda c: c.execute(query).first()) is not None

    async def read(self, owner: str) -> dict[str, str]:
        """The owner's documents that were read, all or some of it: their ids in the owner's index, by their own."""
        query = select(documents.c.id, documents.c.library_id).where(
            documents.c.owner_id == owner, documents.c.status != "reading", documents.c.library_id.is_not(None)
        )
        rows = await self._database.read(lambda c: c.execute(query).all())
        return {row.id: row.library_id for row in rows}

    async def found(self, owner: str) -> list[DocumentRecord]:
        """The owner's documents that were read, all or some of it: the index has to know them. The oldest first."""
        is_read = (documents.c.status != "reading") & documents.c.library_id.is_not(None)
        return await self._database.read(
            lambda connection: documents_where(connection, (documents.c.owner_id == owner) & is_read)
        )

    async def owners(self, most: int) -> list[str]:
        """Who has documents that were read, all or some of it: those with the latest first, `most` at most."""
        query = select(documents.c.owner_id).where(documents.c.library_id.is_not(None)).group_by(documents.c.owner_id)
        query = query.order_by(func.max(documents.c.created_at).desc()).limit(most)
        return list(await self._database.read(lambda c: c.execute(query).scalars().all()))

    async def unneeded(self, owner: str, library_ids: Sequence[str]) -> list[str]:
        """Those of these ids in the owner's index that no document of the owner has, nor will have once it is read."""

        def load(connection: Connection) -> list[str]:
            parts = (library_ids[start : start + _AT_ONCE] for start in range(0, len(library_ids), _AT_ONCE))
            return [found for part in parts for found in unneeded(connection, owner, part)]

        return await self._database.read(load)

    async def unread(self) -> list[DocumentRecord]:
        """Every document still to be read, of all owners: for the start of a process."""
        query = select(documents).where(documents.c.status == "reading").order_by(documents.c.created_at)
        rows = await self._database.read(lambda c: c.execute(query).all())
        return [_record(row) for row in rows]


def _is_shelved_for(conversation_id: str) -> ColumnElement[bool]:
    """Whether a document stands in a library that the conversation uses."""
    query = select(conversation_libraries.c.library_id)
    return documents.c.collection_id.in_(query.where(conversation_libraries.c.conversation_id == conversation_id))


def documents_where(
    connection: Connection, condition: ColumnElement[bool], most: int | None = None
) -> list[DocumentRecord]:
    """Documents, the oldest first, inside a transaction."""
    query = select(documents).where(condition).order_by(documents.c.created_at, documents.c.id).limit(most)
    return [_record(row) for row in connection.execute(query).all()]


def _known(
    connection: Connection, conversation_id: str | None, file_id: str, collection_id: str | None, digest: str
) -> Row[Any] | None:
    """The document that this file is there already."""
    if collection_id is None:
        same = (documents.c.conversation_id == conversation_id) & (documents.c.file_id == file_id)
        return connection.execute(select(documents).where(same)).first()
    same = (documents.c.collection_id == collection_id) & (files.c.sha256 == digest)
    return connection.execute(select(documents).join(files, files.c.id == documents.c.file_id).where(same)).first()


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
        facts=row.facts,
        collection_id=row.collection_id,
    )
