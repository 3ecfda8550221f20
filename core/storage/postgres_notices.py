"""What processes on one PostgreSQL hear of each other: that there is something to be taken up."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

import psycopg

from core.storage.dialects import CHANNEL
from core.storage.postgres_engine import conninfo_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

_LOG = logging.getLogger(__name__)
_TRY_AGAIN: Final = 5.0


async def notices(address: str) -> AsyncGenerator[str, None]:
    """What `notify` says, each time that somebody does.

    It takes a connection of its own; while that cannot be had, nothing comes.
    """
    while True:
        try:
            async with await psycopg.AsyncConnection.connect(conninfo_of(address), autocommit=True) as connection:
                await connection.execute(f"LISTEN {CHANNEL}")
                async for one in connection.notifies():
                    yield one.payload
        except psycopg.Error as error:
            _LOG.info("Other processes are not heard at present: %s", type(error).__name__)
        await asyncio.sleep(_TRY_AGAIN)
