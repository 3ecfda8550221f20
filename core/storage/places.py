"""Places that all processes on one database give out together: so many of each owner, each held by a lease."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from sqlalchemy import Connection, bindparam, select

from core.storage.base import QUEUED, WAITING
from core.storage.conversations import hold_owner
from core.storage.dialects import clock, upsert
from core.storage.statements import OWNER_HELD
from core.storage.tables import owner_settings, runs

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from core.storage.database import Database

NAME: Final = "places"
"""Under which an owner's settings say who holds a place: {its name: when its lease is over}."""

_KEPT: Final = (
    select(owner_settings.c.value)
    .where(owner_settings.c.owner_id == bindparam("owner"), owner_settings.c.name == NAME)
    .scalar_subquery()
)
_NOW: Final = select(clock().label("now"), _KEPT.label("kept"))
_HOLDERS: Final = select(
    runs.c.id, runs.c.status, runs.c.worker, (runs.c.lease_until >= clock()).label("is_held")
).where(runs.c.id.in_(bindparam("wanted", expanding=True)))
_ADDING: Final = upsert(owner_settings)
_KEEP: Final = _ADDING.on_conflict_do_update(
    index_elements=["owner_id", "name"], set_={"value": _ADDING.excluded.value}
)


class Places:
    """The places of one owner.

    That of a run has the run's own id, and its lease: it is free as soon as the run is over, waits in the tables, or is
    held by nobody any more. All others have to be renewed, and given back.

    Args:
        lasts: Seconds of a lease.
    """

    def __init__(self, database: Database, owner: str, *, lasts: float) -> None:
        self._database, self._owner, self._lasts = database, owner, lasts

    async def take(self, place: str, most: int) -> bool:
        """Take a place, or go on with one that is held already; whether there was one.

        Args:
            place: Its name.
            most: How many the owner has.

        Raises:
            StorageError: The database failed.
        """

        def taken(others: dict[str, float], now: float) -> bool:
            free = len(others.keys() - {place}) < most
            if free:
                others[place] = now + self._lasts
            return free

        return await self._change(taken, makes_known=True)

    async def renew(self, places: Collection[str]) -> None:
        """Hold places on that are no runs. Raises StorageError."""

        def renewed(held: dict[str, float], now: float) -> bool:
            held |= dict.fromkeys(places, now + self._lasts)
            return True

        await self._change(renewed)

    async def release(self, place: str) -> None:
        """Give a place back. Raises StorageError."""
        await self._change(lambda held, _: held.pop(place, None) is not None)

    async def _change(self, change: Callable[[dict[str, float], float], bool], *, makes_known: bool = False) -> bool:
        """Change who holds the owner's places; whether anything is to be stored, which is never so of who is forgotten.

        Args:
            makes_known: Whether an owner who is not known becomes so.
        """

        def changed(connection: Connection) -> bool:
            # What other processes took before is seen from here on.
            if makes_known:
                hold_owner(connection, self._owner)
            elif connection.execute(OWNER_HELD, {"owner": self._owner}).first() is None:
                return False
            row = connection.execute(_NOW, {"owner": self._owner}).one()
            held = _still_held(connection, cast("dict[str, float]", row.kept or {}), row.now)
            stores = change(held, row.now)
            if stores:
                connection.execute(_KEEP, {"owner_id": self._owner, "name": NAME, "value": held})
            return stores

        return await self._database.write(changed, durable=False, holds=True)


def _still_held(connection: Connection, kept: dict[str, float], now: float) -> dict[str, float]:
    known: dict[str, Any] = {row.id: row for row in connection.execute(_HOLDERS, {"wanted": [*kept]})} if kept else {}
    return {place: until for place, until in kept.items() if (_lives(known[place]) if place in known else until > now)}


def _lives(run: Any) -> bool:
    return run.status == "running" and run.worker not in {WAITING, QUEUED} and bool(run.is_held)
