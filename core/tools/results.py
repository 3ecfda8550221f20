"""From what a tool returned to the message that a model reads."""

from __future__ import annotations

import json
from base64 import b64encode
from binascii import a2b_base64
from typing import TYPE_CHECKING, Any, cast

from core.llm.media import kind_of
from core.messages.content import ContentItem
from core.messages.invisible import without_invisible
from core.messages.message import FUNCTION, Message
from core.tools.base import ToolResult
from core.tools.cut import cut_to_ends

if TYPE_CHECKING:
    from collections.abc import Mapping

_LARGEST_WHOLE = 24 * 1024 * 1024  # bytes: a longer result is not kept beside its ends
_NO_FILE_NAME = str.maketrans(dict.fromkeys('/\\:*?"<>| ', "_"))


def as_result(returned: object) -> ToolResult:
    """Whatever a tool returns, in one form."""
    match returned:
        case ToolResult():
            return returned
        case None:
            return ToolResult()
        case str():
            return ToolResult(returned)
        case list() if found := _items(cast("list[object]", returned)):
            text = "\n".join(item.text for item in found if item.text)
            return ToolResult(text, tuple(item for item in found if item.type != "text"))
        case _:
            return ToolResult(_json(returned))


def _json(value: object) -> str:
    """JSON that every reader takes: what no number of JSON is stands there as text."""
    try:
        return json.dumps(value, ensure_ascii=False, indent=2, default=str, allow_nan=False)
    except ValueError:  # NaN, an infinity, or a circle
        written = json.dumps(value, ensure_ascii=False, default=str)
        read = json.loads(written, parse_constant=str)
        return json.dumps(read, ensure_ascii=False, indent=2)


def as_message(name: str, result: ToolResult, limit: int, **about: Any) -> Message:
    """The result as a message. A text that is too long is cut to its ends, and is there whole as its last item.

    Args:
        name: The tool.
        result: What it gave.
        limit: The most bytes of text that a model is shown.
        about: For `extra`, over what the result brings along. There too: `cut_from`, the bytes that a cut text had,
            `whole`, what the file with all of it is called, and `invisible`, how many invisible characters were taken
            out of it.
    """
    seen, removed = without_invisible(result.text)
    text, size = cut_to_ends(seen, limit)
    items = [_as_it_is(item) for item in result.items]
    extra = {**_plain(result.extra), **about}
    if result.passages:
        extra["passages"] = list(result.passages)
    if removed:
        extra["invisible"] = removed
    if size:
        extra["cut_from"] = size
    if 0 < size <= _LARGEST_WHOLE:
        extra["whole"] = f"{name.translate(_NO_FILE_NAME)}.txt"
        raw = b64encode(seen.encode("utf-8", "replace")).decode()
        items.append(ContentItem(file=f"data:text/plain;charset=utf-8;base64,{raw}"))
    if not items:
        return Message(FUNCTION, text, name=name, extra=extra)
    shown = [ContentItem(text=text)] if text else []
    return Message(FUNCTION, [*shown, *items], name=name, extra=extra)


def _as_it_is(item: ContentItem) -> ContentItem:
    """The item; what calls itself a picture and is none that models see is a file, or no model would go on with it."""
    address = item.image or ""
    if item.type != "image" or not address.startswith("data:"):
        return item
    head, _, data = address.partition(",")
    try:
        begins = a2b_base64(data[:24]) if head.endswith(";base64") else b""
    except ValueError:
        begins = b""
    return item if kind_of(begins) else ContentItem(file=address)


def _plain(extra: Mapping[str, Any]) -> dict[str, Any]:
    """The same as JSON values, since the result is stored; what is none becomes text."""
    try:
        return json.loads(json.dumps(dict(extra), default=str))
    except (TypeError, ValueError, RecursionError):  # keys that are no text, circles
        return {str(key): str(value) for key, value in extra.items()}


def _items(returned: list[object]) -> list[ContentItem]:
    """The same list, if it is one of content items alone."""
    found = [item for item in returned if isinstance(item, ContentItem)]
    return found if len(found) == len(returned) else []
