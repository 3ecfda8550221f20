"""Named libraries of documents, and which conversations use them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from sqlalchemy import ColumnElement, Connection, delete, insert, select, update

from core.errors import ConflictError, NotFoundError
from core.storage.base import FileRecord, NamedLibrary, new_id
from core.storage.conversations import conversation_of, freed_files, insert_owner, library_ids, unneeded
from core.storage.dialects import upsert
from core.storage.documents import (
    by_name,
    collection_of,
    leave_out,
    libraries_used,
    shelves_of_folder,
    usable_collection,
)
from core.storage.loans import end_loans
from core.storage.lost_libraries import forget_lost, lost_in, lost_to, note_deleted
from core.storage.statements import LIBRARIES_OF_OWNER, SHELVES_CHOSEN, TAKEN_BACK
from core.storage.tables import conversation_libraries, documents, libraries

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.storage.database import Database


class LibraryStore:
    """The named libraries of one owner. What is somebody else's does not exist."""

    def __init__(self, database: Database, owner: str) -> None:
        self._database = database
        self._owner = owner

    async def list(self) -> list[NamedLibrary]:
        """The owner's libraries, by name."""
        mine = {"owner": self._owner}
        return await self._database.read(lambda c: by_name(c.execute(LIBRARIES_OF_OWNER, mine).all()))

    async def get(self, library_id: str) -> NamedLibrary:
        """One library. Raises NotFoundError."""
        return await self._database.read(lambda c: collection_of(c, self._owner, library_id))

    async def create(self, name: str) -> NamedLibrary:
        """A new, empty library; the owner need not be known yet.

        Raises:
            ConflictError: key `library_name_taken`: another one of the owner has the name.
        """
        fresh = NamedLibrary(new_id(), self._owner, name, time.time())

        def begin(connection: Connection) -> None:
            insert_owner(connection, self._owner)
            _refuse_taken(connection, self._owner, name)
            values = {"id": fresh.id, "owner_id": self._owner, "name": name, "created_at": fresh.created_at}
            connection.execute(insert(libraries).values(values))

        await self._database.write(begin)
        return fresh

    async def rename(self, library_id: str, name: str) -> None:
        """Give it another name. Raises NotFoundError, and ConflictError as `create`."""

        def change(connection: Connection) -> None:
            collection_of(connection, self._owner, library_id)
            _refuse_taken(connection, self._owner, name, but=library_id)
            connection.execute(update(libraries).where(libraries.c.id == library_id).values(name=name))

        await self._database.write(change)

    async def delete(self, library_id: str) -> tuple[list[FileRecord], list[str]]:
        """Delete it with its documents; conversations use it no more, and those of others remember that it is lost.

        Returns:
            The files that nothing needs any more (their rows are gone, their bytes are the caller's to delete),
            and the ids of texts in the owner's index that no document has any more.

        Raises:
            NotFoundError: There is none such of this owner.
        """

        def remove(connection: Connection) -> tuple[list[FileRecord], list[str]]:
            collection_of(connection, self._owner, library_id)
            where = documents.c.collection_id == library_id
            used, read = _files_of(connection, where), library_ids(connection, where)
            note_deleted(connection, self._owner, library_id)
            connection.execute(delete(libraries).where(libraries.c.id == library_id))
            end_loans(connection, self._owner, "library", library_id)
            return freed_files(connection, used), unneeded(connection, self._owner, read)

        return await self._database.write(remove)

    async def delete_empty(self, library_id: str) -> bool:
        """Delete it if there is no document in it at that very moment; whether it was."""
        mine = (libraries.c.id == library_id) & (libraries.c.owner_id == self._owner)
        holds = select(documents.c.id).where(documents.c.collection_id == library_id).exists()

        def remove(connection: Connection) -> bool:
            if not connection.execute(delete(libraries).where(mine, ~holds)).rowcount:
                return False
            end_loans(connection, self._owner, "library", library_id)
            return True

        return await self._database.write(remove)

    async def remove_document(self, document_id: str) -> tuple[list[FileRecord], list[str]]:
        """Take a document out of its library; returns as `delete`. Raises NotFoundError."""

        def remove(connection: Connection) -> tuple[list[FileRecord], list[str]]:
            where = (documents.c.id == document_id) & (documents.c.owner_id == self._owner)
            where &= documents.c.collection_id.is_not(None)
            used, read = _files_of(connection, where), library_ids(connection, where)
            if not used:
                raise NotFoundError("There is no such document.", kind="document")
            connection.execute(delete(documents).where(where))
            return freed_files(connection, used), unneeded(connection, self._owner, read)

        return await self._database.write(remove)

    # ---- which conversations use them

    async def used_by(self, conversation_id: str) -> list[NamedLibrary]:
        """The libraries that a conversation uses, by name. Raises NotFoundError."""

        def load(connection: Connection) -> list[NamedLibrary]:
            conversation_of(connection, self._owner, conversation_id)
            return libraries_used(connection, conversation_id)

        return await self._database.read(load)

    async def lost_by(self, conversation_id: str) -> list[str]:
        """Ids of libraries that a conversation is to use, and that are not shared with the owner any more, or deleted.

        Raises:
            NotFoundError: The conversation is not the owner's.
        """
        return await self._database.read(lambda c: _lost_by(c, self._owner, conversation_id))

    async def lost_among(self, library_ids: Sequence[str]) -> list[str]:
        """Those of several that are somebody else's, who does not share them with the owner now, or deleted them."""
        return await self._database.read(lambda c: _lost(c, self._owner, library_ids))

    async def held_by_lost(self, conversation_id: str, text_id: str) -> bool:
        """Whether a text of the index stands in a library that `lost_by` gives. Raises NotFoundError."""

        def look(connection: Connection) -> bool:
            lost = _lost_by(connection, self._owner, conversation_id)
            query = select(documents.c.id).where(documents.c.library_id == text_id, documents.c.collection_id.in_(lost))
            return bool(lost) and connection.execute(query.limit(1)).first() is not None

        return await self._database.read(look)

    async def users(self, library_id: str) -> list[str]:
        """The conversations that use a library. Raises NotFoundError."""

        def load(connection: Connection) -> list[str]:
            collection_of(connection, self._owner, library_id)
            query = select(conversation_libraries.c.conversation_id)
            rows = connection.execute(query.where(conversation_libraries.c.library_id == library_id)).all()
            return [str(conversation_id) for (conversation_id,) in rows]

        return await self._database.read(load)

    async def use(self, conversation_id: str, library_id: str, *, on: bool) -> None:
        """Let a conversation use a library, or no more, also where its folder has it.

        Raises:
            NotFoundError: There is no such conversation; or no such library that may be used, where it is to be.
        """

        def change(connection: Connection) -> None:
            conversation_of(connection, self._owner, conversation_id)
            if on:
                usable_collection(connection, self._owner, library_id)
            row = {"conversation_id": conversation_id, "library_id": library_id}
            if on:
                adding = upsert(conversation_libraries).values({**row, "owner_id": self._owner})
                connection.execute(adding.on_conflict_do_nothing())
            else:
                same = [conversation_libraries.c[name] == value for name, value in row.items()]
                connection.execute(delete(conversation_libraries).where(*same))
            leave_out(connection, conversation_id, library_id, on=not on)
            forget_lost(connection, conversation_id, library_id)

        await self._database.write(change)


