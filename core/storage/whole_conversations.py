"""All of a conversation, in every branch: first what is in it, then its turns, a few at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import Connection, select

from core.storage.base import EventRow, Lease
from core.storage.conversations import conversation_of, stored, tree_of
from core.storage.documents import documents_where
from core.storage.files import file_record
from core.storage.runs import run_record, thoughts_where
from core.storage.tables import documents, file_uses, files, messages, run_events, runs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.storage.base import AgentThought, ConversationRecord, DocumentRecord, FileRecord, RunRecord, StoredMessage
    from core.storage.database import Database


@dataclass(frozen=True, slots=True)
class Outline:
    """What is in a conversation.

    Args:
        conversation: Itself.
        turns: The ids of all its turns, in the order in which they came.
        path: The ids of those that are shown, from root to leaf.
        files: Every file that it needs, those of its documents included.
        documents: Its own documents.
    """

    conversation: ConversationRecord
    turns: tuple[str, ...]
    path: tuple[str, ...]
    files: tuple[FileRecord, ...]
    documents: tuple[DocumentRecord, ...]


@dataclass(frozen=True, slots=True)
class WholeTurn:
    """A turn with what belongs to it.

    Args:
        message: Itself.
        run: The work that it came of; a question has none.
        lease: Who does this work, or did.
        thoughts: The steps of a reply that is over.
        within: What agents said and did that were called in it, as rows of the kind `within`.
        checked: What its passages say to its sentences, as rows of the kind `claims_checked`.
    """

    message: StoredMessage
    run: RunRecord | None = None
    lease: Lease | None = None
    thoughts: tuple[AgentThought, ...] = ()
    within: tuple[EventRow, ...] = ()
    checked: tuple[EventRow, ...] = ()


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
            return Outline(conversation, tuple(tree), path, tuple(map(file_record, needed)), tuple(own))

        return await self._database.read(load)

    async def turns(self, conversation_id: str, ids: Sequence[str]) -> list[WholeTurn]:
        """Some turns, in the order of `ids`; one that is gone is left out. Raises NotFoundError."""

        def load(connection: Connection) -> list[WholeTurn]:
            conversation_of(connection, self._owner, conversation_id)
            wanted = (messages.c.conversation_id == conversation_id) & messages.c.id.in_(ids)
            found = {str(row.id): stored(row) for row in connection.execute(select(messages).where(wanted)).all()}
            work = connection.execute(select(runs).where(runs.c.message_id.in_(list(found)))).all()
            made = {str(row.id): run_record(row) for row in work}
            leases = {str(row.id): Lease(row.worker, row.lease_until) for row in work}
            steps: dict[str, list[AgentThought]] = {}
            for step in thoughts_where(connection, list(found)):
                steps.setdefault(step.message_id, []).append(step)
            inside = _rows(connection, list(made), "within")
            checked = _rows(connection, list(made), "claims_checked")
            return [
                WholeTurn(
                    found[one],
                    made.get(found[one].run_id or ""),
                    leases.get(found[one].run_id or ""),
                    tuple(steps.get(one, ())),
                    tuple(inside.get(found[one].run_id or "", ())),
                    tuple(checked.get(found[one].run_id or "", ())),
                )
                for one in ids
                if one in found
            ]

        return await self._database.read(load)


def _rows(connection: Connection, run_ids: Sequence[str], kind: str) -> dict[str, list[EventRow]]:
    wanted = (run_events.c.run_id.in_(run_ids)) & (run_events.c.kind == kind)
    rows = connection.execute(select(run_events).where(wanted).order_by(run_events.c.run_id, run_events.c.seq)).all()
    found: dict[str, list[EventRow]] = {}
    for row in rows:
        found.setdefault(str(row.run_id), []).append(EventRow(row.seq, row.at, row.kind, row.payload))
    return found


def _path(tree: dict[str, str | None], leaf_id: str | None) -> tuple[str, ...]:
    """The turns from the root to the leaf that is shown; to the newest where that is gone."""
    turn = leaf_id if leaf_id in tree else next(reversed(tree), None)
    path: dict[str, None] = {}
    while turn is not None and turn in tree and turn not in path:  # which no turn is, unless the file is damaged
        path[turn] = None
        turn = tree[turn]
    return tuple(reversed(path))
