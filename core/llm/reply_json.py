"""A finished reply as JSON, and back: what the cache keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias, assert_never, cast, get_args

from core.messages.content import ContentItem
from core.messages.events import (
    CallDelta,
    CallStarted,
    Event,
    FinishReason,
    ItemAdded,
    MessageFinished,
    MessageStarted,
    ReasoningDelta,
    TextDelta,
    ToolFinished,
    ToolStarted,
)
from core.messages.message import Usage

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Json: TypeAlias = dict[str, Any]

FORM: Final = 1
"""Of what is kept; another number is another cache."""

_PIECE: Final = 64  # characters: a reply from the cache streams too


def packed(events: Iterable[Event]) -> Json | None:
    """A reply as JSON; `None` where it is not worth keeping: unfinished, empty, or cut by the service's filter."""
    parts: list[list[Any]] = []
    for event in events:
        if isinstance(event, MessageFinished):
            if event.reason == "content_filter" or not parts:
                return None
            usage = event.usage.model_dump() if event.usage else None
            return {"form": FORM, "parts": parts, "reason": event.reason, "usage": usage}
        _add(parts, event)
    return None


def unpacked(kept: object) -> list[Event]:
    """The events of a reply that was kept.

    Raises:
        ValueError: It is not what `packed` made.
    """
    try:
        whole = cast("Json", kept)
        if whole["form"] != FORM or whole["reason"] not in get_args(FinishReason):
            raise ValueError("The reply has another form.")
        events: list[Event] = [MessageStarted()]
        for part in cast("Sequence[Sequence[Any]]", whole["parts"]):
            events += _events(part)
        usage = Usage(**whole["usage"]) if whole["usage"] is not None else None
        return [*events, MessageFinished(whole["reason"], usage)]
    except (LookupError, TypeError, AttributeError) as error:
        raise ValueError("The reply is broken.") from error


def _events(part: Sequence[Any]) -> list[Event]:
    match part:
        case ["text", str(text)]:
            return [TextDelta(piece) for piece in _pieces(text)]
        case ["reasoning", str(text)]:
            return [ReasoningDelta(piece) for piece in _pieces(text)]
        case ["item", item]:
            return [ItemAdded(ContentItem(**item))]
        case ["call", str(call_id), str(name)]:
            return [CallStarted(call_id, name)]
        case ["arguments", str(text), str(call_id)]:
            return [CallDelta(call_id, piece) for piece in _pieces(text)]
        case _:
            raise ValueError("A part of the reply is broken.")


def _add(parts: list[list[Any]], event: Event) -> None:
    match event:
        case TextDelta():
            _join(parts, "text", event.text)
        case ReasoningDelta():
            _join(parts, "reasoning", event.text)
        case ItemAdded():
            parts.append(["item", event.item.model_dump()])
        case CallStarted():
            parts.append(["call", event.call_id, event.name])
        case CallDelta():
            _join(parts, "arguments", event.arguments, event.call_id)
        case MessageStarted() | MessageFinished() | ToolStarted() | ToolFinished():
            pass  # the first is understood, the last three are no part of what a model says
        case _:
            assert_never(event)


def _join(parts: list[list[Any]], kind: str, text: str, *more: str) -> None:
    last = parts[-1] if parts else None
    if last is not None and last[0] == kind and last[2:] == list(more):
        last[1] += text
    elif text:
        parts.append([kind, text, *more])


def _pieces(text: str) -> Iterable[str]:
    return (text[at : at + _PIECE] for at in range(0, len(text), _PIECE))
