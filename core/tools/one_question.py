"""Asks about what is called within one call: the user sees that one call alone."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from time import monotonic
from typing import TYPE_CHECKING, Any

from core.bridge.sync import on_loop
from core.tools.approval import Decision, Guard

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from core.messages.message import Message
    from core.tools.base import BaseTool


_within: ContextVar[tuple[str, ...]] = ContextVar(
    "calls within a call, down to the one that is decided about", default=()
)


def asked_within() -> tuple[str, ...]:
    """While something is decided: the calls within the one that the user sees, down to the one that it is about."""
    return _within.get()


class OneQuestion(Guard):
    """Passes every decision on to another guard as one about the outer call, one at a time.

    It belongs to the loop that it is made on; a call on another loop (a tool in a thread that asks an agent) waits for
    what is decided there.

    Args:
        outer: Who decides.
        call_id: The call that the user sees.
    """

    def __init__(self, outer: Guard, call_id: str) -> None:
        super().__init__(outer.policy)
        self.outer = self._guard = outer
        self._call_id = call_id
        self._loop = asyncio.get_running_loop()
        # Two questions at once about one call would take each other's place, and one would never be answered.
        self._turn = asyncio.Lock()  # noqa: TID251 - said above
        self._deciding: asyncio.Task[Decision] | None = None
        self._is_over = False
        self._waited, self._since = 0.0, 0.0  # seconds; monotonic time, 0.0 while nothing is decided

    @property
    def waited(self) -> float:
        """Seconds spent on decisions so far."""
        return self._waited + (monotonic() - self._since if self._since else 0.0)

    def close(self) -> None:
        """The call is over: a thread that it left behind is asked about no more, and may do nothing."""
        self._is_over = True
        if self._deciding is not None:
            self._deciding.cancel()

    async def decide(
        self, tool: BaseTool, call_id: str, arguments: Mapping[str, Any], messages: Iterable[Message]
    ) -> Decision:
        """What the outer guard decides. Raises RuntimeError where its loop waits for this call."""
        calls = (call_id, *_within.get())
        return await on_loop(self._loop, lambda: self._decide(calls, tool, arguments, messages))

    async def _decide(
        self, calls: tuple[str, ...], tool: BaseTool, arguments: Mapping[str, Any], messages: Iterable[Message]
    ) -> Decision:
        async with self._turn:
            if self._is_over:
                return Decision(allowed=False, why="unattended")
            self._since = monotonic()
            token = _within.set(calls)
            try:
                self._deciding = asyncio.create_task(self._guard.decide(tool, self._call_id, arguments, messages))
                return await self._decided(self._deciding)
            finally:
                _within.reset(token)
                self._waited, self._since = self.waited, 0.0

    async def _decided(self, deciding: asyncio.Task[Decision]) -> Decision:
        try:
            return await deciding
        except asyncio.CancelledError:
            asking = asyncio.current_task()
            if not self._is_over or (asking is not None and asking.cancelling()):
                raise
            return Decision(allowed=False, why="unattended")
        finally:
            deciding.cancel()  # whoever asked was cancelled: it is no question any more
            self._deciding = None
