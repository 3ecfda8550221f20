"""Named libraries: documents under a name, and which conversations use them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, Connection, Select, delete, func, insert, select, update
from sqlalchemy.dialects.sqlite import insert as insert_or

from core.errors import ConflictError, NotFoundError
from core.storage.base import FileRecord, NamedLibrary, new_id
from core.storage.conversations import conversation_of, know_owner
from core.storage.needs import freed_files, library_ids, unneeded
from core.storage.tables import conversation_libraries, documents, libraries

if TYPE_CHECKING:
    from core.storage.database import Database


class LibraryStore:
    """Named libraries of owners. What is somebody else's does not exist."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def list(self, owner: str) -> list[NamedLibrary]:
        """The owner's libraries, by name."""
        return await self._database.read(lambda c: _listed(c, libraries.c.owner_id == owner))

    async def get(self, owner: str, library_id: str) -> NamedLibrary:
        """One library. Raises NotFoundError."""
        return await self._database.read(lambda c: collection_of(c, owner, library_id))

    async def create(self, owner: str, name: str) -> NamedLibrary:
        """A new, empty library; the owner need not be known yet.

        Raises:
            ConflictError: key `library_name_taken`: another one of the owner has the name.
        """
        fresh = NamedLibrary(new_id(), owner, name, time.time())

        def begin(connection: Connection) -> None:
            know_owner(connection, owner)
            _refuse_taken(connection, owner, name)
            values = {"id": fresh.id, "owner_id": owner, "name": name, "created_at": fresh.created_at}
            connection.execute(insert(libraries).values(values))

        await self._database.write(begin)
        return fresh

    async def rename(self, owner: str, library_id: str, name: str) -> None:
        """Give it another name. Raises NotFoundError, and ConflictError as `create`."""

        def change(connection: Connection) -> None:
            collection_of(connection, owner, library_id)
            _refuse_taken(connection, owner, name, but=library_id)
            connection.execute(update(libraries).where(libraries.c.id == library_id).values(name=name))

        await self._database.write(change)

    async def delete(self, owner: str, library_id: str) -> tuple[list[FileRecord], list[str]]:
        """Delete it with its documents; conversations use it no more.

        Returns:
            The files that nothing needs any more (their rows are gone, their bytes are the caller's to delete),
            and the ids of texts in the owner's index that no document has any more.

        Raises:
            NotFoundError: There is none such of this owner.
        """

        def remove(connection: Connection) -> tuple[list[FileRecord], list[str]]:
            collection_of(connection, owner, library_id)
            where = documents.c.collection_id == library_id
            used, read = _files_of(connection, where), library_ids(connection, where)
            connection.execute(delete(libraries).where(libraries.c.id == library_id))
            return freed_files(connection, used), unneeded(connection, owner, read)

        return await self._database.write(remove)

    async def remove_document(self, owner: str, document_id: str) -> tuple[list[FileRecord], list[str]]:
        """Take a document out of its library; returns as `delete`. Raises NotFoundError."""

        def remove(connection: Connection) -> tuple[list[FileRecord], list[str]]:
            where = (documents.c.id == document_id) & (documents.c.owner_id == owner)
            where &= documents.c.collection_id.is_not(None)
            used, read = _files_of(connection, where), library_ids(connection, where)
            if not used:
                raise NotFoundError("There is no such document.", kind="document")
            connection.execute(delete(documents).where(where))
            return freed_files(connection, used), unneeded(connection, owner, read)

        return await self._database.write(remove)

    # ---- which conversations use them

    async def used_by(self, owner: str, conversation_id: str) -> list[NamedLibrary]:
        """The libraries that a conversation uses, by name. Raises NotFoundError."""

        def load(connection: Connection) -> list[NamedLibrary]:
            conversation_of(connection, owner, conversation_id)
            return libraries_used(connection, conversation_id)

        return await self._database.read(load)

    async def users(self, owner: str, library_id: str) -> list[str]:
        """The conversations that use a library. Raises NotFoundError."""

        def load(connection: Connection) -> list[str]:
            collection_of(connection, owner, library_id)
            query = select(conversation_libraries.c.conversation_id)
            rows = connection.execute(query.where(conversation_libraries.c.library_id == library_id)).all()
            return [str(conversation_id) for (conversation_id,) in rows]

        return await self._database.read(load)

    async def use(self, owner: str, conversation_id: str, library_id: str, *, on: bool) -> None:
        """Let a conversation use a library, or no more. Raises NotFoundError."""

        def change(connection: Connection) -> None:
            conversation_of(connection, owner, conversation_id)
            collection_of(connection, owner, library_id)
            row = {"conversation_id": conversation_id, "library_id": library_id}
            if on:
                adding = insert_or(conversation_libraries).values({**row, "owner_id": owner})
                connection.execute(adding.on_conflict_do_nothing())
            else:
                same = [conversation_libraries.c[name] == value for name, value in row.items()]
                connection.execute(delete(conversation_libraries).where(*same))

        await self._database.write(change)


def collection_of(connection: Connection, owner: str, library_id: str) -> NamedLibrary:
    """The owner's library, inside a transaction. Raises NotFoundError."""
    found = _listed(connection, (libraries.c.id == library_id) & (libraries.c.owner_id == owner))
    if not found:
        raise NotFoundError("There is no such library.", kind="library")
    return found[0]


def libraries_used(connection: Connection, conversation_id: str) -> list[NamedLibrary]:
    """The libraries that a conversation uses, by name, inside a transaction."""
    query = select(conversation_libraries.c.library_id)
    used = query.where(conversation_libraries.c.conversation_id == conversation_id)
    return _listed(connection, libraries.c.id.in_(used))


def _listed(connection: Connection, condition: ColumnElement[bool]) -> list[NamedLibrary]:
    reading = func.count(documents.c.id).filter(documents.c.status == "reading")
    columns = [libraries.c.id, libraries.c.owner_id, libraries.c.name, libraries.c.created_at]
    query: Select[Any] = select(*columns, func.count(documents.c.id), reading)
    query = query.outerjoin(documents, documents.c.collection_id == libraries.c.id).where(condition)
    rows = connection.execute(query.group_by(libraries.c.id)).all()
    return sorted((NamedLibrary(*row) for row in rows), key=lambda one: (one.name.casefold(), one.created_at))


def _files_of(connection: Connection, condition: ColumnElement[bool]) -> list[str]:
    query = select(documents.c.file_id).where(condition).distinct()
    return [str(file_id) for (file_id,) in connection.execute(query).all()]


def _refuse_taken(connection: Connection, owner: str, name: str, *, but: str = "") -> None:
    same = (libraries.c.owner_id == owner) & (libraries.c.name == name) & (libraries.c.id != but)
    if connection.execute(select(libraries.c.id).where(same)).first() is not None:
        hint = "Choose another name."
        raise ConflictError(f"There is a library {name} already.", hint=hint, key="library_name_taken", name=name)
