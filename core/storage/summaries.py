"""Summaries of what was said in conversations, as rows."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from sqlalchemy import select

from core.storage.conversations import clean, conversation_of, message_of
from core.storage.dialects import upsert
from core.storage.tables import summaries

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from core.storage.database import Database


class SummaryStore:
    """Summaries of one owner's conversations, by the last turn of each. What is somebody else's does not exist."""

    def __init__(self, database: Database, owner: str) -> None:
        self._database = database
        self._owner = owner

    async def list(self, conversation_id: str) -> dict[str, str]:
        """The conversation's, by the id of the last turn that each is of. Raises NotFoundError."""

        def load(connection: Connection) -> dict[str, str]:
            conversation_of(connection, self._owner, conversation_id)
            query = select(summaries.c.message_id, summaries.c.text)
            rows = connection.execute(query.where(summaries.c.conversation_id == conversation_id)).all()
            return {str(row.message_id): str(row.text) for row in rows}

        return await self._database.read(load)

    async def keep(self, conversation_id: str, message_id: str, text: str) -> None:
        """Keep a summary of all turns up to one of the conversation's, in place of the one before.

        Raises:
            NotFoundError: There is no such turn in a conversation of this owner.
        """

        def store(connection: Connection) -> None:
            message_of(connection, self._owner, message_id, conversation_id)
            row = {"message_id": message_id, "conversation_id": conversation_id, "owner_id": self._owner}
            values = {"text": clean(text), "created_at": time.time()}
            adding = upsert(summaries).values(**row, **values)
            connection.execute(adding.on_conflict_do_update(index_elements=["message_id"], set_=values))

        await self._database.write(store)
