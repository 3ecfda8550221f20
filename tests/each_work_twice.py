"""A database that runs each work twice, the first time in vain: so it is seen that none has an effect beside it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from sqlalchemy import Connection

from core.storage.database import SqliteDatabase

T = TypeVar("T")


class EachWorkTwice(SqliteDatabase):
    """PostgreSQL runs a work again after a conflict. Here all run again, so each shows whether it may."""

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Twice on the same snapshot."""
        return await super().read(lambda c: (work(c), work(c))[1])

    async def write(self, work: Callable[[Connection], T], *, durable: bool = True, holds: bool = False) -> T:
        """Once undone, then for good."""

        def again(connection: Connection) -> T:
            connection.exec_driver_sql("SAVEPOINT in_vain")
            with suppress(Exception):  # the second time it counts
                work(connection)
            connection.exec_driver_sql("ROLLBACK TO in_vain")
            connection.exec_driver_sql("RELEASE in_vain")
            return work(connection)

        return await super().write(again, durable=durable, holds=holds)
