"""Where many questions come at the same moment, their pages show them before the replies are begun."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable

FEW = 4
"""Pages that wait to be painted, up to which a reply begins at once."""
WITHIN = 2.0
"""Seconds after which a page is not waited for any more: nobody may be looking at it."""


class Arrivals:
    """The pages that have sent a question and do not show it yet.

    To begin a reply takes the event loop as long as to show its question does. Were each begun at once, the last of
    fifty pages would wait for both of all others before it shows anything.

    Args:
        of_each: How many pages of one owner count, so that nobody holds up all others by never looking; no limit if
            left out.
    """

    def __init__(self, of_each: int | None = None) -> None:
        self._of_each = of_each
        self._awaited: dict[tuple[str, Hashable], asyncio.TimerHandle] = {}
        self._changed = asyncio.Event()

    @property
    def are_many(self) -> bool:
        """Whether a reply that begins now would hold up others."""
        return len(self._awaited) > FEW

    def expect(self, owner: str, page: Hashable) -> None:
        """A question of this page is on its way."""
        self.shown(owner, page)
        if self._of_each is None or sum(one == owner for one, _ in self._awaited) < self._of_each:
            ends = asyncio.get_running_loop().call_later(WITHIN, self.shown, owner, page)
            self._awaited[owner, page] = ends

    def shown(self, owner: str, page: Hashable) -> None:
        """The page shows it, or it was refused."""
        timer = self._awaited.pop((owner, page), None)
        if timer is not None:
            timer.cancel()
            self._changed.set()

    async def settled(self) -> None:
        """Wait until few are left, or as long as pages are waited for."""
        loop = asyncio.get_running_loop()
        latest = loop.call_later(WITHIN, self._changed.set)
        ends = loop.time() + WITHIN
        try:
            while self.are_many and loop.time() < ends:
                self._changed.clear()
                await self._changed.wait()
        finally:
            latest.cancel()
