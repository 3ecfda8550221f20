"""Versions of a turn: what stands beside it in the tree, and where the branch under it ends."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Row, select

from core.storage.tables import messages

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.storage.base import StoredMessage


def versions_of(
    connection: Connection, conversation_id: str, thread: Sequence[StoredMessage]
) -> dict[str, tuple[str, ...]]:
    """For each turn of a thread that has versions their ids, the oldest first, its own among them; in one query."""
    beside: defaultdict[tuple[str | None, str], list[str]] = defaultdict(list)
    for row in tree_of(connection, conversation_id):
        beside[row.parent_id, row.role].append(row.id)
    found = ((turn.id, tuple(beside[turn.parent_id, turn.role])) for turn in thread)
    return {turn_id: versions for turn_id, versions in found if len(versions) > 1}


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
    query = select(messages.c.id, messages.c.parent_id, messages.c.role)
    query = query.where(messages.c.conversation_id == conversation_id)
    return connection.execute(query.order_by(messages.c.created_at, messages.c.id)).all()
