"""How much an owner's things take: bytes of documents, other files, conversations and shared snapshots."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select

from core.storage.dialects import octets
from core.storage.tables import conversations, documents, files, messages, run_events, runs

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sqlalchemy import ColumnElement, Connection, Select

    from core.storage.database import Database


@dataclass(frozen=True, slots=True)
class UsedSpace:
    """What an owner has.

    Args:
        documents: Bytes of files that are documents of a conversation or library.
        files: Bytes of all other files.
        conversations: Bytes of messages and of the logs of replies.
        talks: How many conversations there are.
        shares: Bytes of shared snapshots.
    """

    documents: int = 0
    files: int = 0
    conversations: int = 0
    talks: int = 0
    shares: int = 0


class SpaceStore:
    """The space that one owner's things take.

    Args:
        shared: Bytes of the owner's shared snapshots, which are in no table.
    """

    def __init__(self, database: Database, owner: str, shared: Callable[[], Awaitable[int]]) -> None:
        self._database = database
        self._owner = owner
        self._shared = shared

    async def used(self) -> UsedSpace:
        """What there is now. Raises StorageError."""
        mine = files.c.owner_id == self._owner
        read = files.c.id.in_(select(documents.c.file_id).where(documents.c.owner_id == self._owner))
        said = _bytes(messages.c.parts).where(messages.c.owner_id == self._owner)
        # By their runs: events have no index by owner, and there are very many of them.
        answered = select(runs.c.id).where(runs.c.owner_id == self._owner)
        logged = _bytes(run_events.c.payload).where(run_events.c.run_id.in_(answered))
        count = select(func.count()).where(conversations.c.owner_id == self._owner)

        def load(connection: Connection) -> UsedSpace:
            def number(query: Select[Any]) -> int:
                return int(connection.execute(query).scalar_one() or 0)

            return UsedSpace(
                number(select(func.sum(files.c.size)).where(mine, read)),
                number(select(func.sum(files.c.size)).where(mine, ~read)),
                number(said) + number(logged),
                number(count),
            )

        return replace(await self._database.read(load), shares=await self._shared())


def _bytes(column: ColumnElement[Any]) -> Select[Any]:
    return select(func.sum(octets(column)))
