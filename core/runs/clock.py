"""The time that a run takes of its own; while it waits for the user it stands still."""

from __future__ import annotations

import asyncio


class Clock:
    """Counts up to a limit.

    Args:
        limit: Seconds.
    """

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._spent = 0.0
        self._goes = asyncio.Event()
        self._goes.set()
        self._stands = asyncio.Event()

    def stand(self, still: bool) -> None:  # noqa: FBT001 - the one thing it is told
        """Stand still, or count again."""
        if still:
            self._goes.clear()
            self._stands.set()
        else:
            self._stands.clear()
            self._goes.set()

    async def over(self) -> None:
        """Wait until the limit is reached. For one waiter."""
        loop = asyncio.get_running_loop()
        while self._spent < self._limit:
            await self._goes.wait()
            since = loop.time()
            try:
                async with asyncio.timeout(self._limit - self._spent):
                    await self._stands.wait()
            except TimeoutError:
                return
            self._spent += loop.time() - since
