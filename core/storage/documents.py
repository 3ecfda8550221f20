"""Documents of conversations and named libraries: which files were handed over, and how far reading them is."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

from sqlalchemy import ColumnElement, Connection, Row, func, insert, select, update

from core.errors import NotFoundError
from core.storage.base import QUEUED, ConversationSnapshot, DocumentRecord, NamedLibrary, new_id
from core.storage.conversations import (
    conversation_of,
    settings_of,
    shown_thread,
    unneeded,
    use_files,
)
from core.storage.reading_rows import begin_reading, check_read_by, end_reading, waiting_of
from core.storage.statements import (
    KNOWN_IN_PART,
    LENT_LIBRARIES,
    LIBRARIES,
    LIBRARIES_OF_OWNER,
    OWN_DOCUMENTS,
    OWN_READ,
    OWN_SHELVES,
    SETTINGS_OF_FOLDER,
    SHELVED_DOCUMENTS,
    SHELVED_READ,
    lent_to,
)
from core.storage.tables import conversations, documents, files, libraries, readings

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from core.storage.base import DocumentStatus
    from core.storage.database import Database
    from core.storage.reading_rows import Hold

_WITHOUT: Final = "without_libraries"  # of a conversation's settings: those of its folder that it does not use


@dataclass(frozen=True, slots=True)
class LentTexts:
    """What one other owner shares of what a conversation is answered from.

    Args:
        libraries: The ids of named libraries, in order.
        documents: The ids of their texts in that owner's index, in order.
    """

    libraries: dict[str, None] = field(default_factory=dict[str, None])
    documents: dict[str, None] = field(default_factory=dict[str, None])


@dataclass(frozen=True, slots=True)
class Reach:
    """The texts that a conversation is answered from, by whose index has them.

    Args:
        own: Ids in the owner's index, each once.
        lent: What others share, by their ids; without what the owner has, too.
        names: What the texts are called, by id: the names that the conversation has for them, and for those that it
            has not the names that its libraries have.
    """

    own: list[str]
    lent: Mapping[str, LentTexts]
    names: Mapping[str, Sequence[str]] = field(default_factory=dict[str, "Sequence[str]"])

    @property
    def documents(self) -> list[str]:
        """The ids of all texts, each once."""
        return list(dict.fromkeys([*self.own, *(one for held in self.lent.values() for one in held.documents)]))


def _names(rows: Iterable[tuple[Any, Any]]) -> dict[str, Sequence[str]]:
    """The names of texts, by id, each once."""
    found: dict[str, dict[str, None]] = {}
    for text, name in rows:
        found.setdefault(str(text), {})[str(name)] = None
    return {text: tuple(names) for text, names in found.items()}


def libraries_used(connection: Connection, conversation_id: str) -> list[NamedLibrary]:
    """The libraries that a conversation uses, by name, inside a transaction."""
    shelves = shelves_of(connection, conversation_id)
    return by_name(connection.execute(LIBRARIES, {"wanted": shelves}).all()) if shelves else []


def shelves_of(connection: Connection, conversation_id: str) -> list[str]:
    """The libraries that a conversation uses: its own, and those of its folder that it does not leave out."""
    own = connection.execute(OWN_SHELVES, {"conversation": conversation_id}).scalars()
    return list(dict.fromkeys([*map(str, own), *_lent(connection, conversation_id)]))


def shelves_of_folder(connection: Connection, conversation_id: str, *, every: bool = False) -> list[str]:
    """The libraries that a conversation is to use because its folder has them, also those that it may use no more.

    With `every`, those that it leaves out are among them.
    """
    row = connection.execute(SETTINGS_OF_FOLDER, {"conversation": conversation_id}).first()
    of_folder, own = (cast("dict[str, Any]", kept or {}) for kept in row or (None, None))
    without = [] if every else kept_ids(own.get(_WITHOUT))
    return [one for one in kept_ids(of_folder.get("libraries")) if one not in without]


def _lent(connection: Connection, conversation_id: str) -> list[str]:
    """The libraries that a conversation uses because its folder has them."""
    wanted = shelves_of_folder(connection, conversation_id)
    if not wanted:
        return []
    whose = conversations.c.owner_id
    mine = select(libraries.c.id).join(conversations, conversations.c.id == conversation_id)
    mine = mine.where(libraries.c.id.in_(wanted), (libraries.c.owner_id == whose) | lent_to(whose))
    return [str(one) for one in connection.execute(mine).scalars()]


def kept_ids(kept: Any) -> list[str]:
    """The ids of a list that was kept in settings; none where it is no list."""
    return [one for one in cast("list[object]", kept) if isinstance(one, str)] if isinstance(kept, list) else []


def leave_out(connection: Connection, conversation_id: str, library_id: str, *, on: bool) -> None:
    """Let a conversation leave out a library of its folder, or use it again."""
    kept = settings_of(connection, conversation_id)
    without = [one for one in kept_ids(kept.pop(_WITHOUT, None)) if one != library_id]
    if on and library_id in shelves_of_folder(connection, conversation_id, every=True):
        without.append(library_id)
    values = {**kept, _WITHOUT: without} if without else kept
    connection.execute(update(conversations).where(conversations.c.id == conversation_id).values(settings=values))


def by_name(rows: Sequence[Sequence[Any]]) -> list[NamedLibrary]:
    """Libraries of rows that a listing gives, by name."""
    return sorted((NamedLibrary(*row) for row in rows), key=lambda one: (one.name.casefold(), one.created_at))


def collection_of(connection: Connection, owner: str, library_id: str) -> NamedLibrary:
    """The owner's library, inside a transaction. Raises NotFoundError."""
    wanted = LIBRARIES_OF_OWNER.where(libraries.c.id == library_id)
    found = by_name(connection.execute(wanted, {"owner": owner}).all())
    if not found:
        raise NotFoundError("There is no such library.", kind="library")
    return found[0]


