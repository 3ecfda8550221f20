"""Work that is done whole, whoever is cancelled meanwhile."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")


async def whole(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` in a task of its own, to its end; only then does a caller that was cancelled hear of it."""
    task = asyncio.create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait({task})
        if not task.cancelled():
            task.exception()  # it is the caller's no more, but nobody shall report it as forgotten
        raise
