"""The conversations of an owner in which replies were written, all at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, bindparam, select, update

from core.storage.tables import conversations, messages

if TYPE_CHECKING:
    from collections.abc import Callable

    from core.storage.database import Database


class AnsweredConversations:
    """Those of one owner: each with a reply that was asked for here, also where it is still being written.

    What was brought in from elsewhere is none of them until it goes on here.
    """

    def __init__(self, database: Database, owner: str) -> None:
        self._database = database
        self._owner = owner

    async def configure(self, change: Callable[[dict[str, Any]], dict[str, Any]]) -> int:
        """Change what is chosen for each of them, all in one transaction; returns how many changed.

        Args:
            change: Given the settings of a conversation; what it returns is stored where it is another.

        Raises:
            StorageError: The database failed; nothing has changed.
        """
        replies = select(messages.c.conversation_id).where(
            messages.c.owner_id == self._owner, messages.c.role == "assistant", messages.c.run_id.is_not(None)
        )
        mine = select(conversations.c.id, conversations.c.settings).where(
            conversations.c.owner_id == self._owner, conversations.c.id.in_(replies)
        )

        def configure(connection: Connection) -> int:
            # In one order, so that two who do this at once do not wait for each other.
            rows = connection.execute(mine.order_by(conversations.c.id).with_for_update()).all()
            each = [(row.id, dict(row.settings or {})) for row in rows]
            values = [{"which": one, "new": new} for one, old in each if (new := change(old)) != old]
            if values:
                keep = update(conversations).where(conversations.c.id == bindparam("which"))
                connection.execute(keep.values(settings=bindparam("new")), values)
            return len(values)

        return await self._database.write(configure, holds=True)
