"""Tells a program that asks over MCP what is going on while its question is answered."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from core.mcp.journal import one_line
from core.messages.events import CallStarted, ReasoningDelta, TextDelta, ToolFinished

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from core.messages.events import Event

_EACH: Final = 1.0
"""Seconds between two words on a text that grows; calls of tools are told at once."""


class Telling:
    """Makes words of the events of a reply.

    Args:
        tell: Sends them: a number that grows, no total, and a sentence.
        clock: Seconds that never go back.
    """

    def __init__(
        self, tell: Callable[[float, float | None, str], Awaitable[None]], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._tell = tell
        self._clock = clock
        self._told = 0
        self._told_at = clock()
        self._letters = 0
        self._names: dict[str, str] = {}

    async def heard(self, event: Event) -> None:
        """Tell of an event, if it is worth a word."""
        match event:
            case CallStarted(call_id, name):
                self._names[call_id] = one_line(name, 60)
                await self._say(f"The tool {self._names[call_id]} is called.")
            case ToolFinished(call_id, message):
                failed = bool((message.extra or {}).get("failed"))
                name = self._names.pop(call_id, "") or one_line(message.name or "", 60)
                await self._say(f"The tool {name} {'failed' if failed else 'is done'}.")
            case ReasoningDelta():
                await self._now_and_then("The model thinks.")
            case TextDelta(text):
                self._letters += len(text)
                await self._now_and_then(f"The answer is being written: {self._letters:,} characters so far.")
            case _:
                pass

    async def _now_and_then(self, sentence: str) -> None:
        if self._clock() - self._told_at >= _EACH:
            await self._say(sentence)

    async def _say(self, sentence: str) -> None:
        self._told += 1
        self._told_at = self._clock()
        await self._tell(float(self._told), None, sentence)
