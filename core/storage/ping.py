"""Whether the database is there, as `/readyz` tells it."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import select

from core.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from core.storage.database import Database

_FRESH: Final = 2.0  # seconds for which an answer counts
_PATIENCE: Final = 3.0  # seconds that the database may take


class DatabaseCheck:
    """Asks the database while somebody asks about it; each answer is that of the last time.

    Args:
        database: Is asked.
        clock: Seconds that never go back.
    """

    def __init__(self, database: Database, clock: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._clock = clock
        self._asking: asyncio.Task[None] | None = None
        self._asked_at = float("-inf")
        self._is_there = True  # it was opened

    def __call__(self) -> dict[str, Any]:
        """Whether it is `ready`."""
        now = self._clock()
        if (self._asking is None or self._asking.done()) and now - self._asked_at >= _FRESH:
            self._asked_at = now
            self._asking = asyncio.create_task(self._ask())
        return {"ready": self._is_there}

    async def asked(self) -> None:
        """Wait until it has answered."""
        if self._asking is not None:
            await asyncio.wait({self._asking})

    async def _ask(self) -> None:
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._database.read(lambda connection: connection.execute(select(1)).all())
        except (StorageError, TimeoutError):
            self._is_there = False
        else:
            self._is_there = True
