"""Nothing that cannot be seen reaches a model: the last look at messages and tools, whoever put them together."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from core.messages.content import ContentItem
from core.messages.invisible import without_invisible

if TYPE_CHECKING:
    from collections.abc import Mapping

    from core.llm.request import ChatRequest, Source, Stream
    from core.messages.message import Message


def visible(request: ChatRequest, below: Source) -> Stream:
    """The layer: takes invisible characters out; what has none stays the same object."""
    messages = tuple(_seen(message) for message in request.messages)
    if any(new is not old for new, old in zip(messages, request.messages, strict=True)):
        request = replace(request, messages=messages)
    functions = tuple(cast("Mapping[str, Any]", _value(function)) for function in request.functions)
    if any(new is not old for new, old in zip(functions, request.functions, strict=True)):
        request = replace(request, functions=functions)
    return below(request)


def _seen(message: Message) -> Message:
    if isinstance(message.content, str):
        text, removed = without_invisible(message.content)
        return message.model_copy(update={"content": text}) if removed else message
    if not any(without_invisible(item.text).removed for item in message.content if item.text):
        return message
    items = [ContentItem(text=without_invisible(item.text).text) if item.text else item for item in message.content]
    return message.model_copy(update={"content": items})


def _value(value: object) -> object:
    """A JSON value whose texts are clean, its keys too."""
    if isinstance(value, str):
        text, removed = without_invisible(value)
        return text if removed else value
    if isinstance(value, list | tuple):
        old = cast("list[object]", value)
        new = [_value(one) for one in old]
        return new if any(a is not b for a, b in zip(new, old, strict=True)) else cast("object", value)
    if isinstance(value, dict):
        known = cast("dict[str, object]", value)
        cleaned = {cast("str", _value(name)): _value(one) for name, one in known.items()}
        same = len(cleaned) == len(known) and all(
            name is old and cleaned[name] is known[old] for name, old in zip(cleaned, known, strict=True)
        )
        return known if same else cleaned
    return value
