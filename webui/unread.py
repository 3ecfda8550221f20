"""Conversations with a reply that nobody saw: kept with the owner, so that every Parlour and a restart know them."""

from __future__ import annotations

import asyncio
import logging
import time
from itertools import count
from typing import TYPE_CHECKING, Final

from core.bridge.pool import BoundedDict
from core.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from core.storage.owner_settings import OwnerSettings
    from core.storage.stores import Stores

_log = logging.getLogger(__name__)

UNREAD: Final = "unread"
"""Among the owner's settings: the conversations with a reply that nobody saw, the latest last."""
_MOST: Final = 500
_MOST_OWNERS: Final = 5_000


class Unread:
    """Of all owners. What is asked at once is answered from memory; the owner's settings are the truth.

    Args:
        stores: Of everybody; left out, nothing is kept beyond this process.
        clock: Seconds that never go back.
        others: Another number where other processes may have changed something; left out, they always may.
    """

    def __init__(
        self,
        stores: Stores | None = None,
        clock: Callable[[], float] = time.monotonic,
        others: Callable[[], int] | None = None,
    ) -> None:
        self._stores = stores
        self._clock = clock
        self._others = others or count().__next__
        self._known = BoundedDict[str, dict[str, None]](_MOST_OWNERS)
        self._read_at = BoundedDict[str, tuple[float, int]](_MOST_OWNERS)
        self._writing: dict[str, asyncio.Task[None]] = {}  # the last change of each owner that is on its way

    def of(self, owner: str) -> frozenset[str]:
        """Those of an owner, as far as this process knows."""
        return frozenset(self._known.get(owner, ()))

    def add(self, owner: str, conversation_id: str) -> None:
        """A reply ended, and nobody saw it."""
        self._known.setdefault(owner, {})[conversation_id] = None
        self._change(owner, conversation_id, unread=True)

    def read(self, owner: str, conversation_id: str) -> None:
        """Somebody looks at a conversation, or it is gone."""
        known = self._known.get(owner, {})
        if conversation_id in known:
            del known[conversation_id]
            self._change(owner, conversation_id, unread=False)

    async def refresh(self, owner: str, after: float) -> None:
        """Read them again after `after` seconds, if others may have changed them and no change is on its way."""
        if self._stores is None or owner in self._writing:
            return
        now, (then, seen) = self._clock(), self._read_at.get(owner, (float("-inf"), -1))
        if now - then < after or (others := self._others()) == seen:
            return
        self._read_at[owner] = now, others
        try:
            kept = await self._stores.of(owner).settings.get(UNREAD, [])
        except BaseException:
            self._read_at.pop(owner, None)
            raise
        if owner not in self._writing:
            self._known[owner] = dict.fromkeys(kept)

    async def kept(self) -> None:
        """Wait until every change is with its owner."""
        await asyncio.gather(*self._writing.values())

    def _change(self, owner: str, conversation_id: str, *, unread: bool) -> None:
        if self._stores is None:
            return
        before = self._writing.get(owner)
        task = asyncio.get_running_loop().create_task(
            self._write(self._stores.of(owner).settings, conversation_id, before, unread=unread)
        )
        self._writing[owner] = task
        task.add_done_callback(lambda done: self._written(owner, done))

    def _written(self, owner: str, done: asyncio.Task[None]) -> None:
        if self._writing.get(owner) is done:
            del self._writing[owner]

    async def _write(
        self, settings: OwnerSettings, conversation_id: str, before: asyncio.Task[None] | None, *, unread: bool
    ) -> None:
        """One after another, as they came."""
        if before is not None:
            await asyncio.wait({before})

        def changed(kept: list[str] | None) -> list[str] | None:
            others = [one for one in kept or () if one != conversation_id]
            return [*others, conversation_id][-_MOST:] if unread else others or None

        try:
            await settings.change(UNREAD, changed, alone=True)
        except StorageError as error:  # also where the house is being closed
            _log.info("What was read cannot be kept: %s", error)
