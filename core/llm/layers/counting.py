"""What takes long to count: it is counted in a thread, as the loop has other readers to serve meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from core.llm.tokens import Counter
    from core.messages.message import Message

HEAVY: Final = 50_000
"""Characters that were not counted yet; fewer are counted in about ten milliseconds."""


def is_heavy(messages: Iterable[Message], counter: Counter | None = None) -> bool:
    """Whether it would take long to count these messages: they are large, and `counter` has not counted them yet."""
    texts = [text for message in messages for text in _texts(message)]
    if sum(map(len, texts)) <= HEAVY:
        return False
    return counter is None or sum(len(text) for text in texts if not counter.knows(text)) > HEAVY


def _texts(message: Message) -> list[str]:
    content, call = message.content, message.function_call
    texts = [content] if isinstance(content, str) else [item.text for item in content if item.text]
    return texts if call is None else [*texts, call.arguments]