def _lost_by(connection: Connection, owner: str, conversation_id: str) -> list[str]:
    conversation_of(connection, owner, conversation_id)
    chosen = connection.execute(SHELVES_CHOSEN, {"conversation": conversation_id}).scalars()
    lost = _lost(connection, owner, [*map(str, chosen), *shelves_of_folder(connection, conversation_id)])
    return list(dict.fromkeys([*lost, *lost_in(connection, conversation_id)]))


def _lost(connection: Connection, owner: str, library_ids: Sequence[str]) -> list[str]:
    wanted = {"owner": owner, "wanted": [*library_ids]}
    taken_back = map(str, connection.execute(TAKEN_BACK, wanted).scalars()) if library_ids else ()
    return list(dict.fromkeys([*taken_back, *lost_to(connection, owner, library_ids)]))


def _files_of(connection: Connection, condition: ColumnElement[bool]) -> list[str]:
    query = select(documents.c.file_id).where(condition).distinct()
    return [str(file_id) for (file_id,) in connection.execute(query).all()]


def _refuse_taken(connection: Connection, owner: str, name: str, *, but: str = "") -> None:
    same = (libraries.c.owner_id == owner) & (libraries.c.name == name) & (libraries.c.id != but)
    if connection.execute(select(libraries.c.id).where(same)).first() is not None:
        hint = "Choose another name."
        raise ConflictError(f"There is a library {name} already.", hint=hint, key="library_name_taken", name=name)
