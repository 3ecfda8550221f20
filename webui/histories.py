"""The lists of conversations that tabs show, kept until they change."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from itertools import count
from typing import TYPE_CHECKING, Final, NamedTuple

from core.bridge.cancellation import result_for_all
from core.bridge.pool import BoundedDict

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from core.storage.conversation_list import History
    from core.workspace.workspace import Workspace

REFRESH: Final = 2.0
"""Seconds after which what is shown is read again, for another Parlour may have changed it."""
_MOST_OWNERS = 1_000  # owners


class _Kept(NamedTuple):
    reading: asyncio.Task[History]
    at: float
    others: int


class Histories:
    """Lists of conversations, kept until they change; what another Parlour changed is seen two seconds later.

    Args:
        clock: Seconds that never go back.
        others: Another number where other Parlours may have changed something; left out, they always may.
        hidden: The conversations of an owner that are about to be deleted: they are in no list any more.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        others: Callable[[], int] | None = None,
        hidden: Callable[[str], Collection[str]] = lambda _: (),
    ) -> None:
        self._clock = clock
        self._others = others or count().__next__
        self._hidden = hidden
        self._lists: OrderedDict[str, dict[bool, _Kept]] = OrderedDict()
        self._moved = BoundedDict[str, int](_MOST_OWNERS)

    def changed(self, owner: str) -> None:
        """Read the owner's list again when somebody wants it."""
        self._lists.pop(owner, None)

    def moved(self, owner: str) -> int:
        """How often another Parlour was found to have changed an owner's list."""
        return self._moved.get(owner, 0)

    async def of(self, workspace: Workspace, *, archived: bool = False) -> History:
        """The beginning of the owner's list; the same object for all who ask until something changes.

        Raises:
            StorageError: The database failed.
        """
        lists = self._lists.setdefault(workspace.owner, {})
        kept, now = lists.get(archived), self._clock()
        if kept is None or (kept.reading.done() and _failed(kept.reading)):
            listing = self._beginning(workspace, archived=archived)
            kept = lists[archived] = _Kept(asyncio.create_task(listing), now, self._others())
            if len(self._lists) > _MOST_OWNERS:
                self._lists.popitem(last=False)
        elif kept.reading.done() and now - kept.at >= REFRESH and (others := self._others()) != kept.others:
            again = self._again(workspace, kept.reading.result(), archived=archived)
            kept = lists[archived] = _Kept(asyncio.create_task(again), now, others)
        if kept.reading.done():
            return kept.reading.result()
        return await result_for_all(kept.reading)

    async def _beginning(self, workspace: Workspace, *, archived: bool) -> History:
        shown = workspace.conversation_list.without(self._hidden(workspace.owner))
        return await shown.beginning(archived=archived)

    async def _again(self, workspace: Workspace, before: History, *, archived: bool) -> History:
        found = await self._beginning(workspace, archived=archived)
        if found == before:
            return before
        self._moved[workspace.owner] = self.moved(workspace.owner) + 1
        return found


def _failed(reading: asyncio.Task[History]) -> bool:
    return reading.cancelled() or reading.exception() is not None
