"""The time that a run takes of its own; while it waits for the user, or its machine sleeps, it stands still."""

from __future__ import annotations

import asyncio

from core.bridge.awake import AwakeTimer


class Clock:
    """Counts up to a limit.

    Args:
        limit: Seconds.
    """

    def __init__(self, limit: float) -> None:
        self._left = limit
        self._still = False
        self._over = asyncio.Event()
        self._timer: AwakeTimer | None = None

    def stand(self, still: bool) -> None:  # noqa: FBT001 - the one thing it is told
        """Stand still, or count again."""
        if still == self._still:
            return
        self._still = still
        if self._timer is None:
            return
        if still:
            self._left = self._timer.stop()
        else:
            self._timer.start(self._left)

    async def over(self) -> None:
        """Wait until the limit is reached. For one waiter."""
        self._timer = AwakeTimer(self._over.set)
        if not self._still:
            self._timer.start(self._left)
        try:
            await self._over.wait()
        finally:
            self._timer.cancel()
