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
    """

    def __init__(self) -> None:
        self._awaited: dict[Hashable, asyncio.TimerHandle] = {}
        self._changed = asyncio.Event()

    @property
    def are_many(self) -> bool:
        """Whether a reply that begins now would hold up others."""
        return len(self._awaited) > FEW

    def expect(self, page: Hashable) -> None:
        """A question of this page is on its way."""
        self.shown(page)
        self._awaited[page] = asyncio.get_running_loop().call_later(WITHIN, self.shown, page)

    def shown(self, page: Hashable) -> None:
        """The page shows it, or it was refused."""
        timer = self._awaited.pop(page, None)
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
