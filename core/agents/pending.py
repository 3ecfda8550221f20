"""The calls that a reply was in the middle of when it was broken off."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.messages.message import FUNCTION, USER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from core.messages.message import Message
    from core.rag.document import Passage


def this_turn(messages: Sequence[Message]) -> Sequence[Message]:
    """What came after the last question."""
    asked = (index for index in range(len(messages) - 1, -1, -1) if messages[index].role == USER)
    return messages[next(asked, -1) + 1 :]


def without_result(messages: Sequence[Message]) -> list[Message]:
    """The calls after the last question that have no result, in order."""
    said = this_turn(messages)
    answered = {call_id(message) for message in said if message.role == FUNCTION}
    return [message for message in said if message.function_call is not None and call_id(message) not in answered]


def has_called(messages: Sequence[Message]) -> bool:
    """Whether the model has called a tool since the last question."""
    return any(message.function_call is not None for message in this_turn(messages))


def found_before(messages: Sequence[Message]) -> list[Passage]:
    """The passages that were found after the last question, in the order of their numbers."""
    from core.rag.document import Passage  # brings the document readers with it

    results = [message for message in this_turn(messages) if message.role == FUNCTION]
    rows = [row for message in results for row in (message.extra or {}).get("passages") or ()]
    numbered = {int(row.get("number") or 0): row for row in rows}  # of the same number, what was found last
    return [Passage.from_dict(numbered[number]) for number in sorted(numbered)]


def call_id(message: Message) -> str:
    """What ties a call and its result."""
    return str((message.extra or {}).get("function_id") or "")
