"""What the page's own scripts ask in requests of their own: JSON objects of moderate size."""

from __future__ import annotations

import json
import traceback
from typing import TYPE_CHECKING, Any, cast

from starlette.requests import ClientDisconnect

if TYPE_CHECKING:
    from starlette.requests import Request

_LONGEST = 32 * 1024


async def asked(request: Request, longest: int = _LONGEST) -> dict[str, Any] | None:
    """The object that a request carries; `None` where it is none of the page's own, or whoever asked is gone.

    Args:
        request: The request.
        longest: Bytes that it may have.
    """
    if not request.headers.get("content-type", "").startswith("application/json"):
        return None  # a form of another site could send anything else
    raw = b""
    try:
        async for piece in request.stream():
            raw += piece
            if len(raw) > longest:
                return None
    except ClientDisconnect:
        return None
    try:
        given = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", given) if isinstance(given, dict) else None


def failure_of(error: Exception) -> str:
    """An error for the log: of what kind it is, and where it comes from; its own words could hold what was typed."""
    return "".join([*traceback.format_tb(error.__traceback__), type(error).__name__])


def text_of(value: object) -> str:
    """A text fit to be stored, "" for anything else: half a character is none."""
    return value.encode(errors="replace").decode() if isinstance(value, str) else ""
