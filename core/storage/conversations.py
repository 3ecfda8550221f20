"""Conversations: the tree of their messages, what may run unasked in them, and summaries of their beginnings."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    and_,
    delete,
    exists,
    false,
    func,
    literal,
    select,
    update,
)

from core.errors import NotFoundError
from core.messages.invisible import plain_line
from core.storage.base import (
    ConversationRecord,
    FileRecord,
    StoredMessage,
    Thread,
    busy,
    file_ids,
    is_id,
    new_id,
    stored_message,
)
from core.storage.database import first_of, send
from core.storage.dialects import begins, upsert
from core.storage.message_texts import keep_title, kept_text, text_row, title_row
from core.storage.statements import (
    ADD_CONVERSATION,
    ADD_MESSAGE,
    ADD_OWNER,
    ADD_WORDS,
    ALLOWED_TOOLS,
    CONVERSATION,
    CONVERSATION_HELD,
    CONVERSATION_ID,
    CONVERSATION_SETTINGS,
    FILES_OF_OWNER,
    MESSAGE,
    OWNER_HELD,
    SHOW_LEAF,
    TREE,
    TURNS,
    TURNS_AS_TEXT,
)
from core.storage.tables import (
    allowances,
    api_files,
    conversations,
    documents,
    file_uses,
    files,
    messages,
    runs,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from core.messages.message import Message
    from core.storage.base import Role, RunStatus
    from core.storage.database import Database


def is_unneeded(file_id: ColumnElement[str]) -> ColumnElement[bool]:
    """Whether no conversation, named library or program needs a file; looked up, for there are very many."""
    shelved = (documents.c.file_id == file_id) & documents.c.collection_id.is_not(None)
    used, given = file_uses.c.file_id == file_id, api_files.c.file_id == file_id
    return and_(*(~exists().where(one) for one in (used, shelved, given)))


def is_needed(connection: Connection, file_id: str) -> bool:
    """Whether anything needs this file, inside a transaction."""
    return not connection.execute(select(is_unneeded(literal(file_id)))).scalar_one()


def freed_files(connection: Connection, candidates: Sequence[str]) -> list[FileRecord]:
    """Delete the rows of those files that nothing needs any more, inside a transaction, and return them."""
    columns = [files.c[name] for name in FileRecord.__slots__]
    query = select(*columns).where(files.c.id.in_(candidates), is_unneeded(files.c.id))
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


def newest_leaf(connection: Connection, conversation_id: str, message_id: str) -> str:
    """The end of the newest branch that goes through a turn; the turn itself where nothing follows it."""
    under: defaultdict[str | None, list[str]] = defaultdict(list)
    order: dict[str, int] = {}
    for place, row in enumerate(tree_of(connection, conversation_id)):
        under[row.parent_id].append(row.id)
        order[row.id] = place
    open_, ends = [message_id], list[str]()
    while open_:
        turn = open_.pop()
        open_ += under[turn]
        if not under[turn]:
            ends.append(turn)
    return max(ends, key=lambda end: order.get(end, -1))


def tree_of(connection: Connection, conversation_id: str) -> Sequence[Row[Any, Any, Any]]:
    """The `id`, `parent_id` and `role` of each turn of a conversation, in the order in which they came."""
    return connection.execute(TREE, {"conversation": conversation_id}).all()


TEMPORARY: Final = "temporary"
"""In a conversation's settings, true: it is neither listed nor found, and goes by itself."""


def stays() -> ColumnElement[bool]:
    """Whether a conversation is no temporary one; true as well where there is no conversation."""
    return func.coalesce(conversations.c.settings[TEMPORARY].as_boolean(), false()) == false()


