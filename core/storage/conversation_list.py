"""The list of conversations in parts: pinned ones, folders with what is in them, and the others, newest first.

Every row has a place in one order, and a part is what stands between two places. A conversation that is used meanwhile
moves to the beginning; all others stay in the part where they were, so that who reads part after part misses none of
them and gets none twice.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sqlalchemy import Column, ColumnElement, Connection, and_, func, literal, or_, select

from core.errors import NotFoundError
from core.storage.base import History, ListedRow, Part, Parts
from core.storage.conversations import conversation_record, stays
from core.storage.folders import folders_of
from core.storage.tables import conversations

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from sqlalchemy import Row

    from core.storage.base import Folder, Section
    from core.storage.database import Database

FIRST: Final = 50
"""Rows of the list's beginning, folders among them."""
PART: Final = 60
"""Rows of each further part, at most."""
_LATEST: Final = 200  # conversations in folders whose folder is told: what runs, or was not read, is among them
_LONGEST: Final = 200  # characters of a place
_BETWEEN: Final = "~"  # in no id
_SECTIONS: Final[tuple[Section, ...]] = ("pinned", "filed", "loose", "archived")


class Place(NamedTuple):
    """Where a row stands, as a value that sorts as the list does: within a section by folder, then the newest first.

    A folder's own row has neither age nor id, and comes before what is in it.
    """

    section: int
    position: float
    folder: str
    is_inside: bool
    age: float
    id: str

    @classmethod
    def read(cls, text: str) -> Place:
        """A place as `str` wrote it. Raises NotFoundError where it is none."""
        found = text.split(_BETWEEN) if len(text) <= _LONGEST else []
        try:
            section, position, folder, inside, age, row = found
            place = cls(int(section), float(position), folder, inside == "1", float(age), row)
        except ValueError:
            raise NotFoundError("There is no such place in the list.", kind="conversation") from None
        if not (math.isfinite(place.position) and math.isfinite(place.age) and 0 <= place.section < len(_SECTIONS)):
            raise NotFoundError("There is no such place in the list.", kind="conversation")
        return place

    def __str__(self) -> str:
        """The place for an address."""
        inside = "1" if self.is_inside else "0"
        parts = (str(self.section), repr(self.position), self.folder, inside, repr(self.age), self.id)
        return _BETWEEN.join(parts)

    @property
    def name(self) -> Section:
        """The section that it is in."""
        return _SECTIONS[self.section]

    @property
    def head(self) -> tuple[int, float, str, bool]:
        """The stretch of the list that it is in."""
        return self[:4]


@dataclass(frozen=True, slots=True)
class _Stretch:
    """A folder's own row, or the conversations that stand together: pinned, in one folder, or in none."""

    head: tuple[int, float, str, bool]
    folder: Folder | None = None
    where: ColumnElement[bool] | None = None  # `None` for a folder's own row

    @property
    def time(self) -> Column[float]:
        """What the newest is told by."""
        return conversations.c.pinned_at if _SECTIONS[self.head[0]] == "pinned" else conversations.c.updated_at

    def place(self, at: float = 0.0, row_id: str = "") -> Place:
        """The place of a row in it."""
        return Place(*self.head, -at, row_id)

    def between(self, after: Place | None, to: Place | None) -> ColumnElement[bool]:
        """What of it stands after one place, up to another one and with it."""
        wanted = [self.where if self.where is not None else literal(value=False)]
        if after is not None and after.head == self.head:
            older = and_(self.time == -after.age, conversations.c.id > after.id)
            wanted.append(or_(self.time < -after.age, older))
        if to is not None and to.head == self.head:
            newer = and_(self.time == -to.age, conversations.c.id <= to.id)
            wanted.append(or_(self.time > -to.age, newer))
        return and_(*wanted)


