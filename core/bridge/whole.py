"""Work that is done whole, whoever is cancelled meanwhile."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from anyio import CancelScope
from anyio.lowlevel import checkpoint_if_cancelled

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")


async def whole(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` in a task of its own, to its end; only then does a caller that was cancelled hear of it."""
    task = asyncio.create_task(work)
    cancelled = await _ended(task)
    if cancelled is None:
        try:
            await checkpoint_if_cancelled()
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        if not task.cancelled():
            task.exception()  # it is the caller's no more, but nobody shall report it as forgotten
        raise cancelled
    return task.result()


async def kept(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` to its end; a caller that was cancelled meanwhile gets its result all the same."""
    task = asyncio.create_task(work)
    await _ended(task)
    return task.result()


async def _ended(task: asyncio.Task[Any]) -> asyncio.CancelledError | None:
    """Wait for the end of a task; the cancellation of the waiting one that came meanwhile, if any.

    The shield is for cancel scopes: they cancel a task that goes on waiting again in each turn of the loop, which would
    spin until the end.
    """
    cancelled: asyncio.CancelledError | None = None
    with CancelScope(shield=True):
        while not task.done():
            try:
                await asyncio.wait({task})
            except asyncio.CancelledError as error:
                cancelled = error
    return cancelled
