"""Bytes in a store of another machine that no row names: a process ended between the two. They go after a day."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Self

from core.errors import StorageError

if TYPE_CHECKING:
    from core.storage.files import AllFiles

_LOG = logging.getLogger(__name__)
_DAY: Final = 24 * 3600.0


class Sweeping:
    """Deletes them at the start and once a day; an async context manager.

    Args:
        files: Those of all owners. In a folder of this machine nothing is looked for: there the draft has another name
            until all of it is written, and the row follows at once.
        stays: How old they are at least, in seconds.
        every: Seconds between two times.
    """

    def __init__(self, files: AllFiles, *, stays: float = _DAY, every: float = _DAY) -> None:
        self._files = files
        self._stays = stays
        self._every = every
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Begin, in the background."""
        if self._files.blobs.is_remote:
            self._task = asyncio.create_task(self._go_on(), name="bytes that no row names")
        return self

    async def __aexit__(self, *_: object) -> None:
        """End; the next start goes on."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _go_on(self) -> None:
        while True:
            try:
                count = await self._files.delete_orphans(time.time() - self._stays)
            except StorageError as error:
                _LOG.warning("What no row names stays in the store until tomorrow: %s", error)
            else:
                if count:
                    _LOG.info("%d files that no row names were deleted from the store.", count)
            await asyncio.sleep(self._every)