def check_collection(connection: Connection, owner: str, library_id: str) -> None:
    """Check that a library is the owner's, however much is in it, inside a transaction. Raises NotFoundError."""
    mine = select(libraries.c.id).where(libraries.c.id == library_id, libraries.c.owner_id == owner)
    if connection.execute(mine).first() is None:
        raise NotFoundError("There is no such library.", kind="library")


def usable_collection(connection: Connection, owner: str, library_id: str) -> NamedLibrary:
    """A library that is the owner's, or lent to the owner now, inside a transaction. Raises NotFoundError."""
    wanted = LENT_LIBRARIES.where(libraries.c.id == library_id)
    row = connection.execute(wanted, {"owner": owner}).first()
    return by_name([row[:6]])[0] if row is not None else collection_of(connection, owner, library_id)


_AT_ONCE = 500  # values that a query may name


class DocumentStore:
    """The documents of one owner. What is somebody else's does not exist."""

    def __init__(self, database: Database, owner: str) -> None:
        self._database = database
        self._owner = owner

    async def add(
        self, conversation_id: str | None, file_id: str, name: str, *, collection_id: str | None = None
    ) -> DocumentRecord:
        """As `add_to_read`, for whoever reads it first."""
        return (await self.add_to_read(conversation_id, file_id, name, None, collection_id=collection_id))[0]

    async def add_to_read(
        self,
        conversation_id: str | None,
        file_id: str,
        name: str,
        hold: Hold | None,
        *,
        collection_id: str | None = None,
    ) -> tuple[DocumentRecord, int]:
        """Note that a file became a document, still to be read; the same is noted once.

        Args:
            conversation_id: The conversation that it belongs to; `None` if it belongs to a named library.
            file_id: The file. In a conversation the same file is the same document, in a named library the same bytes.
            hold: Who reads it; left out, whoever looks first.

        Returns:
            The document, and the epoch of its reading; 0 where it was there already, or nobody holds it.

        Raises:
            NotFoundError: The conversation, library or file is not the owner's.
            TooManyRequestsError: As of `begin_reading`.
        """

        def note(connection: Connection) -> tuple[DocumentRecord, int]:
            if collection_id is None:
                conversation_of(connection, self._owner, conversation_id or "")
            else:
                check_collection(connection, self._owner, collection_id)
            mine = select(files.c.sha256).where(files.c.id == file_id, files.c.owner_id == self._owner)
            digest = connection.execute(mine).scalar()
            if digest is None:
                raise NotFoundError("There is no such file.", kind="file")
            known = _known(connection, conversation_id, file_id, collection_id, digest)
            if known is not None:
                return document_record(known), 0
            fresh = DocumentRecord(
                new_id(),
                self._owner,
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
                use_files(connection, self._owner, conversation_id, [file_id])
            return fresh, begin_reading(connection, fresh, hold) if hold is not None else 0

        return await self._database.write(note)

    async def update(  # noqa: PLR0913 - the columns of a row
        self,
        document_id: str,
        status: DocumentStatus,
        *,
        library_id: str | None = None,
        pages: int | None = None,
        error: dict[str, Any] | None = None,
        facts: dict[str, Any] | None = None,
        only_if: Collection[DocumentStatus] = (),
        epoch: int | None = None,
    ) -> DocumentRecord:
        """Note how reading went; what is left out is cleared.

        The document stays as it is if it has none of the states `only_if` at that very moment; any will do by default.

        Args:
            epoch: The one in which the caller reads it.

        Returns:
            The document as it is then.

        Raises:
            LeaseLostError: Another process reads it by now; nothing was stored.
            NotFoundError: There is none such of this owner.
        """

        def note(connection: Connection) -> DocumentRecord:
            _document_of(connection, self._owner, document_id)
            if epoch is not None:
                check_read_by(connection, document_id, epoch)
            values = {"status": status, "library_id": library_id, "pages": pages, "error": error, "facts": facts}
            done = _noted(connection, document_id, values, only_if)
            if status != "reading" and (done or epoch is not None):  # who reads it reads it no more
                end_reading(connection, document_id)
            return _document_of(connection, self._owner, document_id)

        return await self._database.write(note, holds=epoch is not None)

    async def begin(
        self,
        document_id: str,
        hold: Hold,
        only_if: Collection[DocumentStatus],
        *,
        library_id: str | None = None,
        facts: dict[str, Any] | None = None,
        anew: bool = False,
    ) -> tuple[DocumentRecord, int]:
        """Note that a document is to be read once more, if it has one of these states at that very moment.

        Args:
            hold: Who reads it.
            anew: Whether it is kept as it was until that is done.

        Returns:
            The document as it is then, and the epoch of its reading; 0 where it is as it was.

        Raises:
            NotFoundError: There is none such of this owner.
            TooManyRequestsError: As of `begin_reading`.
        """

        def note(connection: Connection) -> tuple[DocumentRecord, int]:
            before = _document_of(connection, self._owner, document_id)
            values = {"status": "reading", "library_id": library_id, "pages": None, "error": None, "facts": facts}
            done = _noted(connection, document_id, values, only_if)
            now = _document_of(connection, self._owner, document_id)
            return now, begin_reading(connection, now, hold, before if anew else None) if done else 0

        return await self._database.write(note)

    async def waiting(self) -> int:
        """How many are read or wait for it. Raises StorageError."""
        return await self._database.read(lambda c: waiting_of(c, self._owner))

    async def call_off(self, document_id: str) -> bool:
        """Have nobody read a document any more; whether its reader has to do so, and is asked.

        Of one that nobody reads at this moment it is noted at once; it is as before where it was read anew or on.

        Raises:
            NotFoundError: There is none such of this owner.
        """

        def call(connection: Connection) -> bool:
            record = _document_of(connection, self._owner, document_id)
            if record.status != "reading":
                return False
            read = connection.execute(select(readings).where(readings.c.document_id == document_id).with_for_update())
            row = read.first()
            if row is not None and row.worker != QUEUED and row.lease_until is not None:
                this = readings.c.document_id == document_id
                connection.execute(update(readings).where(this).values(asked="stop"))
                return True
            cleared: dict[str, Any] = dict.fromkeys(("library_id", "pages", "facts", "error"))
            kept = row.before if row is not None else None
            values = kept or {"status": "cancelled", **cleared, "facts": record.facts}
            if _noted(connection, document_id, values, ("reading",)):
                end_reading(connection, document_id)
            return False

        return await self._database.write(call)

    async def renewed(self, record: DocumentRecord) -> list[str | None]:
        """A text was read, further or anew: tell so of the owner's other documents that have the same text.

        Returns:
            The conversations that these belong to; `None` is a named library.
        """

        def note(connection: Connection) -> list[str | None]:
            same = (documents.c.owner_id == self._owner) & (documents.c.library_id == record.library_id)
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

    async def rename(self, document_id: str, name: str) -> DocumentRecord:
        """Call a document something else. Raises NotFoundError."""

        def note(connection: Connection) -> DocumentRecord:
            _document_of(connection, self._owner, document_id)
            connection.execute(update(documents).where(documents.c.id == document_id).values(name=name))
            return _document_of(connection, self._owner, document_id)

        return await self._database.write(note)

    async def get(self, document_id: str) -> DocumentRecord:
        """One document. Raises NotFoundError."""
        return await self._database.read(lambda c: _document_of(c, self._owner, document_id))

    async def list(self, conversation_id: str) -> list[DocumentRecord]:
        """The conversation's documents, the oldest first. Raises NotFoundError."""

        def load(connection: Connection) -> list[DocumentRecord]:
            conversation_of(connection, self._owner, conversation_id)
            return documents_where(connection, documents.c.conversation_id == conversation_id)

        return await self._database.read(load)

    async def list_shelved(self, collection_id: str) -> list[DocumentRecord]:
        """The documents of a named library, the oldest first. Raises NotFoundError."""

        def load(connection: Connection) -> list[DocumentRecord]:
            collection_of(connection, self._owner, collection_id)
            return documents_where(connection, documents.c.collection_id == collection_id)

        return await self._database.read(load)

    async def within_reach(self, conversation_id: str) -> list[str]:
        """`reach` as the ids of all texts, each once, the conversation's own first. Raises NotFoundError."""
        return (await self.reach(conversation_id)).documents

    async def reach(self, conversation_id: str) -> Reach:
        """What a conversation is answered from: its documents and those of the libraries that it uses.

        Raises:
            NotFoundError: The conversation is not the owner's.
        """

        def load(connection: Connection) -> Reach:
            conversation_of(connection, self._owner, conversation_id)
            here = connection.execute(OWN_READ, {"conversation": conversation_id}).all()
            shelves = shelves_of(connection, conversation_id)
            found = connection.execute(SHELVED_READ, {"shelves": shelves}).all() if shelves else ()
            rows = [(str(text), str(whose), str(shelf)) for text, _, whose, shelf in found]
            own = [*(str(text) for text, _ in here), *(text for text, whose, _ in rows if whose == self._owner)]
            own = list(dict.fromkeys(own))
            others: dict[str, LentTexts] = {}
            for text, whose, shelf in rows:
                if whose != self._owner:
                    held = others.setdefault(whose, LentTexts())
                    held.libraries[shelf] = None
                    if text not in own:
                        held.documents[text] = None
            theirs = _names((text, name) for text, name, _, _ in found)
            return Reach(own, others, {**theirs, **_names((text, name) for text, name in here)})

        return await self._database.read(load)

    async def attached(self, conversation_id: str) -> list[DocumentRecord]:
        """The documents of a conversation, and after them those of the libraries that it uses, however reading went.

        Raises:
            NotFoundError: The conversation is not the owner's.
        """

        def load(connection: Connection) -> list[DocumentRecord]:
            conversation_of(connection, self._owner, conversation_id)
            shelves = shelves_of(connection, conversation_id)
            lent = connection.execute(SHELVED_DOCUMENTS, {"shelves": shelves}).all() if shelves else ()
            return [*_own(connection, conversation_id), *map(document_record, lent)]

        return await self._database.read(load)

    async def known_in_part(self, conversation_id: str, most: int) -> list[DocumentRecord]:
        """Documents of a conversation or its libraries that were stopped, or of its libraries and still being read.

        The oldest `most` of them.

        Raises:
            NotFoundError: The conversation is not the owner's.
        """

        def load(connection: Connection) -> list[DocumentRecord]:
            conversation_of(connection, self._owner, conversation_id)
            shelves = shelves_of(connection, conversation_id)
            wanted = {"conversation": conversation_id, "shelves": shelves, "most": most}
            return [document_record(row) for row in connection.execute(KNOWN_IN_PART, wanted).all()]

        return await self._database.read(load)

    async def opened(self, conversation_id: str) -> ConversationSnapshot:
        """A conversation with its turns, documents and libraries, all of the same moment. Raises NotFoundError."""

        def load(connection: Connection) -> ConversationSnapshot:
            conversation, thread, versions = shown_thread(connection, self._owner, conversation_id)
            own = _own(connection, conversation_id)
            shelves, settings = libraries_used(connection, conversation_id), settings_of(connection, conversation_id)
            return ConversationSnapshot(conversation, thread, own, shelves, versions, settings)

        return await self._database.read(load)

    async def owns_library_document(self, library_id: str) -> bool:
        """Whether any conversation or named library of the owner has the document of this library id."""
        query = (
            select(documents.c.id)
            .where(documents.c.owner_id == self._owner, documents.c.library_id == library_id)
            .limit(1)
        )
        return await self._database.read(lambda c: c.execute(query).first()) is not None

    async def is_being_read(self, digest: str) -> bool:
        """Whether a document of the owner with this content (SHA-256) is being read, or waits for it."""
        states = select(documents.c.owner_id, documents.c.status)
        known = states.where(documents.c.library_id == digest)
        fresh = states.join(files, files.c.id == documents.c.file_id).where(files.c.sha256 == digest)

        def look(connection: Connection) -> bool:
            found = (connection.execute(query).all() for query in (known, fresh))  # each by its index
            return any((self._owner, "reading") == tuple(row) for rows in found for row in rows)

        return await self._database.read(look)

    async def read(self) -> dict[str, str]:
        """The owner's documents that were read, all or some of it: their ids in the owner's index, by their own."""
        query = select(documents.c.id, documents.c.library_id).where(
            documents.c.owner_id == self._owner, documents.c.status != "reading", documents.c.library_id.is_not(None)
        )
        rows = await self._database.read(lambda c: c.execute(query).all())
        return {row.id: row.library_id for row in rows}

    async def found(self) -> list[DocumentRecord]:
        """The owner's documents that were read, all or some of it: the index has to know them. The oldest first."""
        is_read = (documents.c.status != "reading") & documents.c.library_id.is_not(None)
        return await self._database.read(
            lambda connection: documents_where(connection, (documents.c.owner_id == self._owner) & is_read)
        )

    async def unneeded(self, library_ids: Sequence[str]) -> list[str]:
        """Those of these ids in the owner's index that no document of the owner has, nor will have once it is read."""

        def load(connection: Connection) -> list[str]:
            parts = (library_ids[start : start + _AT_ONCE] for start in range(0, len(library_ids), _AT_ONCE))
            return [found for part in parts for found in unneeded(connection, self._owner, part)]

        return await self._database.read(load)


class AllDocuments:
    """The documents of all owners, for the start of a process."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def owners(self, most: int) -> list[str]:
        """Who has documents that were read, all or some of it: those with the latest first, `most` at most."""
        query = select(documents.c.owner_id).where(documents.c.library_id.is_not(None)).group_by(documents.c.owner_id)
        query = query.order_by(func.max(documents.c.created_at).desc()).limit(most)
        return list(await self._database.read(lambda c: c.execute(query).scalars().all()))

    async def unread(self) -> list[DocumentRecord]:
        """Every document still to be read."""
        query = select(documents).where(documents.c.status == "reading").order_by(documents.c.created_at)
        rows = await self._database.read(lambda c: c.execute(query).all())
        return [document_record(row) for row in rows]


def _noted(
    connection: Connection, document_id: str, values: Mapping[str, Any], only_if: Collection[DocumentStatus]
) -> bool:
    """Change a document, if it has one of these states; any will do where there are none. Whether it was changed."""
    change = update(documents).where(documents.c.id == document_id)
    if only_if:
        change = change.where(documents.c.status.in_(only_if))
    return bool(connection.execute(change.values(**values)).rowcount)


def _own(connection: Connection, conversation_id: str) -> list[DocumentRecord]:
    """The documents of a conversation, without those of libraries."""
    return [document_record(row) for row in connection.execute(OWN_DOCUMENTS, {"conversation": conversation_id}).all()]


def documents_where(
    connection: Connection, condition: ColumnElement[bool], most: int | None = None
) -> list[DocumentRecord]:
    """Documents, the oldest first, inside a transaction."""
    query = select(documents).where(condition).order_by(documents.c.created_at, documents.c.id).limit(most)
    return [document_record(row) for row in connection.execute(query).all()]


def _known(
    connection: Connection, conversation_id: str | None, file_id: str, collection_id: str | None, digest: str
) -> Row[Any] | None:
    """The document that this file is there already."""
    if collection_id is None:
        same = (documents.c.conversation_id == conversation_id) & (documents.c.file_id == file_id)
        return connection.execute(select(documents).where(same)).first()
    same = documents.c.file_id.in_(select(files.c.id).where(files.c.sha256 == digest))
    rows = connection.execute(select(documents).where(same))  # by the bytes alone: a library may have very many
    return next((row for row in rows if row.collection_id == collection_id), None)


def _document_of(connection: Connection, owner: str, document_id: str) -> DocumentRecord:
    query = select(documents).where(documents.c.id == document_id, documents.c.owner_id == owner)
    row = connection.execute(query).first()
    if row is None:
        raise NotFoundError("There is no such document.", kind="document")
    return document_record(row)


def document_record(row: Row[Any]) -> DocumentRecord:
    """A row of the table `documents`."""
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
