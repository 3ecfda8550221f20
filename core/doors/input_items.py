"""What a request for a response said, as items that a program can list later."""

from __future__ import annotations

from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final, cast

from core.doors.asked import BadRequestError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_MOST: Final = 100
_USUAL: Final = "20"
_PREFIXES: Final[Mapping[str, str]] = {
    "message": "msg",
    "function_call": "fc",
    "function_call_output": "fco",
    "reasoning": "rs",
    "compaction": "cmp",
    "mcp_call": "mcp",
    "mcp_approval_request": "mcpr",
    "mcp_approval_response": "mcpa",
}
_BROUGHT: Final = ("image_url", "file_data", "data")  # where a part brings its bytes along


def kept_items(items: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The items of a request as they are listed later, each with an id.

    Pictures, recordings and files that came inside it are left out of them: a file that was uploaded stays named.
    """
    return [_item(one) for one in items]


def listed_items(items: Sequence[Mapping[str, Any]], asked: Mapping[str, str]) -> dict[str, Any]:
    """A page of the items.

    Args:
        items: All of them, in the order in which they were said.
        asked: `limit` (1 to 100, else 20), `order` (`desc`, the newest first, or `asc`) and `after` (an item's id).

    Raises:
        BadRequestError: One of these is something else.
    """
    limit, order, after = asked.get("limit") or _USUAL, asked.get("order") or "desc", asked.get("after")
    if not limit.isascii() or not limit.isdecimal() or not 1 <= int(limit[:9]) <= _MOST:
        raise BadRequestError(f"limit is {limit[:40]!r}; it must be a number from 1 to {_MOST}.", param="limit")
    if order not in {"asc", "desc"}:
        raise BadRequestError(f"order is {order[:40]!r}; it must be 'asc' or 'desc'.", param="order")
    found = list(items) if order == "asc" else list(reversed(items))
    if after:
        at = next((at for at, one in enumerate(found) if one.get("id") == after), None)
        if at is None:
            said = f"after is {after[:80]!r}, which is no item of this response; give the id of one that was listed."
            raise BadRequestError(said, param="after")
        found = found[at + 1 :]
    page = found[: int(limit)]
    first, last = (page[0]["id"], page[-1]["id"]) if page else (None, None)
    return {"object": "list", "data": page, "first_id": first, "last_id": last, "has_more": len(found) > len(page)}


def _item(given: Mapping[str, Any]) -> dict[str, Any]:
    kind = str(given.get("type") or "message")
    about = {"id": f"{_PREFIXES.get(kind, 'item')}_{token_hex(12)}", "type": kind}
    if kind != "message":
        return {**given, **({} if isinstance(given.get("id"), str) else about), "type": kind}
    role, content = given.get("role"), given.get("content")
    if isinstance(content, str):
        content = [_text(role, content)]
    parts = [_part(one) for one in cast("list[Any]", content if isinstance(content, list) else [])]
    return {**about, "role": role, "status": "completed", "content": parts}


def _text(role: object, text: str) -> dict[str, Any]:
    if role == "assistant":
        return {"type": "output_text", "text": text, "annotations": []}
    return {"type": "input_text", "text": text}


def _part(given: object) -> object:
    """A part of a message without what it brings along; a web address stays."""
    if not isinstance(given, dict):
        return given
    part = dict(cast("dict[str, Any]", given))
    for name in _BROUGHT:
        told: object = part.get(name)
        if isinstance(told, dict):
            part[name] = _part(cast("dict[str, Any]", told))
        elif isinstance(told, str) and (name != "image_url" or not told.startswith(("https://", "http://"))):
            part[name] = None
    return part
