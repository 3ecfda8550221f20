"""What programs leave with an owner: the files that they brought, and replies that they may go on from."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Connection, delete, insert, select, update

from core.errors import NotFoundError
from core.storage.conversations import insert_owner, is_needed
from core.storage.dialects import upsert
from core.storage.files import file_record
from core.storage.tables import api_files, api_responses, files

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from core.storage.base import FileRecord
    from core.storage.database import Database
    from core.storage.files import FileStore

MOST_RESPONSES: Final = 1_000
"""Replies of one owner that programs may go on from; the oldest go first."""
_KEPT_FOR: Final = 30 * 86_400.0  # seconds


@dataclass(frozen=True, slots=True)
class ApiFile:
    """A file that a program brought.

    Args:
        file: As it is stored.
        purpose: What the program said that it is for.
    """

    file: FileRecord
    purpose: str


class ApiFileStore:
    """The files that one owner's programs brought.

    Args:
        files: Has all of the owner's.
    """

    def __init__(self, database: Database, owner: str, files: FileStore) -> None:
        self._database = database
        self._owner = owner
        self._files = files

    async def put(self, name: str, source: Path | bytes, purpose: str) -> ApiFile:
        """Keep a file until a program deletes it. Raises as `FileStore.put`."""
        record = await self._files.put(name, source)

        def note(connection: Connection) -> None:
            row = {"file_id": record.id, "owner_id": self._owner, "purpose": purpose}
            connection.execute(insert(api_files).values(row))

        await self._database.write(note)
        return ApiFile(record, purpose)

    async def list(self) -> list[ApiFile]:
        """All of them, the newest first."""
        mine = select(files, api_files.c.purpose).join(api_files, api_files.c.file_id == files.c.id)
        query = mine.where(api_files.c.owner_id == self._owner).order_by(files.c.created_at.desc(), files.c.id)
        rows = await self._database.read(lambda c: c.execute(query).all())
        return [ApiFile(file_record(row), row.purpose) for row in rows]

    async def get(self, file_id: str) -> ApiFile:
        """One of them. Raises NotFoundError."""
        mine = (api_files.c.file_id == file_id) & (api_files.c.owner_id == self._owner)
        query = select(api_files.c.purpose).where(mine)
        row = await self._database.read(lambda c: c.execute(query).first())
        if row is None:
            raise NotFoundError("There is no such file.", kind="file")
        return ApiFile(await self._files.record(file_id), row.purpose)

    async def delete(self, file_id: str) -> None:
        """Delete one; where a conversation or a library needs it too, it stays there. Raises NotFoundError."""
        await self.get(file_id)
        mine = (api_files.c.file_id == file_id) & (api_files.c.owner_id == self._owner)

        def forget(connection: Connection) -> bool:
            connection.execute(delete(api_files).where(mine))
            return is_needed(connection, file_id)

        if not await self._database.write(forget):
            with suppress(NotFoundError):
                await self._files.delete(file_id)


class ApiResponseStore:
    """Replies that one owner's programs may go on from, for thirty days."""

    def __init__(self, database: Database, owner: str) -> None:
        self._database = database
        self._owner = owner

    async def keep(self, response_id: str, body: Mapping[str, Any]) -> None:
        """Keep one, in place of what was kept under its id. Raises StorageError."""
        now = time.time()
        row = {"id": response_id, "owner_id": self._owner, "created_at": now, "body": dict(body)}
        mine = api_responses.c.owner_id == self._owner

        def keep(connection: Connection) -> None:
            insert_owner(connection, self._owner)
            adding = upsert(api_responses).values(row)
            changed = {"body": row["body"], "created_at": now}
            connection.execute(
                adding.on_conflict_do_update(
                    index_elements=["id"], set_=changed, where=api_responses.c.owner_id == self._owner
                )
            )
            newest = select(api_responses.c.id).where(mine).order_by(api_responses.c.created_at.desc())
            late = mine & (api_responses.c.created_at < now - _KEPT_FOR)
            connection.execute(delete(api_responses).where(late))
            connection.execute(
                delete(api_responses).where(mine, api_responses.c.id.not_in(newest.limit(MOST_RESPONSES)))
            )

        await self._database.write(keep)

    async def get(self, response_id: str) -> dict[str, Any]:
        """What was kept. Raises NotFoundError."""
        mine = (api_responses.c.id == response_id) & (api_responses.c.owner_id == self._owner)
        row = await self._database.read(lambda c: c.execute(select(api_responses.c.body).where(mine)).first())
        if row is None:
            raise NotFoundError("There is no such response.", kind="response")
        return dict(row.body)

    async def spend(self, response_id: str, question: str) -> bool:
        """Note that a question of a response was answered; whether it was open until now. Raises StorageError."""
        mine = (api_responses.c.id == response_id) & (api_responses.c.owner_id == self._owner)

        def spend(connection: Connection) -> bool:
            row = connection.execute(select(api_responses.c.body).where(mine)).first()
            if row is None or question not in (row.body.get("asked") or {}):
                return False
            left = {one: about for one, about in row.body["asked"].items() if one != question}
            connection.execute(update(api_responses).where(mine).values(body={**row.body, "asked": left}))
            return True

        return await self._database.write(spend)

    async def delete(self, response_id: str) -> None:
        """Forget one. Raises NotFoundError."""
        mine = (api_responses.c.id == response_id) & (api_responses.c.owner_id == self._owner)
        if not await self._database.write(lambda c: c.execute(delete(api_responses).where(mine)).rowcount):
            raise NotFoundError("There is no such response.", kind="response")

    async def clear(self) -> None:
        """Forget all of them."""
        mine = api_responses.c.owner_id == self._owner
        await self._database.write(lambda c: c.execute(delete(api_responses).where(mine)))
