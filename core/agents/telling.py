"""Puts words at the end of what a model is told first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from core.messages.content import ContentItem
from core.messages.message import SYSTEM, Message

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def with_more(message: Message, text: str) -> Message:
    """The message with `text` as its last paragraph."""
    said = message.content
    content = f"{said}\n\n{text}" if isinstance(said, str) else [*said, ContentItem(text=f"\n\n{text}")]
    return message.model_copy(update={"content": content})


def also_told(messages: Sequence[Message], text: str, *, extra: Mapping[str, Any] | None = None) -> list[Message]:
    """A new list whose system message ends with `text`; one is made where there is none.

    Args:
        messages: The conversation.
        text: What is told.
        extra: For the system message's `extra`.
    """
    more = dict(extra or {})
    if not messages or messages[0].role != SYSTEM:
        return [Message(SYSTEM, text, extra=more or None), *messages]
    told = with_more(messages[0], text)
    if more:
        told = told.model_copy(update={"extra": {**(told.extra or {}), **more}})
    return [told, *messages[1:]]
