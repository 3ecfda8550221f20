"""All of a conversation, in every branch: first what is in it, then its turns, a few at a time."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, cast

from sqlalchemy import Connection, Table, insert, select

from core.storage.base import EventRow, Lease, busy, new_id
from core.storage.conversations import conversation_of, conversation_record, stored, thread_of, tree_of
from core.storage.database import send
from core.storage.dialects import begins
from core.storage.documents import documents_where
from core.storage.files import file_record
from core.storage.kept_pages import kept_pages
from core.storage.message_texts import keep_title, kept_text
from core.storage.runs import WITH_LEASES, lease_of, run_record
from core.storage.second_replies import COMPARED
from core.storage.tables import (
    conversation_libraries,
    conversations,
    documents,
    file_uses,
    files,
    message_agent_thoughts,
    messages,
    run_events,
    runs,
)
from core.storage.thoughts import thoughts_where

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import ColumnElement, Select

    from core.storage.base import AgentThought, ConversationRecord, DocumentRecord, FileRecord, RunRecord, StoredMessage
    from core.storage.database import Database
    from core.storage.kept_pages import PagePlace

_NUMBERED = re.compile(r"(?<=\S) \([1-9][0-9]{0,2}\)$")  # a year is none


@dataclass(frozen=True, slots=True)
class Beside:
    """A second reply that is shown beside the first one, until one of them is chosen.

    Args:
        question: What both answer.
        first: The reply that is on the path.
        second: The other one.
        place: The conversation that the second one is in; one of its own while it is being written.
    """

    question: str
    first: str
    second: str
    place: str


@dataclass(frozen=True, slots=True)
class Outline:
    """What is in a conversation.

    Args:
        conversation: Itself.
        turns: The ids of all its turns, in the order in which they came.
        downward: The same, none before the one that it follows: a clock that was set back gives it an earlier time.
        path: The ids of those that are shown, from root to leaf.
        files: Every file that it needs, those of its documents included.
        pages: Pictures of pages that came along without their documents.
        beside: Two replies that are shown side by side.
    """

    conversation: ConversationRecord
    turns: tuple[str, ...]
    downward: tuple[str, ...]
    path: tuple[str, ...]
    files: tuple[FileRecord, ...]
    documents: tuple[DocumentRecord, ...]
    pages: tuple[PagePlace, ...] = ()
    beside: Beside | None = None

    @property
    def in_sight(self) -> tuple[str, ...]:
        """The ids of the turns that are shown, a second reply behind the first."""
        if self.beside is None:
            return self.path
        after = self.path.index(self.beside.first) + 1
        return (*self.path[:after], self.beside.second, *self.path[after:])

    @property
    def others(self) -> int:
        """How many turns are out of sight."""
        return len(set(self.turns) - set(self.in_sight))


@dataclass(frozen=True, slots=True)
class WholeTurn:
    """A turn with what belongs to it.

    Args:
        message: Itself.
        run: The work that it came of; a question has none.
        lease: Who does this work, or did.
        thoughts: The steps of a reply that is over.
        within: What agents said and did that were called in it, as rows of the kind `within`.
        checked: What its passages say to its sentences, as rows of the kinds
            `claims_checked`, `claims_judged` and `more_said`.
        noted: What its reader made of it, as rows of the kinds `rated` and `edited`.
    """

    message: StoredMessage
    run: RunRecord | None = None
    lease: Lease | None = None
    thoughts: tuple[AgentThought, ...] = ()
    within: tuple[EventRow, ...] = ()
    checked: tuple[EventRow, ...] = ()
    noted: tuple[EventRow, ...] = ()


class WholeConversations:
    """The conversations of one owner, to be handed out. What is somebody else's does not exist."""

    def __init__(self, database: Database, owner: str) -> None:
        self._database = database
        self._owner = owner

    async def outline(self, conversation_id: str) -> Outline:
        """What is in a conversation. Raises NotFoundError."""

        def load(connection: Connection) -> Outline:
            conversation = conversation_of(connection, self._owner, conversation_id)
            tree = {str(row.id): row.parent_id for row in tree_of(connection, conversation_id)}
            used = select(file_uses.c.file_id).where(file_uses.c.conversation_id == conversation_id)
            needed = connection.execute(select(files).where(files.c.id.in_(used)).order_by(files.c.created_at)).all()
            own = documents_where(connection, documents.c.conversation_id == conversation_id)
            path = _path(tree, conversation.leaf_id)
            query = select(conversations.c.settings).where(conversations.c.id == conversation_id)
            settings = dict[str, Any](connection.execute(query).scalar() or {})
            pages = tuple(kept_pages(settings).values())
            found = tuple(map(file_record, needed))
            beside = self._beside(connection, conversation_id, settings.get(COMPARED), tree, path)
            return Outline(conversation, tuple(tree), _downward(tree), path, found, tuple(own), pages, beside)

        return await self._database.read(load)

    def _beside(
        self,
        connection: Connection,
        conversation_id: str,
        compared: Any,
        tree: Mapping[str, str | None],
        path: tuple[str, ...],
    ) -> Beside | None:
        """The replies that are shown side by side, by what the conversation's settings note of them."""
        noted = cast("dict[str, Any]", compared) if isinstance(compared, dict) else {}
        question, second, place = (str(noted.get(name) or "") for name in ("question", "reply", "place"))
        first = next((one for one in path if tree[one] == question), None)
        if first is None:
            return None
        if second:
            shown = tree.get(second) == question and second not in path
            return Beside(question, first, second, conversation_id) if shown else None
        mine = (conversations.c.id == place) & (conversations.c.owner_id == self._owner)
        there = select(messages.c.id).join(conversations, conversations.c.id == messages.c.conversation_id).where(mine)
        written = connection.execute(there).scalar()
        return Beside(question, first, str(written), place) if written is not None else None

    async def turns(self, conversation_id: str, ids: Sequence[str]) -> list[WholeTurn]:
        """Some turns, in the order of `ids`; one that is gone is left out. Raises NotFoundError."""

        def load(connection: Connection) -> list[WholeTurn]:
            conversation_of(connection, self._owner, conversation_id)
            wanted = (messages.c.conversation_id == conversation_id) & messages.c.id.in_(ids)
            found = {str(row.id): stored(row) for row in connection.execute(select(messages).where(wanted)).all()}
            work = connection.execute(WITH_LEASES.where(runs.c.message_id.in_(list(found)))).all()
            made = {str(row.id): run_record(row) for row in work}
            leases = {str(row.id): lease_of(row) for row in work}
            steps: dict[str, list[AgentThought]] = {}
            for step in thoughts_where(connection, list(found)):
                steps.setdefault(step.message_id, []).append(step)
            inside = _rows(connection, list(made), "within")
            checked = _rows(connection, list(made), "claims_checked", "claims_judged", "more_said")
            noted = _rows(connection, list(made), "rated", "edited")
            return [
                WholeTurn(
                    found[one],
                    made.get(found[one].run_id or ""),
                    leases.get(found[one].run_id or ""),
                    tuple(steps.get(one, ())),
                    tuple(inside.get(found[one].run_id or "", ())),
                    tuple(checked.get(found[one].run_id or "", ())),
                    tuple(noted.get(found[one].run_id or "", ())),
                )
                for one in ids
                if one in found
            ]

        return await self._database.read(load)

    async def fork(self, conversation_id: str, message_id: str) -> ConversationRecord:
        """A conversation of its own that begins with all turns up to one of them, as they are.

        Files and what was read of documents are shared, events and steps of replies are copied; a document that is
        still being read is left out of the copy's search until somebody reads it there. Its title has a number, so that
        the two can be told apart.

        Raises:
            ConflictError: key `busy`: the turn is a reply that is being written.
            NotFoundError: There is no such turn in this conversation.
        """

        def copy(connection: Connection) -> ConversationRecord:
            source, thread = thread_of(connection, self._owner, conversation_id, message_id)
            if any(turn.status == "running" for turn in thread):
                raise busy()
            fresh, now = new_id(), time.time()
            ids = {turn.id: new_id() for turn in thread}
            works = {turn.run_id: new_id() for turn in thread if turn.run_id is not None}
            copying = _Copying(connection, self._owner, conversation_id, fresh)
            title = _next_title(connection, self._owner, source.title)
            names = {"title": title, "titled_by": source.titled_by, "folder_id": source.folder_id}
            query = select(conversations.c.settings).where(conversations.c.id == source.id)
            kept = dict[str, Any](connection.execute(query).scalar() or {})
            record = {"id": fresh, "owner_id": self._owner, "created_at": now, "updated_at": now, **names}
            chosen = {name: value for name, value in kept.items() if name != COMPARED}
            inserted = insert(conversations).values(**record, leaf_id=ids[message_id], settings=chosen)
            connection.execute(inserted)
            keep_title(connection, fresh)
            for turn in thread:
                parent = ids.get(turn.parent_id or "")
                changed = {"id": ids[turn.id], "parent_id": parent, "run_id": works.get(turn.run_id or "")}
                copying.rows(messages, messages.c.id == turn.id, {"conversation_id": fresh, **changed})
                send(connection, *kept_text(self._owner, fresh, ids[turn.id], turn.role, turn.parts))
                steps = message_agent_thoughts.c.message_id == turn.id
                copying.rows(message_agent_thoughts, steps, {"message_id": ids[turn.id]}, fresh_id=True)
                if turn.run_id is not None:
                    work = {"id": works[turn.run_id], "conversation_id": fresh, "message_id": ids[turn.id]}
                    copying.rows(runs, runs.c.id == turn.run_id, work)
                    copying.rows(run_events, run_events.c.run_id == turn.run_id, {"run_id": works[turn.run_id]})
            copying.surroundings()
            return conversation_record(connection.execute(_one(conversations, fresh)).one())

        return await self._database.write(copy)