class ConversationList:
    """The list of one owner's conversations, in parts. What is somebody else's is not in it."""

    def __init__(self, database: Database, owner: str, hidden: Collection[str] = ()) -> None:
        self._database = database
        self._owner = owner
        self._hidden = hidden

    def without(self, hidden: Collection[str]) -> ConversationList:
        """The same list without these conversations, which are about to be deleted."""
        return ConversationList(self._database, self._owner, hidden)

    async def beginning(self, *, archived: bool = False, limit: int = FIRST) -> History:
        """The first rows of the list, and where they end.

        Args:
            archived: The archived conversations instead.
            limit: How many rows, at most.

        Raises:
            StorageError: The database failed.
        """
        return await self._database.read(lambda c: self._read(c, None, None, archived=archived, limit=limit))

    async def between(self, after: Place, to: Place, *, archived: bool = False) -> History:
        """What stands after one place of the list, up to another one and with it.

        Raises:
            StorageError: The database failed.
        """
        return await self._database.read(lambda c: self._read(c, after, to, archived=archived, limit=10 * PART))

    async def parts(self, after: Place | None, *, archived: bool = False, holding: str = "") -> Parts:
        """Where each part ends of what stands after a place; all of the list without one.

        Args:
            holding: A conversation; the part is told that it is in.

        Raises:
            StorageError: The database failed.
        """

        def cut(connection: Connection) -> Parts:
            cuts: list[Part] = []
            count, end, at = 0, None, None
            for end, conversation_id in self._places(connection, after, archived=archived):
                count += 1
                if holding and conversation_id == holding:
                    at = len(cuts)
                if count == PART:
                    cuts.append(Part(str(end), count))
                    count = 0
            if count:
                cuts.append(Part(str(end), count))
            return Parts(tuple(cuts), at)

        return await self._database.read(cut)

    async def ids(self, *, archived: bool = False) -> list[tuple[str, str]]:
        """Every conversation that the list shows, in its order, each with its folder, "" for none.

        Raises:
            StorageError: The database failed.
        """

        def load(connection: Connection) -> list[tuple[str, str]]:
            places = self._places(connection, None, archived=archived)
            return [(conversation_id, place.folder) for place, conversation_id in places if conversation_id]

        return await self._database.read(load)

    def _read(
        self, connection: Connection, after: Place | None, to: Place | None, *, archived: bool, limit: int
    ) -> History:
        folders = folders_of(connection, self._owner)
        rows: list[ListedRow] = []
        for stretch in self._stretches(folders, archived=archived):
            if len(rows) > limit:
                break
            section = _SECTIONS[stretch.head[0]]
            for place, found in _found(connection, stretch, after, to, limit + 1 - len(rows), [*conversations.c]):
                conversation = conversation_record(found) if found is not None else None
                rows.append(ListedRow(str(place), section, stretch.folder, conversation))
        has_more = len(rows) > limit
        del rows[limit:]
        away = self._mine() & conversations.c.archived_at.is_not(None)
        return History(
            tuple(rows),
            tuple(folders),
            sizes=self._sizes(connection) if folders else {},
            homes=self._homes(connection) if folders else {},
            archived=archived,
            has_archive=connection.execute(select(conversations.c.id).where(away).limit(1)).first() is not None,
            end=rows[-1].place if has_more else "",
        )

    def _places(self, connection: Connection, after: Place | None, *, archived: bool) -> Iterator[tuple[Place, str]]:
        """Every place after one, with the conversation there; "" for a folder."""
        for stretch in self._stretches(folders_of(connection, self._owner), archived=archived):
            columns = [conversations.c.id, stretch.time]
            for place, found in _found(connection, stretch, after, None, None, columns):
                yield place, "" if found is None else str(found.id)

    def _stretches(self, folders: Sequence[Folder], *, archived: bool) -> Iterator[_Stretch]:
        mine, away = self._mine(), conversations.c.archived_at.is_not(None)
        if archived:
            yield _Stretch((3, 0.0, "", True), None, mine & away)
            return
        mine &= ~away
        yield _Stretch((0, 0.0, "", True), None, mine & conversations.c.pinned_at.is_not(None))
        mine &= conversations.c.pinned_at.is_(None)
        for folder in sorted(folders, key=lambda one: (one.position, one.id)):
            yield _Stretch((1, folder.position, folder.id, False), folder)
            if folder.settings.get("open") is True:
                inside = mine & (conversations.c.folder_id == folder.id)
                yield _Stretch((1, folder.position, folder.id, True), folder, inside)
        # A folder that is gone means "in none".
        loose = conversations.c.folder_id.is_(None) | conversations.c.folder_id.not_in([one.id for one in folders])
        yield _Stretch((2, 0.0, "", True), None, mine & loose)

    def _mine(self) -> ColumnElement[bool]:
        mine = (conversations.c.owner_id == self._owner) & stays()
        return mine & conversations.c.id.not_in(self._hidden) if self._hidden else mine

    def _filed(self) -> ColumnElement[bool]:
        kept = conversations.c.archived_at.is_(None) & conversations.c.pinned_at.is_(None)
        return self._mine() & kept & conversations.c.folder_id.is_not(None)

    def _sizes(self, connection: Connection) -> dict[str, int]:
        query = select(conversations.c.folder_id, func.count()).where(self._filed()).group_by(conversations.c.folder_id)
        return {str(folder): int(count) for folder, count in connection.execute(query).all()}

    def _homes(self, connection: Connection) -> dict[str, str]:
        query = select(conversations.c.id, conversations.c.folder_id).where(self._filed())
        latest = query.order_by(conversations.c.updated_at.desc()).limit(_LATEST)
        return {str(one): str(folder) for one, folder in connection.execute(latest).all()}


def _found(
    connection: Connection,
    stretch: _Stretch,
    after: Place | None,
    to: Place | None,
    limit: int | None,
    columns: Sequence[ColumnElement[Any]],
) -> Iterator[tuple[Place, Row[Any] | None]]:
    """The rows of a stretch between two places, each with its own; a folder's own row has none in the database."""
    if (after is not None and stretch.head < after.head) or (to is not None and stretch.head > to.head):
        return
    if stretch.where is None:
        place = stretch.place()
        if (after is None or place > after) and (to is None or place <= to):
            yield place, None
        return
    query = select(*columns).where(stretch.between(after, to)).order_by(stretch.time.desc(), conversations.c.id)
    for found in connection.execute(query.limit(limit)):
        yield stretch.place(getattr(found, stretch.time.name), str(found.id)), found
