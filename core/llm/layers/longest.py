"""Ends an answer that has no end: what no model would write makes everybody else wait, and fills the memory."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from core.errors import ModelMisbehavedError
from core.messages.events import CallDelta, CallStarted, Event, ItemAdded, ReasoningDelta, TextDelta

if TYPE_CHECKING:
    from core.llm.request import ChatRequest, Layer, Source, Stream
    from core.llm.service import Served

LONGEST_ANSWER: Final = 1_000_000
"""Characters of text, thought and arguments together: twice what the most talkative models may write in one answer."""
MOST_CALLS: Final = 128
"""Calls in one answer."""
MOST_ITEMS: Final = 64
"""Pictures and recordings in one answer."""


def longest(model: Served) -> Layer:
    """The layer: what came up to the limit is kept."""

    def layer(request: ChatRequest, below: Source) -> Stream:
        return _counted(model, request, below)

    return layer


@dataclass(slots=True)
class _Room:
    """What an answer may still have."""

    letters: int = LONGEST_ANSWER
    calls: int = MOST_CALLS
    items: int = MOST_ITEMS

    def fitting(self, event: Event) -> Event | None:
        """Of an event as much as there is room for; `None` for nothing."""
        match event:
            case TextDelta(text):
                return event if self._take(text) else TextDelta(text[: self.letters])
            case ReasoningDelta(text):
                return event if self._take(text) else ReasoningDelta(text[: self.letters])
            case CallDelta(_, arguments):
                return event if self._take(arguments) else None
            case CallStarted():
                self.calls -= 1
                return event if self.calls >= 0 else None
            case ItemAdded():
                self.items -= 1
                return event if self.items >= 0 else None
            case _:
                return event

    def _take(self, text: str) -> bool:
        if len(text) > self.letters:
            return False
        self.letters -= len(text)
        return True


async def _counted(model: Served, request: ChatRequest, below: Source) -> Stream:
    room = _Room()
    async with aclosing(below(request)) as events:
        async for event in events:
            fits = room.fitting(event)
            if fits is not event:
                if fits is not None:
                    yield fits
                raise _endless(model)
            yield event


def _endless(model: Served) -> ModelMisbehavedError:
    name = model.service.name
    said = f"{name} wrote more than {LONGEST_ANSWER:,} characters, {MOST_CALLS} calls or {MOST_ITEMS} pictures at once."
    hint = "What had come is kept: ask for less at a time, or choose another model."
    error = ModelMisbehavedError(None, None, said, hint=hint, key="model_endless")
    error.details |= {"host": name, "model": model.model}
    return error
