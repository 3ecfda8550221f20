"""Puts the marks of the evidence into a model's text as it streams."""

from __future__ import annotations

import re
from contextlib import aclosing
from typing import TYPE_CHECKING

from core.messages.content import ContentItem
from core.messages.events import TextDelta
from core.messages.message import FUNCTION, USER, Message
from core.rag.evidence import CitingStream

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.llm.request import Stream
    from core.rag.document import Passage

_NUMBER = re.compile(r"^\[\d{1,3}\] (?=\()", re.MULTILINE)  # as `core.rag.evidence.numbered` writes it


async def cited(events: Stream, passages: Sequence[Passage], question: str = "") -> Stream:
    """The same events; text passes through a `CitingStream` and is whole before anything else follows it."""
    citing = CitingStream(passages, question)
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
                citing, speaking = CitingStream(passages, question), False
            yield event


def without_old_numbers(messages: Sequence[Message]) -> list[Message]:
    """The messages; passages that tools found before the last question lose their numbers, which are given anew."""
    questions = [at for at, message in enumerate(messages) if message.role == USER]
    last = questions[-1] if questions else 0
    return [
        _unnumbered(message)
        if at < last and message.role == FUNCTION and (message.extra or {}).get("passages")
        else message
        for at, message in enumerate(messages)
    ]


def _unnumbered(message: Message) -> Message:
    if isinstance(message.content, str):
        return message.model_copy(update={"content": _NUMBER.sub("", message.content)})
    items = [ContentItem(text=_NUMBER.sub("", item.text)) if item.text else item for item in message.content]
    return message.model_copy(update={"content": items})
