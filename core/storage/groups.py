"""Groups of people: who is in which, and what each of them may use."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, insert, select, update

from core.bridge.pool import Listeners
from core.errors import ConflictError, NotFoundError
from core.storage.audit import note_act
from core.storage.base import new_id
from core.storage.dialects import upsert
from core.storage.people import KEEPERS
from core.storage.tables import group_members, groups, lent, people

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Connection, Row

    from core.storage.database import Database


@dataclass(frozen=True, slots=True)
class Group:
    """Some people together.

    Args:
        limits: What each of its members may use, as those of a person.
        created_at: Unix seconds.
        members: Their ids.
    """

    id: str
    name: str
    name_key: str
    limits: Mapping[str, float]
    created_at: float
    members: frozenset[str] = frozenset()


class GroupStore:
    """All groups of an installation. Who does something, `by`, stands in the audit with it.

    Args:
        told: Called after each change of who is in which, or of limits.
    """

    def __init__(self, database: Database, told: Listeners[[]] | None = None) -> None:
        self._database = database
        self._told = told or Listeners[[]]()

    async def list(self) -> list[Group]:
        """All of them, by name. Raises StorageError."""
        return await self._database.read(_groups)

    async def named(self, name_key: str) -> Group | None:
        """The one of this name; `None` for none. Raises StorageError."""
        return next((one for one in await self.list() if one.name_key == name_key), None)

    async def make(self, name: str, name_key: str, by: str) -> Group:
        """A new one, with nobody in it. Raises ConflictError (`group_name_taken`), StorageError."""
        fresh = Group(new_id(), name, name_key, {}, time.time())

        def made(connection: Connection) -> Group:
            _check_free(connection, name_key)
            stored = ("id", "name", "name_key", "limits", "created_at")
            connection.execute(insert(groups).values({column: getattr(fresh, column) for column in stored}))
            note_act(connection, by, "group_made", name, {})
            return fresh

        return await self._database.write(made)

    async def rename(self, group_id: str, name: str, name_key: str, by: str) -> None:
        """Another name. Raises NotFoundError, ConflictError (`group_name_taken`), StorageError."""

        def renamed(connection: Connection) -> None:
            was = _get(connection, group_id)
            if was.name_key != name_key:
                _check_free(connection, name_key)
            connection.execute(update(groups).where(groups.c.id == group_id).values(name=name, name_key=name_key))
            note_act(connection, by, "group_renamed", name, {"from": was.name})

        await self._database.write(renamed)
        self._told()

    async def set_limits(self, group_id: str, limits: Mapping[str, float], by: str) -> None:
        """What each of its members may use. Raises NotFoundError, StorageError."""

        def changed(connection: Connection) -> None:
            was = _get(connection, group_id)
            connection.execute(update(groups).where(groups.c.id == group_id).values(limits=dict(limits)))
            note_act(connection, by, "group_limits", was.name, dict(limits))

        await self._database.write(changed)
        self._told()

    async def delete(self, group_id: str, by: str) -> Group:
        """Delete one, with all that is shared with it; its people stay. Raises NotFoundError, StorageError."""

        def deleted(connection: Connection) -> Group:
            was = _group(connection, group_id)
            connection.execute(delete(groups).where(groups.c.id == group_id))
            note_act(connection, by, "group_deleted", was.name, {})
            return was

        gone = await self._database.write(deleted)
        self._told()
        return gone

    async def add(self, group_id: str, person_id: str, by: str) -> None:
        """Let somebody be in it. Raises NotFoundError (`no_group`, `no_person`), StorageError."""

        def added(connection: Connection) -> None:
            group, person = _get(connection, group_id), _person(connection, person_id)
            adding = upsert(group_members).values(group_id=group_id, person_id=person_id).on_conflict_do_nothing()
            if connection.execute(adding).rowcount:
                note_act(connection, by, "group_added", person.name, {"group": group.name})

        await self._database.write(added)
        self._told()

    async def take_out(self, group_id: str, person_id: str, by: str) -> None:
        """Let somebody be in it no more; what they share with it ends, unless they look after the house.

        Raises:
            NotFoundError: key `no_group` or `no_person`.
            StorageError: The database failed.
        """

        def taken(connection: Connection) -> None:
            group, person = _get(connection, group_id), _person(connection, person_id)
            same = group_members.c.group_id == group_id, group_members.c.person_id == person_id
            if not connection.execute(delete(group_members).where(*same)).rowcount:
                return
            if person.role not in KEEPERS:
                connection.execute(delete(lent).where(lent.c.group_id == group_id, lent.c.owner_id == person_id))
            note_act(connection, by, "group_removed", person.name, {"group": group.name})

        await self._database.write(taken)
        self._told()


def _groups(connection: Connection) -> list[Group]:
    members: dict[str, set[str]] = {}
    for row in connection.execute(select(group_members)):
        members.setdefault(row.group_id, set()).add(row.person_id)
    rows = connection.execute(select(groups)).all()
    found = [Group(*row, members=frozenset(members.get(row.id, ()))) for row in rows]
    return sorted(found, key=lambda one: (one.name.casefold(), one.created_at))


def _group(connection: Connection, group_id: str) -> Group:
    members = select(group_members.c.person_id).where(group_members.c.group_id == group_id)
    found = _get(connection, group_id)
    return Group(*found, members=frozenset(connection.execute(members).scalars()))


def _get(connection: Connection, group_id: str) -> Row[Any]:
    row = connection.execute(select(groups).where(groups.c.id == group_id)).first()
    if row is None:
        raise NotFoundError("There is no such group.", key="no_group")
    return row


def _person(connection: Connection, person_id: str) -> Row[Any]:
    row = connection.execute(select(people).where(people.c.id == person_id)).first()
    if row is None:
        raise NotFoundError("There is no such person.", key="no_person")
    return row


def _check_free(connection: Connection, name_key: str) -> None:
    if connection.execute(select(groups.c.id).where(groups.c.name_key == name_key)).first() is not None:
        raise ConflictError("There is a group of this name.", hint="Choose another one.", key="group_name_taken")
