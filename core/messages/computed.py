"""What a program here counted, told from what tools, agents, services and files of others say that it did."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

from core.messages.events import SourceCited, ToolFinished
from core.messages.message import PASSAGES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from core.messages.events import Event
    from core.messages.message import Message

COMPUTED: Final = "computed"
"""In a passage (`extra["passages"]`): the figure that was counted or computed here, as text."""


class Computed(str):
    """Such a figure, before it is stored. Of what comes as JSON nothing is one, and only its place can be believed."""

    __slots__ = ()


def own_event(event: Event) -> Event:
    """The event; none of its passages says that it was computed here, but for those that were."""
    if isinstance(event, ToolFinished):
        message = own_message(event.message)
        return event if message is event.message else replace(event, message=message)
    if isinstance(event, SourceCited) and any(map(_is_claimed, event.passages)):
        return replace(event, passages=tuple(_own(event.passages)))
    return event


def own_message(message: Message) -> Message:
    """The message, in the same way."""
    rows: Any = (message.extra or {}).get(PASSAGES)
    if not isinstance(rows, list | tuple) or not any(map(_is_claimed, cast("list[Any]", rows))):
        return message
    extra = {**(message.extra or {}), PASSAGES: _own(cast("list[Any]", rows))}
    return message.model_copy(update={"extra": extra})


def noted_event(event: Event) -> Event:
    """An event that was noted after `own_event`, and read again: what it says was computed here, was."""
    if isinstance(event, ToolFinished):
        rows: Any = (event.message.extra or {}).get(PASSAGES)
        if not isinstance(rows, list | tuple) or not any(map(_is_claimed, cast("list[Any]", rows))):
            return event
        extra = {**(event.message.extra or {}), PASSAGES: _noted(cast("list[Any]", rows))}
        return replace(event, message=event.message.model_copy(update={"extra": extra}))
    if isinstance(event, SourceCited) and any(map(_is_claimed, event.passages)):
        return replace(event, passages=tuple(_noted(event.passages)))
    return event


def disown(value: Any) -> int:
    """Take it from all passages in a JSON value, at any depth, that they were computed here.

    Returns:
        How many passages said so.

    Raises:
        RecursionError: It is nested too deep.
    """
    if isinstance(value, list):
        return sum(map(disown, cast("list[Any]", value)))
    if not isinstance(value, dict):
        return 0
    mapping = cast("dict[str, Any]", value)
    rows = mapping.get(PASSAGES)
    claimed = 0
    for row in cast("list[Any]", rows) if isinstance(rows, list) else ():
        if isinstance(row, dict):
            claimed += cast("dict[str, Any]", row).pop(COMPUTED, None) is not None
    return claimed + sum(map(disown, mapping.values()))


def _is_claimed(row: Any) -> bool:
    """Whether a passage says so, and was not computed here."""
    return isinstance(row, dict) and not isinstance(cast("dict[str, Any]", row).get(COMPUTED, Computed()), Computed)


def _noted(rows: Iterable[Any]) -> list[Any]:
    return [{**one, COMPUTED: Computed(one[COMPUTED])} if _is_claimed(one) else one for one in rows]


def _own(rows: Iterable[Any]) -> list[Any]:
    return [
        {name: value for name, value in one.items() if name != COMPUTED} if _is_claimed(one) else one for one in rows
    ]
