"""Conversations with a reply that nobody saw: kept with the owner, so that every Parlour and a restart know them."""

from __future__ import annotations

import asyncio
import logging
import time
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
    """

    def __init__(self, stores: Stores | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._stores = stores
        self._clock = clock
        self._known = BoundedDict[str, dict[str, None]](_MOST_OWNERS)
        self._read_at = BoundedDict[str, float](_MOST_OWNERS)
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
        """Read them again, unless that was done in the last `after` seconds, or a change is on its way."""
        now = self._clock()
        if self._stores is None or owner in self._writing or now - self._read_at.get(owner, float("-inf")) < after:
            return
        self._read_at[owner] = now
        kept = await self._stores.of(owner).settings.get(UNREAD, [])
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
            await settings.change(UNREAD, changed)
        except StorageError as error:  # also where the house is being closed
            _log.info("What was read cannot be kept: %s", error)
