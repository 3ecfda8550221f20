"""Writes a run's log to the table while it grows: text every 250 ms, a call or a tool at once.

All runs write on the same ticks of the clock, so that the store can put what they write into one transaction.
"""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from core.errors import NotFoundError, StorageError
from core.runs.rows import rows_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from core.runs.log import RunLog
    from core.storage.base import EventRow, RunRecord
    from core.storage.runs import RunStore

_LOG = logging.getLogger(__name__)
_EVERY = 0.25
_AFTER_TROUBLE = 1.0


class Checkpoint:
    """Keeps the table at most 250 ms behind the log.

    A write that fails is tried again a second later, with what has come since: a full disk costs nothing that fits
    into memory. These writes survive the death of the process, not that of the machine; the end of the run does.

    Args:
        store: Where the table is.
        record: The run.
        log: What is written.
        gone: Called when the run's rows are gone, deleted with their conversation, or are another process's now.
        stored: How many events of the log are in the table already.
    """

    def __init__(
        self, store: RunStore, record: RunRecord, log: RunLog, gone: Callable[[NotFoundError], None], *, stored: int = 0
    ) -> None:
        self._store = store
        self._run_id = record.id
        self._epoch = record.epoch
        self._log = log
        self._gone = gone
        self._stored = stored
        self._tried = asyncio.Event()
        self._new = asyncio.Event()
        self._now = asyncio.Event()
        self._closing = False

    async def keep(self) -> None:
        """Write until `close`."""
        unwatch = self._log.watch(self._noticed)
        is_well = True
        try:
            while not self._closing:
                await self._new.wait()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._now.wait(), _until_tick() if is_well else _AFTER_TROUBLE)
                self._new.clear()
                self._now.clear()
                is_well = await self._write()
                self._tried.set()
        finally:
            unwatch()
            self._tried.set()

    async def catch_up(self) -> None:
        """Wait until what is in the log now is in the table, or cannot be written at present."""
        last = len(self._log)
        for _ in range(2):  # one write may be on its way already
            if self._stored >= last or self._closing:
                return
            self._tried.clear()
            self._new.set()
            self._now.set()
            await self._tried.wait()

    def close(self) -> None:
        """Let `keep` end; what is not written yet is in `pending`."""
        self._closing = True
        self._new.set()
        self._now.set()

    def pending(self) -> list[EventRow]:
        """The rows that are not in the table yet."""
        return rows_of(self._log.since(self._stored))

    def _noticed(self, urgent: bool) -> None:  # noqa: FBT001 - what a log tells its watchers
        self._new.set()
        if urgent:
            self._now.set()

    async def _write(self) -> bool:
        # Taken before the write: events go on arriving during it.
        rows, last = self.pending(), len(self._log)
        if self._closing:
            return True
        try:
            await self._store.append(self._run_id, rows, epoch=self._epoch)
        except NotFoundError as error:
            self._gone(error)
        except StorageError as error:
            _LOG.warning("A checkpoint of run %s failed and will be tried again: %s", self._run_id, error)
            self._new.set()
            return False
        self._stored = last
        return True


def _until_tick() -> float:
    """Seconds to the next tick, which is the same for all runs of a process."""
    return _EVERY - time.monotonic() % _EVERY