class AllConversations:
    """The conversations of all owners: for whoever deletes those that go by themselves."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def temporary(self, *, before: float) -> list[tuple[str, str]]:
        """Temporary ones, each with its owner, in which nothing was said since `before` (Unix seconds)."""
        query = select(conversations.c.owner_id, conversations.c.id)
        query = query.where(~stays(), conversations.c.updated_at < before).order_by(conversations.c.updated_at)
        rows = await self._database.read(lambda c: c.execute(query).all())
        return [(str(row.owner_id), str(row.id)) for row in rows]


class ConversationStore:
    """The conversations of one owner. What is somebody else's does not exist."""

    def __init__(self, database: Database, owner: str) -> None:
        self._database = database
        self._owner = owner

    async def ensure_owner(self) -> None:
        """Make the owner known, if this is the first time."""
        await self._database.write(lambda c: insert_owner(c, self._owner))

    async def list(self, limit: int | None = None, *, temporary: bool = False) -> list[ConversationRecord]:
        """The owner's conversations, the one used last first; at most `limit` of them.

        Args:
            temporary: Those that go by themselves as well.
        """
        query = select(conversations).where(conversations.c.owner_id == self._owner)
        query = query if temporary else query.where(stays())
        query = query.order_by(conversations.c.updated_at.desc(), conversations.c.id).limit(limit)
        rows = await self._database.read(lambda c: c.execute(query).all())
        return [conversation_record(row) for row in rows]

    async def create(
        self, title: str = "", *, wanted: str = "", settings: Mapping[str, Any] | None = None
    ) -> ConversationRecord:
        """A new, empty conversation; the owner need not be known yet.

        Args:
            wanted: The id it shall have, in the form that `new_id` gives; one that is taken, or none, is not used.
            settings: What is chosen for it from the start.
        """
        now = time.time()
        made: list[str] = []

        def begin(connection: Connection) -> ConversationRecord:
            insert_owner(connection, self._owner)
            is_free = is_id(wanted) and connection.execute(CONVERSATION_ID, {"conversation": wanted}).first() is None
            fresh = ConversationRecord(wanted if is_free else new_id(), self._owner, clean(title), now, now)
            values = {name: getattr(fresh, name) for name in ConversationRecord.__slots__}
            connection.execute(ADD_CONVERSATION, {**values, "settings": dict(settings or {})})
            for row in title_row(self._owner, fresh.id, fresh.title):
                connection.execute(ADD_WORDS, row)
            made.append(fresh.id)
            return fresh

        def undo(connection: Connection) -> None:
            untouched = conversations.c.id.in_(made) & conversations.c.leaf_id.is_(None)
            connection.execute(delete(conversations).where(untouched))

        # Nothing is lost with an empty one; the first question is durable, and so is then all that was written before.
        try:
            return await self._database.write(begin, durable=False, holds=True)
        except asyncio.CancelledError:  # stored, perhaps, but nobody knows its id
            await self._database.write(undo, durable=False)
            raise

    async def get(self, conversation_id: str) -> ConversationRecord:
        """One conversation.

        Raises:
            NotFoundError: There is none such of this owner.
        """
        return await self._database.read(lambda c: conversation_of(c, self._owner, conversation_id))

    async def rename(self, conversation_id: str, title: str) -> None:
        """Give it another title. Raises NotFoundError."""
        await self._change(conversation_id, title=plain_line(clean(title)), titled_by="person")

    async def name(self, conversation_id: str, title: str, *, instead_of: str | None = None) -> bool:
        """Give it the title that a model made; returns false where a person has named it. Raises NotFoundError.

        Args:
            instead_of: The title that it had when the model was asked: where it has another by now, it keeps that.
        """

        def change(connection: Connection) -> bool:
            known = held_conversation(connection, self._owner, conversation_id)
            if known.titled_by == "person" or instead_of not in {None, known.title}:
                return False
            values = {"title": plain_line(clean(title)), "titled_by": "model"}
            connection.execute(update(conversations).where(_is(conversation_id)).values(**values))
            keep_title(connection, conversation_id)
            return True

        return await self._database.write(change, holds=True)

    async def pin(self, conversation_ids: Sequence[str], *, on: bool = True) -> None:
        """Keep conversations at the top of the history, or no longer; ids of others are passed over."""
        await self._change_all(conversation_ids, pinned_at=time.time() if on else None)

    async def archive(self, conversation_ids: Sequence[str], *, on: bool = True) -> None:
        """Take conversations out of the history, or bring them back; ids of others are passed over."""
        await self._change_all(conversation_ids, archived_at=time.time() if on else None)

    async def settings(self, conversation_id: str) -> dict[str, Any]:
        """What was chosen for this conversation alone. Raises NotFoundError."""
        return (await self.with_settings(conversation_id))[1]

    async def with_settings(self, conversation_id: str) -> tuple[ConversationRecord, dict[str, Any]]:
        """One conversation, and what was chosen for it alone. Raises NotFoundError."""

        def load(connection: Connection) -> tuple[ConversationRecord, dict[str, Any]]:
            row = _row_of(connection, self._owner, conversation_id)
            return conversation_record(row), dict(row.settings)

        return await self._database.read(load)

    async def configure(
        self, conversation_id: str, change: Callable[[dict[str, Any]], dict[str, Any]]
    ) -> dict[str, Any]:
        """Change what is chosen for this conversation, read and written in one transaction. Raises NotFoundError."""

        def configure(connection: Connection) -> dict[str, Any]:
            held_conversation(connection, self._owner, conversation_id)
            query = select(conversations.c.settings).where(_is(conversation_id))
            values = change(dict(connection.execute(query).scalar() or {}))
            connection.execute(update(conversations).where(_is(conversation_id)).values(settings=values))
            return values

        return await self._database.write(configure, holds=True)

    async def set_leaf(self, conversation_id: str, leaf_id: str | None) -> None:
        """Choose the branch that is shown, by its newest turn. Raises NotFoundError."""

        def choose(connection: Connection) -> None:
            if leaf_id is not None:
                message_of(connection, self._owner, leaf_id, conversation_id)
            held_conversation(connection, self._owner, conversation_id)
            connection.execute(update(conversations).where(_is(conversation_id)).values(leaf_id=leaf_id))

        await self._database.write(choose, holds=True)

    async def turn_to(self, conversation_id: str, message_id: str) -> None:
        """Show another version of a turn, with the newest branch under it.

        Raises:
            ConflictError: key `busy`: a reply is being written, and the branch it is on is shown.
            NotFoundError: The conversation or message is not the owner's.
        """

        def turn(connection: Connection) -> None:
            held_conversation(connection, self._owner, conversation_id)
            message_of(connection, self._owner, message_id, conversation_id)
            live = select(runs.c.id).where(runs.c.conversation_id == conversation_id, runs.c.status == "running")
            if connection.execute(live).first() is not None:
                raise busy()
            leaf = newest_leaf(connection, conversation_id, message_id)
            connection.execute(update(conversations).where(_is(conversation_id)).values(leaf_id=leaf))

        await self._database.write(turn, holds=True)

    async def delete(self, conversation_id: str) -> tuple[list[FileRecord], list[str]]:
        """Delete it with its messages, runs, events and documents.

        Returns:
            The files that nothing needs any more (their rows are gone, their bytes are the caller's to delete),
            and the library ids of documents that no conversation has any more.

        Raises:
            NotFoundError: There is none such of this owner.
        """
        return await self._database.write(lambda c: _delete(c, self._owner, conversation_id))

    async def add_message(
        self,
        conversation_id: str,
        role: Role,
        parts: Sequence[Message],
        parent_id: str | None,
        *,
        run_id: str | None = None,
        message_id: str | None = None,
    ) -> StoredMessage:
        """Put a finished turn under `parent_id` and make it the leaf. Raises NotFoundError."""
        fresh = StoredMessage(
            message_id or new_id(), conversation_id, parent_id, role, tuple(parts), run_id, "complete", time.time()
        )
        await self._database.write(lambda c: insert_message(c, self._owner, fresh))
        return fresh

    async def update_message(self, message_id: str, parts: Sequence[Message], status: RunStatus) -> None:
        """Replace what a turn says, and its status. Raises NotFoundError."""

        def change(connection: Connection) -> None:
            before = message_of(connection, self._owner, message_id)
            values = {"parts": dumped(parts), "status": status}
            connection.execute(update(messages).where(messages.c.id == message_id).values(values))
            send(connection, *kept_text(self._owner, before.conversation_id, message_id, before.role, parts))

        await self._database.write(change)

    async def message(self, message_id: str) -> StoredMessage:
        """One turn. Raises NotFoundError."""
        return await self._database.read(lambda c: message_of(c, self._owner, message_id))

    async def thread(self, conversation_id: str, leaf_id: str | None = None) -> list[StoredMessage]:
        """The turns from the root to `leaf_id`, or to the leaf that is shown. Raises NotFoundError."""
        return await self._database.read(lambda c: thread_of(c, self._owner, conversation_id, leaf_id)[1])

    async def siblings(self, message_id: str) -> list[StoredMessage]:
        """The turns under the same parent with the same role, the oldest first, itself included."""

        def beside(connection: Connection) -> list[StoredMessage]:
            one = message_of(connection, self._owner, message_id)
            same = (messages.c.conversation_id == one.conversation_id) & (messages.c.role == one.role)
            query = select(messages).where(same & messages.c.parent_id.is_not_distinct_from(one.parent_id))
            rows = connection.execute(query.order_by(messages.c.created_at, messages.c.id)).all()
            return [stored(row) for row in rows]

        return await self._database.read(beside)

    async def _change(self, conversation_id: str, **values: Any) -> None:
        def change(connection: Connection) -> None:
            held_conversation(connection, self._owner, conversation_id)
            connection.execute(update(conversations).where(_is(conversation_id)).values(**values))
            if "title" in values:
                keep_title(connection, conversation_id)

        await self._database.write(change, holds=True)

    async def _change_all(self, conversation_ids: Sequence[str], **values: Any) -> None:
        these = conversations.c.id.in_(conversation_ids) & (conversations.c.owner_id == self._owner)
        await self._database.write(lambda c: c.execute(update(conversations).where(these).values(**values)))


