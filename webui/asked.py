"""What the page's own scripts ask in requests of their own: JSON objects of moderate size."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from starlette.requests import Request

_LONGEST = 32 * 1024


async def asked(request: Request, longest: int = _LONGEST) -> dict[str, Any] | None:
    """The object that a request carries; `None` where it is none of the page's own.

    Args:
        request: The request.
        longest: Bytes that it may have.

    Raises:
        ClientDisconnect: Whoever asked is gone.
    """
    if not request.headers.get("content-type", "").startswith("application/json"):
        return None  # a form of another site could send anything else
    raw = b""
    async for piece in request.stream():
        raw += piece
        if len(raw) > longest:
            return None
    try:
        given = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", given) if isinstance(given, dict) else None


def text_of(value: object) -> str:
    """A text fit to be stored, "" for anything else: half a character is none."""
    return value.encode(errors="replace").decode() if isinstance(value, str) else ""
