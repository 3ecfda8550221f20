"""Puts the marks of the evidence into a model's text as it streams."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from core.messages.events import TextDelta
from core.rag.evidence import CitingStream

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.llm.request import Stream
    from core.rag.document import Passage


async def cited(events: Stream, passages: Sequence[Passage]) -> Stream:
    """The same events; text passes through a `CitingStream` and is whole before anything else follows it."""
    citing = CitingStream(passages)
    speaking = False
    async with aclosing(events) as source:
        async for event in source:
            if isinstance(event, TextDelta):
                speaking = True
                if text := citing.feed(event.text):
                    yield TextDelta(text)
                continue
            if speaking:
                if rest := citing.close():
                    yield TextDelta(rest)
                citing, speaking = CitingStream(passages), False
            yield event