def _next_title(connection: Connection, owner: str, title: str) -> str:
    """The title with the first number from 2 on that none of the owner's conversations of this title has."""
    if not title.strip():
        return title
    plain = _NUMBERED.sub("", title)
    same = (conversations.c.owner_id == owner, begins(conversations.c.title, f"{plain} ("))
    taken = set(connection.scalars(select(conversations.c.title).where(*same)))
    return next(name for number in count(2) if (name := f"{plain} ({number})") not in taken)


@dataclass(frozen=True, slots=True)
class _Copying:
    """Rows of a conversation on their way into another one, inside a transaction."""

    connection: Connection
    owner: str
    source: str
    target: str

    def rows(
        self, table: Table, these: ColumnElement[bool], changed: Mapping[str, Any], *, fresh_id: bool = False
    ) -> None:
        """Insert rows again with other values in some columns."""
        for row in self.connection.execute(select(table).where(these, table.c.owner_id == self.owner)).mappings().all():
            new = {"id": new_id()} if fresh_id else {}
            self.connection.execute(insert(table).values({**row, **new, **changed}))

    def surroundings(self) -> None:
        """The files it needs, the libraries it uses, and its documents."""
        to = {"conversation_id": self.target}
        self.rows(file_uses, file_uses.c.conversation_id == self.source, to)
        self.rows(conversation_libraries, conversation_libraries.c.conversation_id == self.source, to)
        mine = documents.c.conversation_id == self.source
        self.rows(documents, mine & (documents.c.status != "reading"), to, fresh_id=True)
        # Another conversation's reading tells nobody here when it ends.
        unread = {"status": "cancelled", "library_id": None, "facts": None}
        self.rows(documents, mine & (documents.c.status == "reading"), {**to, **unread}, fresh_id=True)