def insert_owner(connection: Connection, owner: str) -> None:
    """Make the owner known inside a transaction, if this is the first time."""
    connection.execute(ADD_OWNER, {"id": owner, "created_at": time.time()})


def hold_owner(connection: Connection, owner: str) -> None:
    """Have others who hold the owner wait until the transaction ends; the owner is known from now on."""
    if connection.execute(OWNER_HELD, {"owner": owner}).first() is None:
        insert_owner(connection, owner)
        connection.execute(OWNER_HELD, {"owner": owner})


def conversation_of(connection: Connection, owner: str, conversation_id: str) -> ConversationRecord:
    """The owner's conversation, inside a transaction. Raises NotFoundError."""
    return conversation_record(_row_of(connection, owner, conversation_id))


def held_conversation(connection: Connection, owner: str, conversation_id: str) -> ConversationRecord:
    """The same, which nobody else changes until the transaction ends. Raises NotFoundError."""
    return conversation_record(_row_of(connection, owner, conversation_id, CONVERSATION_HELD))


def _row_of(
    connection: Connection, owner: str, conversation_id: str, query: Select[tuple[Any, ...]] = CONVERSATION
) -> Row[Any]:
    row = first_of(connection, query, {"conversation": conversation_id, "owner": owner})
    if row is None:
        raise _missing("conversation")
    return row


