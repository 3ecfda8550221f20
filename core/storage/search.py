"""What an owner looks for by its words: conversations down to the message, documents and libraries by their names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Connection, Select, select

from core.storage.conversations import clean, conversation_record, stays, stored
from core.storage.excerpts import Excerpt, Sought, excerpt, marked
from core.storage.message_index import check_index, rows_with
from core.storage.message_texts import text_of
from core.storage.tables import conversations, documents, folders, libraries, messages

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.storage.base import ConversationRecord, Role
    from core.storage.database import Database

LATEST: Final = 5
"""Conversations that are offered before anything is looked for."""
MOST: Final = 12
"""Conversations, and documents and libraries, that are found at most."""
HITS: Final = 2
"""Messages of a conversation that are shown."""
_LOOKED_AT: Final = 300  # messages that fit, the newest first
_NAMES: Final = 5_000  # of documents, the newest first


@dataclass(frozen=True, slots=True)
class Hit:
    """A message that fits, as a line of it; `marks` are where words begin and end in `text`, in characters."""

    message_id: str
    role: Role
    said: Excerpt


@dataclass(frozen=True, slots=True)
class FoundConversation:
    """A conversation whose title or messages fit.

    Args:
        conversation: Itself, perhaps an archived one.
        folder: The name of the folder that it is in.
        marks: Where the words are in its title.
        hits: The newest messages that fit, at most `HITS`.
    """

    conversation: ConversationRecord
    folder: str = ""
    marks: tuple[tuple[int, int], ...] = ()
    hits: tuple[Hit, ...] = ()


@dataclass(frozen=True, slots=True)
class FoundName:
    """A document or library whose name fits.

    Args:
        marks: Where the words are in it.
        conversation_id: Of a document: the conversation that it is in.
        library_id: Of a document: the named library that it is in.
        within: What that conversation or library is called.
    """

    id: str
    name: str
    marks: tuple[tuple[int, int], ...]
    conversation_id: str | None = None
    library_id: str | None = None
    within: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """What fits; of each kind at most `MOST`.

    Args:
        more: The kinds of which more fits than is told, by their names here.
    """

    conversations: tuple[FoundConversation, ...] = ()
    documents: tuple[FoundName, ...] = ()
    libraries: tuple[FoundName, ...] = ()
    more: frozenset[str] = frozenset()


class SearchStore:
    """Looks through what one owner has. What is somebody else's does not exist."""

    def __init__(self, database: Database, owner: str) -> None:
        self._database = database
        self._owner = owner

    async def find(self, text: str) -> Found:
        """What has all words of `text`, the last of them perhaps only begun; and without any the latest.

        Accents and capitals do not matter. A conversation fits by its title or by one of its messages.

        Raises:
            StorageError: The database failed.
        """
        sought = Sought.of(clean(text))
        if not sought.words:
            return await self._database.read(self._latest) if not text.strip() else Found()
        return await self._database.read(lambda c: self._found(c, sought))

    async def places(self) -> dict[str, FoundName]:
        """Where the owner's newest documents stand, by their ids in the index; none of a temporary conversation.

        Raises:
            StorageError: The database failed.
        """
        query = self._documents_of().where(documents.c.library_id.is_not(None)).limit(_NAMES)
        rows = await self._database.read(lambda c: c.execute(query).all())
        return {str(row.index_id): _placed(row, ()) for row in reversed(rows)}  # of two the newest counts

    def _latest(self, connection: Connection) -> Found:
        mine = (conversations.c.owner_id == self._owner) & conversations.c.archived_at.is_(None) & stays()
        query = select(conversations).where(mine).order_by(conversations.c.updated_at.desc(), conversations.c.id)
        records = [conversation_record(row) for row in connection.execute(query.limit(LATEST)).all()]
        named = self._folders(connection)
        latest = (FoundConversation(one, named.get(one.folder_id or "", "")) for one in records)
        return Found(tuple(latest), (), self._libraries(connection, Sought.of("")))

    def _found(self, connection: Connection, sought: Sought) -> Found:
        talks, more_talks = self._conversations(connection, sought)
        documents_, libraries_ = self._documents(connection, sought), self._libraries(connection, sought)
        cut = {"conversations": more_talks, "documents": len(documents_) > MOST, "libraries": len(libraries_) > MOST}
        more = frozenset(kind for kind, is_cut in cut.items() if is_cut)
        return Found(talks, documents_[:MOST], libraries_[:MOST], more)

    def _conversations(self, connection: Connection, sought: Sought) -> tuple[tuple[FoundConversation, ...], bool]:
        """Those whose titles fit, then those with messages that do, the newest of each first; and whether more may."""
        titled = [str(talk) for talk, _ in rows_with(connection, self._owner, "title", sought, MOST + 1)]
        said: dict[str, list[str]] = {}
        rows = rows_with(connection, self._owner, "words", sought, _LOOKED_AT)
        for talk, message in rows:
            said.setdefault(str(talk), []).append(str(message))
        if not titled and not said:
            check_index(connection, self._owner)
        fitting = list(dict.fromkeys([*titled, *said]))
        wanted, more = fitting[:MOST], len(fitting) > MOST or len(rows) == _LOOKED_AT
        # Whose they are is looked at here: SQLite would rather go through all rows of the owner.
        there = connection.execute(select(conversations).where(conversations.c.id.in_(wanted), stays())).all()
        records = {str(row.id): conversation_record(row) for row in there if row.owner_id == self._owner}
        hits = self._hits(connection, [one for talk in wanted for one in said.get(talk, [])[:HITS]], sought)
        named = self._folders(connection)
        found = (
            FoundConversation(
                records[talk],
                named.get(records[talk].folder_id or "", ""),
                marked(records[talk].title, sought),
                tuple(hits[one] for one in said.get(talk, [])[:HITS] if one in hits),
            )
            for talk in wanted
            if talk in records
        )
        return tuple(found), more

    def _hits(self, connection: Connection, ids: Sequence[str], sought: Sought) -> dict[str, Hit]:
        rows = connection.execute(select(messages).where(messages.c.id.in_(ids))).all()
        turns = [stored(row) for row in rows if row.owner_id == self._owner]
        return {one.id: Hit(one.id, one.role, excerpt(text_of(one.role, one.parts), sought)) for one in turns}

    def _folders(self, connection: Connection) -> dict[str, str]:
        query = select(folders.c.id, folders.c.name).where(folders.c.owner_id == self._owner)
        return {str(row.id): str(row.name) for row in connection.execute(query).all()}

    def _documents(self, connection: Connection, sought: Sought) -> tuple[FoundName, ...]:
        query = self._documents_of().limit(_NAMES)
        found: list[FoundName] = []
        for row in connection.execute(query).all():
            if len(found) <= MOST and sought.fits(row.name):
                found.append(_placed(row, marked(row.name, sought)))
        return tuple(found)

    def _documents_of(self) -> Select[Any, Any, Any, Any, Any, Any, Any]:
        """All documents that can be looked for, the newest first, with what they are in."""
        query = select(
            documents.c.id,
            documents.c.name,
            documents.c.library_id.label("index_id"),
            documents.c.conversation_id,
            documents.c.collection_id,
            conversations.c.title,
            libraries.c.name.label("library"),
        )
        query = query.outerjoin(conversations, documents.c.conversation_id == conversations.c.id)
        query = query.outerjoin(libraries, documents.c.collection_id == libraries.c.id)
        return query.where(documents.c.owner_id == self._owner, stays()).order_by(documents.c.created_at.desc())

    def _libraries(self, connection: Connection, sought: Sought) -> tuple[FoundName, ...]:
        query = select(libraries.c.id, libraries.c.name).where(libraries.c.owner_id == self._owner)
        rows = [row for row in connection.execute(query).all() if sought.fits(row.name)]
        rows.sort(key=lambda row: row.name.casefold())
        return tuple(FoundName(row.id, row.name, marked(row.name, sought)) for row in rows[: MOST + 1])


def _placed(row: Any, marks: tuple[tuple[int, int], ...]) -> FoundName:
    within = row.title if row.conversation_id is not None else row.library
    return FoundName(row.id, row.name, marks, row.conversation_id, row.collection_id, within or "")
