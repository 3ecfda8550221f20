"""Turns the growing replies of Qwen-Agent's synchronous `_run` into events."""

from __future__ import annotations

from contextlib import aclosing
from functools import partial
from secrets import token_hex
from typing import TYPE_CHECKING

from core.llm.concurrency import from_blocking
from core.llm.sync_hooks import Growth
from core.messages.events import (
    CallDelta,
    CallStarted,
    Event,
    MessageFinished,
    MessageStarted,
    ToolFinished,
    ToolStarted,
)
from core.messages.message import FUNCTION, Message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from core.llm.request import Stream


async def run_events(make: Callable[[], Iterable[list[Message]]], speaker: str | None) -> Stream:
    """Run `_run` in a thread and turn its growing reply into events.

    Args:
        make: Calls `_run`; each item is the whole reply so far.

    Raises:
        ModelMisbehavedError: What was said before changed.
    """
    yield MessageStarted(speaker)
    told = _ReplyDiff(speaker)
    async with aclosing(from_blocking(partial(_replies, make))) as replies:
        async for reply in replies:
            for event in told.events(reply):
                yield event
    yield MessageFinished("calls" if told.waiting else "stop")


def _replies(make: Callable[[], Iterable[list[Message]]]) -> Iterator[list[Message]]:
    """The replies that `make` yields; `SystemExit` fails this reply alone."""
    try:
        yield from make()
    except SystemExit as error:
        raise RuntimeError("The program was told to end in the middle of a reply.") from error


class _ReplyDiff:
    """The events for what each reply adds to the one before."""

    def __init__(self, speaker: str | None) -> None:
        self.waiting: dict[str, str] = {}  # call id to tool, for calls without a result
        self._speaker = speaker
        self._growth = Growth()
        self._results = 0

    def events(self, reply: list[Message]) -> Iterator[Event]:
        spoken: list[Message] = []
        results = 0
        for message in reply:
            if message.role != FUNCTION:
                spoken.append(message)
                continue
            results += 1
            if results > self._results:
                self._results = results
                yield from self._grown(spoken)
                yield from self._result(message)
        yield from self._grown(spoken)

    def _grown(self, spoken: list[Message]) -> Iterator[Event]:
        for event in self._growth.events(spoken):
            if isinstance(event, CallStarted):
                self.waiting[event.call_id] = event.name
            yield event

    def _result(self, message: Message) -> Iterator[Event]:
        call_id = self._call_of(message)
        if call_id not in self.waiting:  # a result without a call: it gets one, so that it can be shown
            yield CallStarted(call_id, message.name or "tool")
            yield CallDelta(call_id, "{}")
        self.waiting.pop(call_id, None)
        own = message.model_copy(update={"extra": {**(message.extra or {}), "function_id": call_id}})
        yield MessageFinished("calls")
        yield ToolStarted(call_id)
        yield ToolFinished(call_id, own)
        if not self.waiting:
            yield MessageStarted(self._speaker)

    def _call_of(self, message: Message) -> str:
        given = str((message.extra or {}).get("function_id") or "")
        same_tool = (call_id for call_id, name in self.waiting.items() if name == message.name)
        return given if given in self.waiting else next(same_tool, f"call_{token_hex(8)}")