def settings_of(connection: Connection, conversation_id: str) -> dict[str, Any]:
    """What was chosen for a conversation alone, inside a transaction."""
    return dict(connection.execute(CONVERSATION_SETTINGS, {"conversation": conversation_id}).scalar() or {})


def message_of(
    connection: Connection, owner: str, message_id: str, conversation_id: str | None = None
) -> StoredMessage:
    """The owner's message (of this conversation), inside a transaction. Raises NotFoundError."""
    row = connection.execute(MESSAGE, {"message": message_id, "owner": owner}).first()
    if row is None or conversation_id not in {None, row.conversation_id}:
        raise _missing("message")
    return stored(row)


def thread_of(
    connection: Connection, owner: str, conversation_id: str, leaf_id: str | None = None
) -> tuple[ConversationRecord, list[StoredMessage]]:
    """The owner's conversation and its turns to `leaf_id`, inside a transaction. Raises NotFoundError."""
    conversation = conversation_of(connection, owner, conversation_id)
    ordered = connection.execute(TURNS, {"conversation": conversation_id}).all()
    return conversation, [stored(row) for row in _path(ordered, leaf_id, conversation.leaf_id)]


def shown_thread(
    connection: Connection, owner: str, conversation_id: str
) -> tuple[ConversationRecord, Thread, dict[str, tuple[str, ...]]]:
    """The owner's conversation, its turns, and the versions of those that have several, inside a transaction.

    Raises:
        NotFoundError: The conversation is not the owner's.
    """
    conversation = conversation_of(connection, owner, conversation_id)
    ordered = connection.execute(TURNS_AS_TEXT, {"conversation": conversation_id}).all()
    thread = Thread(_path(ordered, None, conversation.leaf_id))
    return conversation, thread, thread.versions(ordered)


def _path(ordered: Sequence[Row[Any]], wanted: str | None, shown: str | None) -> list[Row[Any]]:
    """The rows from the root to the turn that is wanted, else to the one that is shown, else to the newest."""
    rows = {str(row.id): row for row in ordered}
    if wanted is not None and wanted not in rows:
        raise _missing("message")
    row = rows.get(wanted or shown or "") or (ordered[-1] if ordered else None)
    path: list[Row[Any]] = []
    while row is not None:
        path.append(row)
        row = rows.get(str(row.parent_id))
    return path[::-1]


