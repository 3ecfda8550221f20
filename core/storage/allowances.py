"""Which tools run unasked in a conversation, because its owner said "always"."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import Connection, delete, select
from sqlalchemy.dialects.sqlite import insert as insert_or

from core.storage.conversations import conversation_of
from core.storage.tables import allowances

if TYPE_CHECKING:
    from core.storage.database import Database


class Allowances:
    """Tools by their full names, for one conversation each. What is somebody else's does not exist."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def list(self, owner: str, conversation_id: str) -> list[str]:
        """The conversation's, by name. Raises NotFoundError."""

        def load(connection: Connection) -> list[str]:
            conversation_of(connection, owner, conversation_id)
            query = select(allowances.c.tool).where(allowances.c.conversation_id == conversation_id)
            return [str(tool) for tool in connection.execute(query.order_by(allowances.c.tool)).scalars()]

        return await self._database.read(load)

    async def add(self, owner: str, conversation_id: str, tool: str) -> None:
        """Let a tool run unasked in the conversation from now on. Raises NotFoundError."""

        def keep(connection: Connection) -> None:
            conversation_of(connection, owner, conversation_id)
            row = {"conversation_id": conversation_id, "tool": tool, "owner_id": owner}
            connection.execute(insert_or(allowances).values(row).on_conflict_do_nothing())

        await self._database.write(keep)

    async def remove(self, owner: str, conversation_id: str, tool: str) -> None:
        """Ask for the tool again. Raises NotFoundError."""

        def forget(connection: Connection) -> None:
            conversation_of(connection, owner, conversation_id)
            this = (allowances.c.conversation_id == conversation_id) & (allowances.c.tool == tool)
            connection.execute(delete(allowances).where(this))

        await self._database.write(forget)

    async def forget(self, owner: str, beginning: str) -> None:
        """Ask again for all tools whose names begin so, in all conversations of the owner."""
        these = (allowances.c.owner_id == owner) & allowances.c.tool.startswith(beginning, autoescape=True)

        def forget(connection: Connection) -> None:
            connection.execute(delete(allowances).where(these))

        await self._database.write(forget)
