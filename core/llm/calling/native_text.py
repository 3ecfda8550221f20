"""Calls that a model writes as text although its service has calls of its own, as small ones do."""

from __future__ import annotations

from contextlib import aclosing
from itertools import count
from typing import TYPE_CHECKING

from core.errors import ModelServiceError
from core.llm.calling.call_text import call_events
from core.llm.calling.flat import has_calls
from core.llm.calling.neutral import Restored
from core.llm.calling.untagged import Untagged
from core.llm.request import call_ids
from core.messages.events import CallDelta, CallStarted, Event, ItemAdded, MessageFinished, TextDelta

if TYPE_CHECKING:
    from core.llm.request import ChatRequest, Source, Stream


async def with_written_call(request: ChatRequest, below: Source) -> Stream:
    """The service's reply. One that is nothing but a call of a declared tool, written as text, is that call.

    A reply that begins like one is held back until it is sure; every other passes as it comes.
    """
    reader = _Reader(request)
    async with aclosing(below(request)) as events:
        try:
            async for event in events:
                for found in reader.feed(event):
                    yield found
        except ModelServiceError:
            for found in reader.release():  # what had come is kept
                yield found
            raise


class _Reader:
    """Holds text back as long as all of it may be one call.

    A call of the service's that names no tool is text too, but where who asks answers every call.
    """

    def __init__(self, request: ChatRequest) -> None:
        self._request = request
        self._breaks: dict[str, Restored] = {}
        self._has_results = has_calls(request.messages)
        self._nameless: set[str] = set()
        self._calls = 0
        self._held: Untagged | None = Untagged(request.functions, tagged=True)

    def feed(self, event: Event) -> list[Event]:
        """What is certain after one more event."""
        if self._has_results:
            event = self._restored(event)
        if not self._request.answers_calls:
            if isinstance(event, CallStarted) and not event.name.strip():
                self._nameless.add(event.call_id)
                return []
            if isinstance(event, CallDelta) and event.call_id in self._nameless:
                event = TextDelta(event.arguments)
        self._calls += isinstance(event, CallStarted)
        if isinstance(event, MessageFinished) and self._nameless and not self._calls and event.reason == "calls":
            event = MessageFinished("stop", event.usage)
        if self._held is None:
            return [event]
        if isinstance(event, TextDelta):
            text = self._held.feed(event.text)
            return [] if text is None else self.release()
        if isinstance(event, MessageFinished):
            return self._end(self._held, event)
        if isinstance(event, CallStarted | ItemAdded):
            return [*self.release(), event]
        return [event]

    def _restored(self, event: Event) -> Event:
        """What the model repeats of a result, as the result has it."""
        if isinstance(event, TextDelta):
            return TextDelta(self._breaks.setdefault("", Restored()).feed(event.text))
        if isinstance(event, CallDelta):
            arguments = self._breaks.setdefault(event.call_id, Restored()).feed(event.arguments)
            return CallDelta(event.call_id, arguments)
        return event

    def release(self) -> list[Event]:
        """The held text, which is no call."""
        text = self._held.held() if self._held is not None else ""
        self._held = None
        return [TextDelta(text)] if text else []

    def _end(self, held: Untagged, end: MessageFinished) -> list[Event]:
        calls = held.calls(cut=end.reason == "length")
        if not calls or not (calls[0].readable or self._request.answers_calls):
            return [*self.release(), end]
        taken = call_ids(self._request.messages)
        ids = (str(number) for number in count(1) if str(number) not in taken)
        return [*call_events(calls, ids), MessageFinished("calls", end.usage)]
