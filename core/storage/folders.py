"""Folders of the history: each holds conversations, and what is chosen for all of them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Connection, Row, delete, func, insert, select, update

from core.errors import NotFoundError, SettingsError
from core.messages.invisible import plain_line
from core.storage.base import Folder, new_id
from core.storage.conversations import clean, insert_owner
from core.storage.tables import conversations, folders

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from core.storage.database import Database

LONGEST_NAME: Final = 120
"""Characters of a folder's name; what is longer is cut."""


class FolderStore:
    """The folders of one owner. What is somebody else's does not exist."""

    def __init__(self, database: Database, owner: str) -> None:
        self._database = database
        self._owner = owner

    async def list(self) -> list[Folder]:
        """The owner's folders, in their order."""
        return await self._database.read(lambda c: folders_of(c, self._owner))

    async def get(self, folder_id: str) -> Folder:
        """One folder. Raises NotFoundError."""
        return await self._database.read(lambda c: folder_of(c, self._owner, folder_id))

    async def create(self, name: str) -> Folder:
        """A new folder below the others; the owner need not be known yet.

        Raises:
            SettingsError: key `folder_name`: the name is empty.
        """
        wanted = _name(name)

        def begin(connection: Connection) -> Folder:
            insert_owner(connection, self._owner)
            last = select(func.max(folders.c.position)).where(folders.c.owner_id == self._owner)
            position = (connection.execute(last).scalar() or 0.0) + 1.0
            fresh = Folder(new_id(), self._owner, wanted, position, {}, time.time())
            connection.execute(insert(folders).values({name: getattr(fresh, name) for name in Folder.__slots__}))
            return fresh

        return await self._database.write(begin)

    async def rename(self, folder_id: str, name: str) -> None:
        """Give it another name. Raises NotFoundError, and SettingsError as `create`."""
        wanted = _name(name)
        await self._change(folder_id, lambda _: {"name": wanted})

    async def place(self, folder_id: str, position: float) -> None:
        """Put it where `position` says: folders stand in its order. Raises NotFoundError."""
        await self._change(folder_id, lambda _: {"position": position})

    async def configure(self, folder_id: str, change: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> Folder:
        """Change what is chosen for its conversations, read and written in one transaction. Raises NotFoundError."""
        return await self._change(folder_id, lambda folder: {"settings": dict(change(folder.settings))})

    async def delete(self, folder_id: str) -> list[str]:
        """Delete a folder; its conversations stay, in none. Returns their ids. Raises NotFoundError."""

        def remove(connection: Connection) -> list[str]:
            folder_of(connection, self._owner, folder_id)
            inside = (conversations.c.folder_id == folder_id) & (conversations.c.owner_id == self._owner)
            freed = [str(one) for one in connection.execute(select(conversations.c.id).where(inside)).scalars()]
            connection.execute(update(conversations).where(inside).values(folder_id=None))
            connection.execute(delete(folders).where(folders.c.id == folder_id))
            return freed

        return await self._database.write(remove)

    async def put(self, conversation_ids: Sequence[str], folder_id: str | None) -> None:
        """Put conversations into a folder, or into none; ids that are not the owner's are passed over.

        Raises:
            NotFoundError: There is no such folder of this owner.
        """

        def move(connection: Connection) -> None:
            if folder_id is not None:
                folder_of(connection, self._owner, folder_id)
            these = conversations.c.id.in_(conversation_ids) & (conversations.c.owner_id == self._owner)
            connection.execute(update(conversations).where(these).values(folder_id=folder_id))

        await self._database.write(move)

    async def _change(self, folder_id: str, values: Callable[[Folder], Mapping[str, Any]]) -> Folder:
        def change(connection: Connection) -> Folder:
            before = folder_of(connection, self._owner, folder_id)
            connection.execute(update(folders).where(folders.c.id == folder_id).values(**values(before)))
            return folder_of(connection, self._owner, folder_id)

        return await self._database.write(change)


def folders_of(connection: Connection, owner: str) -> list[Folder]:
    """The owner's folders in their order, inside a transaction."""
    query = select(folders).where(folders.c.owner_id == owner).order_by(folders.c.position, folders.c.id)
    return [_folder(row) for row in connection.execute(query).all()]


def folder_of(connection: Connection, owner: str, folder_id: str) -> Folder:
    """The owner's folder, inside a transaction. Raises NotFoundError."""
    query = select(folders).where(folders.c.id == folder_id, folders.c.owner_id == owner)
    row = connection.execute(query).first()
    if row is None:
        raise NotFoundError("There is no such folder.", kind="folder")
    return _folder(row)


def _folder(row: Row[Any]) -> Folder:
    return Folder(**{name: getattr(row, name) for name in Folder.__slots__})


def _name(text: str) -> str:
    plain = plain_line(clean(text), "").strip()[:LONGEST_NAME]
    if not plain:
        raise SettingsError("A folder needs a name.", hint="Type one.", key="folder_name")
    return plain
