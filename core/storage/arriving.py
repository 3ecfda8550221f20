"""Conversations from elsewhere on their way into the tables: all that come together, or none of them."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import re
import time
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, cast

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from core.bridge.cancellation import run_shielded, run_to_end
from core.errors import StorageError
from core.messages.message import Message
from core.storage.base import new_id
from core.storage.conversations import TEMPORARY, clean, insert_owner, stays, use_files
from core.storage.kept_pages import PAGES, PagePlace
from core.storage.message_texts import text_row, title_row
from core.storage.tables import (
    conversations,
    file_uses,
    files,
    message_agent_thoughts,
    message_texts,
    messages,
    run_events,
    runs,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from sqlalchemy import Table

    from core.storage.database import Database

ORIGIN: Final = "origin"
"""In a conversation's settings: what names it where it came from, where its id does not."""
LONGEST_TITLE: Final = 200
"""Characters of a title that comes from elsewhere; what is longer is cut."""
_NAMED_FILE: Final = re.compile(r'(?<=/files/)[\w-]{22}|(?<=")[\w-]{22}(?=")')
_AT_ONCE: Final = 500  # values in one question to the database, and rows in one statement
_LOT: Final = 50  # conversations of one transaction at most
_TURNS: Final = 400  # of their turns, about: a transaction takes a quarter of a second
_TABLES: Final = (conversations, messages, runs, run_events, message_agent_thoughts, message_texts)
_SHOW: Final = (
    update(conversations)
    .where(conversations.c.id == bindparam("this"))
    .values(settings=bindparam("kept"), updated_at=bindparam("used"))
)
Shown: TypeAlias = "tuple[dict[str, Any], float]"
"""What a conversation's row says once it is seen: its settings, and when it was used last."""
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ArrivingTurn:
    """A turn as its row, with the row of the run that it came of, the rows of its log and those of its steps."""

    row: dict[str, Any]
    run: dict[str, Any] | None = None
    log: tuple[dict[str, Any], ...] = ()
    steps: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class ArrivingConversation:
    """A conversation whose turns stand after those that they follow.

    Args:
        row: `id`, `title`, `titled_by`, `created_at`, `updated_at`, `leaf_id`.
        files: The files that it needs, by the ids that its turns name them by.
        documents: Those of them that are read.
        pages: Pictures of pages whose documents do not come along; their files are among those that it needs.
        origin: Names it wherever it comes from, however often it comes; "" where nothing does.
        retold: Whether its texts are not those of the conversation that it was made of: an export as JSON sets marks,
            and names files in words. Then it is known by who spoke when.
    """

    row: dict[str, Any]
    turns: tuple[ArrivingTurn, ...]
    files: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()
    pages: tuple[PagePlace, ...] = ()
    origin: str = ""
    retold: bool = False

    @property
    def named(self) -> str:
        """What names it: its origin, or the id that it has in a bundle."""
        return self.origin or str(self.row["id"])


class _There(NamedTuple):
    """A conversation that an owner has, and where it came from; "" where that is not known."""

    id: str
    origin: str


class _Likely(NamedTuple):
    """One that arrives, with those that began when it did, and the digests of its turns."""

    id: str
    named: str
    candidates: list[_There]
    prints: frozenset[bytes]