def insert_message(
    connection: Connection, owner: str, fresh: StoredMessage, *below: StoredMessage
) -> ConversationRecord:
    """Store a turn inside a transaction, make it the leaf, and note the files it needs.

    Nobody else changes the conversation until the transaction ends.

    Args:
        below: Turns of the same conversation that come under it, each under the one before; the last is the leaf.

    Returns:
        The conversation as it was.

    Raises:
        NotFoundError: The conversation, or the turn that this one is to be under, is not there.
    """
    conversation = held_conversation(connection, owner, fresh.conversation_id)
    if fresh.parent_id is not None:
        message_of(connection, owner, fresh.parent_id, fresh.conversation_id)
    for one in (fresh, *below):
        values = {name: getattr(one, name) for name in StoredMessage.__slots__}
        send(connection, ADD_MESSAGE, {**values, "owner_id": owner, "parts": dumped(one.parts)})
        send(connection, ADD_WORDS, *text_row(owner, one.conversation_id, one.id, one.role, one.parts))
        use_files(connection, owner, one.conversation_id, file_ids(one.parts))
    leaf = below[-1] if below else fresh
    send(connection, SHOW_LEAF, {"conversation": leaf.conversation_id, "leaf": leaf.id, "time": leaf.created_at})
    return conversation


def use_files(connection: Connection, owner: str, conversation_id: str, wanted: Sequence[str]) -> None:
    """Note that a conversation needs files, inside a transaction; ids that are not the owner's are passed over."""
    known = connection.execute(FILES_OF_OWNER, {"owner": owner, "wanted": list(wanted)}).all() if wanted else ()
    for (file_id,) in known:
        use = {"file_id": file_id, "conversation_id": conversation_id, "owner_id": owner}
        connection.execute(upsert(file_uses).values(use).on_conflict_do_nothing())


def dumped(parts: Sequence[Message]) -> list[dict[str, Any]]:
    """Messages as JSON values; what a tool or an agent put into `extra` and is none becomes text."""
    return [part.model_dump(mode="json", fallback=str) for part in parts]


def stored(row: Row[Any]) -> StoredMessage:
    """A row of the table `messages`."""
    return stored_message(row, row.parts)


def clean(text: str) -> str:
    """Text that a file can hold: halves of surrogate pairs become question marks."""
    return text.encode(errors="replace").decode()


def _delete(connection: Connection, owner: str, conversation_id: str) -> tuple[list[FileRecord], list[str]]:
    conversation_of(connection, owner, conversation_id)
    used = select(file_uses.c.file_id).where(file_uses.c.conversation_id == conversation_id)
    needed = [str(file_id) for (file_id,) in connection.execute(used).all()]
    read = library_ids(connection, documents.c.conversation_id == conversation_id)
    connection.execute(delete(conversations).where(_is(conversation_id)))
    return freed_files(connection, needed), unneeded(connection, owner, read)


def _is(conversation_id: str) -> Any:
    return conversations.c.id == conversation_id


def conversation_record(row: Row[Any]) -> ConversationRecord:
    """A row of the table `conversations`."""
    return ConversationRecord(**{name: getattr(row, name) for name in ConversationRecord.__slots__})


def _missing(kind: str) -> NotFoundError:
    return NotFoundError(f"There is no such {kind}.", kind=kind)


class Allowances:
    """Tools by their full names, for one conversation of an owner each. What is somebody else's does not exist."""

    def __init__(self, database: Database, owner: str) -> None:
        self._database = database
        self._owner = owner

    async def list(self, conversation_id: str) -> list[str]:
        """The conversation's, by name. Raises NotFoundError."""

        def load(connection: Connection) -> list[str]:
            conversation_of(connection, self._owner, conversation_id)
            return [
                str(tool) for tool in connection.execute(ALLOWED_TOOLS, {"conversation": conversation_id}).scalars()
            ]

        return await self._database.read(load)

    async def add(self, conversation_id: str, tool: str) -> None:
        """Let a tool run unasked in the conversation from now on. Raises NotFoundError."""

        def keep(connection: Connection) -> None:
            conversation_of(connection, self._owner, conversation_id)
            row = {"conversation_id": conversation_id, "tool": tool, "owner_id": self._owner}
            connection.execute(upsert(allowances).values(row).on_conflict_do_nothing())

        await self._database.write(keep)

    async def remove(self, conversation_id: str, tool: str) -> None:
        """Ask for the tool again. Raises NotFoundError."""

        def forget(connection: Connection) -> None:
            conversation_of(connection, self._owner, conversation_id)
            this = (allowances.c.conversation_id == conversation_id) & (allowances.c.tool == tool)
            connection.execute(delete(allowances).where(this))

        await self._database.write(forget)

    async def forget(self, beginning: str) -> None:
        """Ask again for all tools whose names begin so, in all conversations of the owner."""
        these = (allowances.c.owner_id == self._owner) & begins(allowances.c.tool, beginning)

        def forget(connection: Connection) -> None:
            connection.execute(delete(allowances).where(these))

        await self._database.write(forget)
