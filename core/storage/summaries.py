"""Summaries of the beginnings of conversations; what they are of stays as it is."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from sqlalchemy import Connection, select
from sqlalchemy.dialects.sqlite import insert as insert_or

from core.storage.conversations import clean, conversation_of, message_of
from core.storage.tables import summaries

if TYPE_CHECKING:
    from core.storage.database import Database


class SummaryStore:
    """Summaries by the last turn that they are of. What is somebody else's does not exist."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def list(self, owner: str, conversation_id: str) -> dict[str, str]:
        """The conversation's, by the id of the last turn that each is of. Raises NotFoundError."""

        def load(connection: Connection) -> dict[str, str]:
            conversation_of(connection, owner, conversation_id)
            query = select(summaries.c.message_id, summaries.c.text)
            rows = connection.execute(query.where(summaries.c.conversation_id == conversation_id)).all()
            return {str(row.message_id): str(row.text) for row in rows}

        return await self._database.read(load)

    async def keep(self, owner: str, conversation_id: str, message_id: str, text: str) -> None:
        """Keep a summary of all turns up to one of the conversation's, in place of the one before.

        Raises:
            NotFoundError: There is no such turn in a conversation of this owner.
        """

        def store(connection: Connection) -> None:
            message_of(connection, owner, message_id, conversation_id)
            row = {"message_id": message_id, "conversation_id": conversation_id, "owner_id": owner}
            values = {"text": clean(text), "created_at": time.time()}
            adding = insert_or(summaries).values(**row, **values)
            connection.execute(adding.on_conflict_do_update(index_elements=["message_id"], set_=values))

        await self._database.write(store)