class ArrivingConversations:
    """Takes conversations in for one owner."""

    def __init__(self, database: Database, owner: str) -> None:
        self._database = database
        self._owner = owner

    async def known_file(self, file_id: str, digest: str, going: Collection[str] = ()) -> tuple[bool, bool]:
        """Whether a file's id is taken, and whether it is this owner's, has this content and stays.

        One that only conversations in `going` need does not: it is deleted together with them, maybe before those that
        arrive are stored.
        """
        query = select(files.c.owner_id, files.c.sha256).where(files.c.id == file_id)
        used = select(file_uses.c.conversation_id).where(file_uses.c.file_id == file_id)

        def look(connection: Connection) -> tuple[bool, bool]:
            row = connection.execute(query).first()
            if row is None or (row.owner_id, row.sha256) != (self._owner, digest):
                return row is not None, False
            needing = {str(one) for one in connection.execute(used).scalars()} if going else set[str]()
            return True, not needing or not needing.issubset(going)

        return await self._database.read(look)

    async def there_already(
        self, arriving: Callable[[], Iterable[ArrivingConversation]], going: Collection[str] = ()
    ) -> dict[str, str]:
        """Which conversations this owner has with all of their turns.

        One that came in before is known by its origin, for its id may be new. What says nothing of where it came from
        (it was brought in by an earlier version) is known by who said what when, and is one of those that arrive.

        Args:
            arriving: Gives them one after the other.
            going: Ids of some that count as not there.

        Returns:
            The ids that they are there by, by those that they arrive with.

        Raises:
            StorageError: The database failed.
        """
        columns = (conversations.c.id, conversations.c.created_at, conversations.c.settings)
        query = select(*columns).where(conversations.c.owner_id == self._owner, stays())
        begun: dict[float, list[_There]] = {}
        for row in await self._database.read(lambda c: c.execute(query).all()):
            if row.id not in going:
                there = _There(row.id, str(cast("dict[str, Any]", row.settings or {}).get(ORIGIN) or ""))
                begun.setdefault(_told(row.created_at), []).append(there)

        def alike() -> list[_Likely]:
            return [
                _Likely(
                    one.row["id"],
                    one.named,
                    begun[_told(one.row["created_at"])],
                    frozenset(_print_of(turn.row, retold=one.retold) for turn in one.turns),
                )
                for one in arriving()
                if _told(one.row["created_at"]) in begun
            ]

        found: dict[str, str] = {}
        likely = await asyncio.to_thread(alike) if begun else []
        spoken_for = {one.named for one in likely}  # by those that are known by more than what was said
        for at in range(0, len(likely), _LOT):
            lot = likely[at : at + _LOT]
            prints = await self._prints({there.id for one in lot for there in one.candidates})
            for one in lot:
                whole = [there for there in one.candidates if one.prints <= prints.get(there.id, frozenset())]
                own = next((there for there in whole if one.named in {there.id, there.origin}), None)
                if own is None:
                    own = next((there for there in whole if not there.origin and there.id not in spoken_for), None)
                if own is not None:
                    found[one.id] = own.id
                    spoken_for.add(own.id)
        return found

    async def _prints(self, ids: Collection[str]) -> dict[str, frozenset[bytes]]:
        """The digests of the turns of some conversations, of both kinds, by their ids."""
        columns = (messages.c.conversation_id, messages.c.role, messages.c.created_at, messages.c.parts)
        query = select(*columns).where(messages.c.conversation_id.in_(ids), messages.c.owner_id == self._owner)

        def read(connection: Connection) -> dict[str, frozenset[bytes]]:
            prints: dict[str, set[bytes]] = {one: set() for one in ids}
            for row in connection.execute(query).mappings():
                prints[row["conversation_id"]] |= {_print_of(row, retold=retold) for retold in (False, True)}
            return {one: frozenset(all_of) for one, all_of in prints.items()}

        return await self._database.read(read)

    async def take_in(
        self,
        arriving: Callable[[], Iterable[ArrivingConversation]],
        renamed: Mapping[str, str],
        told: Callable[[int], None] = lambda _: None,
        look: Callable[[], None] = lambda: None,
    ) -> list[str]:
        """Store conversations, all or none; where ids of one are taken, all of its ids are new.

        Many come in several transactions, so that nobody else waits long to write. Until the last of them is there
        they count as temporary ones: not listed, not found, and deleted in a day if the process ends meanwhile.

        Args:
            arriving: Gives them one after the other.
            renamed: New ids of files whose own were taken.
            told: Called with how many are stored.
            look: Called at each turn, in the thread of the database too: what it raises ends the work, and nothing is
                stored. It is not called any more once all of it is.

        Returns:
            The ids that the conversations have now.

        Raises:
            StorageError: The database failed; nothing was stored.
        """
        lots = _lots(arriving())
        lot, following = await asyncio.to_thread(_two, lots)
        if following is None:
            return list(await run_shielded(self._store(lot or [], renamed, look)))  # once stored, all is there
        kept: dict[str, Shown] = {}
        try:
            while lot is not None:
                kept |= await self._store(lot, renamed, look, hidden=True)
                told(len(kept))
                lot, following = following, await asyncio.to_thread(next, lots, None)
            await self._database.write(partial(_show, kept))
        except BaseException:
            await run_to_end(self._take_back(list(kept)))
            raise
        return list(kept)

    async def _store(
        self,
        lot: Sequence[ArrivingConversation],
        renamed: Mapping[str, str],
        look: Callable[[], None],
        *,
        hidden: bool = False,
    ) -> dict[str, Shown]:
        """Store some in one transaction: their ids, each with what its row says at the end."""

        def store(connection: Connection) -> dict[str, Shown]:
            insert_owner(connection, self._owner)
            return _Arrival(connection, self._owner, renamed, look, hidden=hidden).store(lot)

        return await self._database.write(store, durable=not hidden)

    async def _take_back(self, ids: Sequence[str]) -> None:
        for at in range(0, len(ids), _LOT):
            mine = conversations.c.id.in_(ids[at : at + _LOT]), conversations.c.owner_id == self._owner
            query = delete(conversations).where(*mine)
            try:
                await self._database.write(lambda c, query=query: c.execute(query))
            except StorageError as error:
                _LOG.warning("What came in before it failed stays hidden, and is deleted in a day: %s", error)


