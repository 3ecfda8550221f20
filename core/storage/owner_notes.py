"""What an assistant keeps for its owner from one conversation to another: texts under keys such as `trips/plan`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import ColumnElement, Connection, Select, delete, func, insert, select, update

from core.errors import BadArgumentsError, ToolError
from core.storage.base import LOCAL_OWNER, folder_name
from core.storage.conversations import insert_owner
from core.storage.dialects import begins
from core.storage.tables import notes, owners

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.storage.database import Database

_LONGEST_VALUE: Final = 2**20  # bytes
_MOST_BYTES: Final = 64 * 2**20
_MOST_KEYS: Final = 10_000
_AT_ONCE: Final = 50


class NoteStore:
    """The notes of one owner; keys are names parted by `/`, checked already. What is somebody else's does not exist.

    Args:
        owner: Whose they are; need not be known yet.
        longest_value: The most bytes (UTF-8) of one note.
        most_bytes: The most bytes of all of them.
        most_keys: The most notes.
    """

    def __init__(
        self,
        database: Database,
        owner: str,
        *,
        longest_value: int = _LONGEST_VALUE,
        most_bytes: int = _MOST_BYTES,
        most_keys: int = _MOST_KEYS,
    ) -> None:
        self._database = database
        self._owner = owner
        self._longest_value = longest_value
        self._most_bytes = most_bytes
        self._most_keys = most_keys

    async def put(self, key: str, value: str, *, anew: bool = True) -> bool:
        """Keep `value`, in place of what was there; returns whether it is kept.

        Args:
            anew: Whether it is kept also where there is no such note yet.

        Raises:
            BadArgumentsError: There is no key, or the value is too long.
            ToolError: There is no room left, or the key stands for a folder of others, or a part of it for a note.
            StorageError: The database failed.
        """
        if not key:
            raise BadArgumentsError("A value needs a key such as 'notes/plan'.")
        kept, size = _plain(value)
        if size > self._longest_value:
            raise BadArgumentsError(
                f"The value has {size} bytes; at most {self._longest_value} may be kept under one key."
            )

        def keep(connection: Connection) -> bool:
            there = connection.execute(select(notes.c.key).where(self._is(key))).first()
            if there is None and not anew:
                return False
            self._check_room(connection, key, size)
            values = {"value": kept, "size": size, "updated_at": time.time()}
            if there is not None:
                connection.execute(update(notes).where(self._is(key)).values(values))
                return True
            insert_owner(connection, self._owner)
            connection.execute(insert(notes).values(owner_id=self._owner, key=key, **values))
            return True

        return await self._database.write(keep)

    async def get(self, key: str) -> str | None:
        """What is kept under a key; `None` where nothing is. Raises StorageError."""
        query = select(notes.c.value).where(self._is(key))
        return await self._database.read(lambda c: c.execute(query).scalar())

    async def delete(self, key: str) -> bool:
        """Forget what is kept under a key; whether there was anything. Raises StorageError."""
        return await self._database.write(lambda c: c.execute(delete(notes).where(self._is(key))).rowcount > 0)

    async def first(self, count: int, longest: int) -> list[tuple[str, str]]:
        """The first notes by their keys, each to so many characters. Raises StorageError."""
        cut = select(notes.c.key, func.substr(notes.c.value, 1, longest).label("value"))

        def read(connection: Connection) -> list[tuple[str, str]]:
            wanted = self._keys(connection, "")[:count]
            return self._values(connection, cut, wanted)

        return await self._database.read(read)

    async def below(self, key: str, room: int) -> list[tuple[str, str]]:
        """The notes at a key and below it, in order, each with its whole key, until `room` characters are passed.

        Raises:
            StorageError: The database failed.
        """
        whole = select(notes.c.key, notes.c.value)

        def read(connection: Connection) -> list[tuple[str, str]]:
            wanted, left, found = self._keys(connection, key), room, list[tuple[str, str]]()
            for at in range(0, len(wanted), _AT_ONCE):
                some = self._values(connection, whole, wanted[at : at + _AT_ONCE])
                found += some
                left -= sum(len(name) + len(value) for name, value in some)
                if left < 0:
                    break
            return found

        return await self._database.read(read)

    async def take(self, found: Mapping[str, str]) -> None:
        """Keep what was written down elsewhere: all of it, or nothing. No limit holds.

        Where another note has the key, what comes is kept beside it, as in `trips/plan (2)`; what is there already
        stays as it is, so that the same notes may come twice.

        Raises:
            StorageError: The database failed.
        """

        def keep(connection: Connection) -> None:
            insert_owner(connection, self._owner)
            for key, value in found.items():
                self._take(connection, key, *_plain(value))

        await self._database.write(keep)

    # ---- inside

    def _is(self, key: str) -> ColumnElement[bool]:
        return (notes.c.owner_id == self._owner) & (notes.c.key == key)

    def _keys(self, connection: Connection, key: str) -> list[str]:
        """The keys at and below one, in order: that of characters, which not every database has."""
        query = select(notes.c.key).where(notes.c.owner_id == self._owner)
        if key:
            query = query.where((notes.c.key == key) | begins(notes.c.key, f"{key}/"))
        return sorted(connection.execute(query).scalars())

    def _values(self, connection: Connection, query: Select[Any, Any], wanted: Sequence[str]) -> list[tuple[str, str]]:
        rows = connection.execute(query.where(notes.c.owner_id == self._owner, notes.c.key.in_(wanted)))
        found = {str(row.key): str(row.value) for row in rows}
        return [(one, found[one]) for one in wanted]

    def _check_room(self, connection: Connection, key: str, size: int) -> None:
        others = (notes.c.owner_id == self._owner) & (notes.c.key != key)
        parts = key.split("/")
        above = notes.c.key.in_(["/".join(parts[:end]) for end in range(1, len(parts))])
        if connection.execute(select(notes.c.key).where(others, above | begins(notes.c.key, f"{key}/"))).first():
            raise ToolError(f"The key {key!r} cannot be used: a key is either a value or a folder of keys.")
        sums = select(func.count(), func.coalesce(func.sum(notes.c.size), 0)).where(others)
        count, taken = connection.execute(sums).one()
        if count >= self._most_keys:
            raise ToolError(f"There is no room: {self._most_keys} values are kept. Delete some first.")
        if int(taken) + size > self._most_bytes:
            raise ToolError(
                f"There is no room: {self._most_bytes} bytes are the most of all values. Delete some first."
            )

    def _take(self, connection: Connection, key: str, value: str, size: int) -> None:
        name, number = key, 1
        while (kept := connection.execute(select(notes.c.value).where(self._is(name))).scalar()) is not None:
            if kept == value:
                return
            number += 1
            name = f"{key} ({number})"
        values = {"value": value, "size": size, "updated_at": time.time()}
        connection.execute(insert(notes).values(owner_id=self._owner, key=name, **values))


def _plain(value: str) -> tuple[str, int]:
    """A value as every database can hold it, and how many bytes it has."""
    data = value.replace("\0", "").encode("utf-8", "replace")
    return data.decode("utf-8"), len(data)


async def owners_by_folder(database: Database) -> dict[str, str]:
    """All owners that are known, by what their folders are called. Raises StorageError."""
    found = await database.read(lambda c: list(c.execute(select(owners.c.id)).scalars()))
    return {folder_name(one): one for one in (LOCAL_OWNER, *found)}