def _one(table: Table, row_id: str) -> Select[Any]:
    return select(table).where(table.c.id == row_id)


def _rows(connection: Connection, run_ids: Sequence[str], *kinds: str) -> dict[str, list[EventRow]]:
    wanted = (run_events.c.run_id.in_(run_ids)) & run_events.c.kind.in_(kinds)
    rows = connection.execute(select(run_events).where(wanted).order_by(run_events.c.run_id, run_events.c.seq)).all()
    found: dict[str, list[EventRow]] = {}
    for row in rows:
        found.setdefault(str(row.run_id), []).append(EventRow(row.seq, row.at, row.kind, row.payload))
    return found


def _downward(tree: Mapping[str, str | None]) -> tuple[str, ...]:
    """The ids in their order, but none before the one that it follows."""
    ordered: dict[str, None] = {}
    for one in tree:
        above: dict[str, None] = {}
        at: str | None = one
        while at is not None and at in tree and at not in ordered and at not in above:
            above[at] = None
            at = tree[at]
        ordered.update(dict.fromkeys(reversed(above)))
    return tuple(ordered)


def _path(tree: dict[str, str | None], leaf_id: str | None) -> tuple[str, ...]:
    """The turns from the root to the leaf that is shown; to the newest where that is gone."""
    turn = leaf_id if leaf_id in tree else next(reversed(tree), None)
    path: dict[str, None] = {}
    while turn is not None and turn in tree and turn not in path:  # which no turn is, unless the file is damaged
        path[turn] = None
        turn = tree[turn]
    return tuple(reversed(path))