def _print_of(row: Mapping[Any, Any], *, retold: bool) -> bytes:
    """A digest of who said what when, or only spoke; what files are called by is not in it."""
    said = None if retold else [Message(**part).get_text_content() for part in row["parts"]]
    return hashlib.sha256(json.dumps([row["role"], _told(row["created_at"]), said]).encode()).digest()


def _told(at: float) -> float:
    """A time as exports tell it, to the microsecond."""
    return round(at, 6)


def _lots(arriving: Iterable[ArrivingConversation]) -> Iterator[list[ArrivingConversation]]:
    """Some of them at a time, as many as are stored in a moment."""
    lot: list[ArrivingConversation] = []
    turns = 0
    for one in arriving:
        lot.append(one)
        turns += 1 + len(one.turns) + sum(len(turn.log) // 4 for turn in one.turns)
        if len(lot) >= _LOT or turns >= _TURNS:
            yield lot
            lot, turns = [], 0
    if lot:
        yield lot


def _two(lots: Iterator[list[ArrivingConversation]]) -> tuple[list[ArrivingConversation] | None, ...]:
    return next(lots, None), next(lots, None)


def _show(kept: Mapping[str, Shown], connection: Connection) -> None:
    """Let all that were stored be seen, inside a transaction."""
    rows = [{"this": one, "kept": settings, "used": used} for one, (settings, used) in kept.items()]
    connection.execute(_SHOW, rows)


class _Arrival:
    """Some conversations, inside a transaction.

    Args:
        look: As of `ArrivingConversations.take_in`.
        hidden: Whether they count as temporary ones for now.
    """

    def __init__(
        self,
        connection: Connection,
        owner: str,
        renamed: Mapping[str, str],
        look: Callable[[], None],
        *,
        hidden: bool,
    ) -> None:
        self._connection, self._owner, self._renamed, self._hidden = connection, owner, renamed, hidden
        self._look = look
        self._rows: dict[Table, list[dict[str, Any]]] = {table: [] for table in _TABLES}

    def store(self, lot: Sequence[ArrivingConversation]) -> dict[str, Shown]:
        taken = self._taken(lot)
        stored = dict(self._take(one, taken) for one in lot)
        for table, rows in self._rows.items():
            for alike in _alike(rows):
                for at in range(0, len(alike), _AT_ONCE):
                    self._look()
                    self._connection.execute(insert(table), alike[at : at + _AT_ONCE])
        for one, talk in zip(lot, stored, strict=True):
            if one.files:
                use_files(self._connection, self._owner, talk, [self._renamed.get(name, name) for name in one.files])
        return stored

    def _take(self, arriving: ArrivingConversation, taken: frozenset[str]) -> tuple[str, Shown]:
        """Note the rows of one; its id, and what its row says at the end."""
        own_ids = _ids(arriving)
        is_taken = not taken.isdisjoint(own_ids)
        ids = {one: new_id() if is_taken else one for one in own_ids}
        talk = ids[arriving.row["id"]]
        title = clean(str(arriving.row["title"]))[:LONGEST_TITLE]
        settings: dict[str, Any] = {}
        if arriving.pages:
            places = [replace(one, file=self._renamed.get(one.file, one.file)) for one in arriving.pages]
            settings = {PAGES: [asdict(one) for one in places]}
        if arriving.named != talk:
            settings[ORIGIN] = arriving.named
        values = {**arriving.row, "id": talk, "title": title, "leaf_id": ids.get(arriving.row["leaf_id"] or "")}
        values |= {"settings": settings, "owner_id": self._owner}
        used_at = float(arriving.row["updated_at"])
        if self._hidden:
            values |= {"settings": {**settings, TEMPORARY: True}, "updated_at": time.time()}
        self._rows[conversations].append(values)
        self._rows[message_texts] += title_row(self._owner, talk, title)
        for turn in arriving.turns:
            self._look()
            self._take_turn(turn, talk, ids)
        return talk, (settings, used_at)

    def _take_turn(self, turn: ArrivingTurn, talk: str, ids: Mapping[str, str]) -> None:
        row, own = turn.row, {"owner_id": self._owner, "conversation_id": talk}
        run_id = ids[turn.run["id"]] if turn.run is not None else None
        parts = self._renamed_parts(row["parts"])
        fresh = {"id": ids[row["id"]], "parent_id": ids.get(row["parent_id"] or ""), "run_id": run_id}
        self._rows[messages].append({**row, **fresh, **own, "parts": parts})
        said = [Message(**part) for part in parts]
        self._rows[message_texts] += text_row(self._owner, talk, ids[row["id"]], row["role"], said)
        if turn.run is not None:
            held = {"worker": "", "epoch": 1, "lease_until": 0.0}
            self._rows[runs].append({**turn.run, **own, **held, "id": run_id, "message_id": ids[row["id"]]})
            log = self._renamed_parts(turn.log)
            self._rows[run_events] += ({**one, "run_id": run_id, "owner_id": self._owner} for one in log)
        places = {"owner_id": self._owner, "message_id": ids[row["id"]]}
        self._rows[message_agent_thoughts] += (
            {**one, **places, "id": ids.get(one["id"]) or new_id()} for one in turn.steps
        )

    def _taken(self, lot: Sequence[ArrivingConversation]) -> frozenset[str]:
        """Those of their ids that the tables have."""
        columns = (
            (conversations.c.id, [str(one.row["id"]) for one in lot]),
            (messages.c.id, [str(turn.row["id"]) for one in lot for turn in one.turns]),
            (runs.c.id, [str(turn.run["id"]) for one in lot for turn in one.turns if turn.run is not None]),
            (
                message_agent_thoughts.c.id,
                [str(step["id"]) for one in lot for turn in one.turns for step in turn.steps],
            ),
        )
        return frozenset(
            str(found)
            for column, ids in columns
            for at in range(0, len(ids), _AT_ONCE)
            for found in self._connection.execute(select(column).where(column.in_(ids[at : at + _AT_ONCE]))).scalars()
        )

    def _renamed_parts(self, rows: Sequence[dict[str, Any]]) -> Sequence[dict[str, Any]]:
        """The rows, with the new ids of files in place of those that were taken."""
        if not self._renamed:
            return rows
        text = json.dumps(rows, ensure_ascii=False)
        return json.loads(_NAMED_FILE.sub(lambda found: self._renamed.get(found[0], found[0]), text))


def _ids(arriving: ArrivingConversation) -> list[str]:
    turns = [str(turn.row["id"]) for turn in arriving.turns]
    work = [str(turn.run["id"]) for turn in arriving.turns if turn.run is not None]
    steps = [str(step["id"]) for turn in arriving.turns for step in turn.steps]
    return [str(arriving.row["id"]), *turns, *work, *steps]


def _alike(rows: Sequence[dict[str, Any]]) -> Iterable[list[dict[str, Any]]]:
    """The rows by the columns that they name, in their order: one statement takes those that name the same."""
    found: dict[frozenset[str], list[dict[str, Any]]] = {}
    for one in rows:
        found.setdefault(frozenset(one), []).append(one)
    return found.values()
