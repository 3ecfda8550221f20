"""The steps of replies as rows."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Connection, Row, Select, bindparam, func, insert, select

from core.storage.base import AgentThought
from core.storage.conversations import clean, conversation_of, message_of
from core.storage.database import send
from core.storage.tables import message_agent_thoughts, messages

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.storage.database import Database

_LONGEST_NAME: Final = 255
_ADD: Final = insert(message_agent_thoughts)
_HELD: Final = select(messages.c.id).where(messages.c.id == bindparam("message")).with_for_update(key_share=True)
_LAST: Final = select(func.max(message_agent_thoughts.c.position)).where(
    message_agent_thoughts.c.message_id == bindparam("message")
)


class ThoughtStore:
    """The steps of one owner's replies. What is somebody else's does not exist."""

    def __init__(self, database: Database, owner: str) -> None:
        self._database = database
        self._owner = owner

    async def list(self, message_id: str) -> list[AgentThought]:
        """The steps of a reply, the first one first. Raises NotFoundError."""

        def load(connection: Connection) -> list[AgentThought]:
            message_of(connection, self._owner, message_id)
            return _found(connection, _all().where(message_agent_thoughts.c.message_id == message_id))

        return await self._database.read(load)

    async def of_conversation(self, conversation_id: str) -> dict[str, list[AgentThought]]:
        """The steps of all replies of a conversation, in all its branches, by reply. Raises NotFoundError."""

        def load(connection: Connection) -> dict[str, list[AgentThought]]:
            conversation_of(connection, self._owner, conversation_id)
            joined = _all().join(messages, messages.c.id == message_agent_thoughts.c.message_id)
            steps: dict[str, list[AgentThought]] = {}
            for step in _found(connection, joined.where(messages.c.conversation_id == conversation_id)):
                steps.setdefault(step.message_id, []).append(step)
            return steps

        return await self._database.read(load)

    async def add(self, message_id: str, thoughts: Sequence[AgentThought]) -> None:
        """Store the steps of a reply; those that are there already are passed over.

        Raises:
            ConflictError: The positions have a gap; nothing was stored.
            NotFoundError: The reply is not the owner's.
        """

        def store(connection: Connection) -> None:
            message_of(connection, self._owner, message_id)
            connection.execute(_HELD, {"message": message_id})  # who adds others at this moment is waited for
            add_thoughts(connection, self._owner, message_id, missing_thoughts(connection, message_id, thoughts))

        if thoughts:
            await self._database.write(store, holds=True)


def missing_thoughts(connection: Connection, message_id: str, thoughts: Sequence[AgentThought]) -> list[AgentThought]:
    """The steps that a reply does not have yet, in order, inside a transaction that holds it."""
    last = connection.execute(_LAST, {"message": message_id}).scalar() or 0
    return sorted((step for step in thoughts if step.position > last), key=lambda step: step.position)


def add_thoughts(connection: Connection, owner: str, message_id: str, thoughts: Sequence[AgentThought]) -> None:
    """Store the first steps of a reply of the owner's, or those that follow on what it has, inside a transaction.

    Nothing is read of the other steps: who does that in a serializable transaction is in conflict with all who add
    some at that moment, to whichever reply.
    """
    send(connection, _ADD, *(_values(owner, message_id, step) for step in thoughts))


def thoughts_where(connection: Connection, message_ids: Sequence[str]) -> list[AgentThought]:
    """The steps of some replies, reply by reply and in order, inside a transaction."""
    return _found(connection, _all().where(message_agent_thoughts.c.message_id.in_(message_ids)))


def _values(owner: str, message_id: str, step: AgentThought) -> dict[str, Any]:
    return {
        "id": step.id,
        "owner_id": owner,
        "message_id": message_id,
        "thought": clean(step.thought),
        "tool_name": None if step.tool_name is None else clean(step.tool_name)[:_LONGEST_NAME],
        "tool_input": None if step.tool_input is None else clean(step.tool_input),
        "observation": None if step.observation is None else clean(step.observation),
        "position": step.position,
        "created_at": step.created_at.timestamp() if step.created_at is not None else time.time(),
    }


def _all() -> Select[Any]:
    columns = [column for column in message_agent_thoughts.c if column.name != "owner_id"]
    return select(*columns).order_by(message_agent_thoughts.c.message_id, message_agent_thoughts.c.position)


def _found(connection: Connection, query: Select[Any]) -> list[AgentThought]:
    return [_thought(row) for row in connection.execute(query).all()]


def _thought(row: Row[Any]) -> AgentThought:
    return AgentThought(
        id=row.id,
        message_id=row.message_id,
        thought=row.thought,
        tool_name=row.tool_name,
        tool_input=row.tool_input,
        observation=row.observation,
        position=row.position,
        created_at=datetime.fromtimestamp(row.created_at, UTC),
    )
