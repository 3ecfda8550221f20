"""What every handler is given, and how it reads the JSON that the page's script sends."""

from __future__ import annotations

import asyncio
import json
import traceback
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, StreamingResponse

from webui.deletions import Deletions
from webui.page_look import Look

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from core.engine import Engine
    from core.settings import Settings
    from webui.words import Words

_LONGEST = 32 * 1024
ALIVE = 15.0  # seconds


@dataclass(frozen=True, slots=True)
class WebContext:
    """Built once per process, after the port is bound.

    Args:
        engine: Stores, model, library and runs; already entered.
        settings: The settings it was built from.
        words: Gives the words for an `Accept-Language` header: `Words.of`.
        look: What a program chose of the page.
        deletions: The conversations that are about to be deleted.
    """

    engine: Engine
    settings: Settings
    words: Callable[[str], Words]
    look: Look = field(default_factory=Look)
    deletions: Deletions = field(default_factory=Deletions)


async def json_body(request: Request, longest: int = _LONGEST) -> dict[str, Any] | None:
    """The JSON object of a request; `None` where the page's script did not send it, or the client has left.

    Args:
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


async def answered_in_time(work: Coroutine[Any, Any, dict[str, Any]], headers: Mapping[str, str]) -> Response:
    """What `work` gives, as JSON with status 200; where it takes long, a space comes every 15 seconds before it.

    A proxy gives up an answer of which nothing comes, after 60 seconds as a rule, and spaces before JSON mean nothing.
    The work ends with the request.

    Args:
        headers: Besides type and length.
    """
    task = asyncio.create_task(work)
    try:
        done, _ = await asyncio.wait({task}, timeout=ALIVE)
    except asyncio.CancelledError:
        task.cancel()
        raise
    if done:
        return JSONResponse(task.result(), headers=headers)

    async def told() -> AsyncIterator[bytes]:
        try:
            while not task.done():
                yield b" "
                await asyncio.wait({task}, timeout=ALIVE)
            yield bytes(JSONResponse(task.result()).body)
        finally:
            task.cancel()

    return StreamingResponse(told(), media_type="application/json", headers=dict(headers))


def log_text(error: Exception) -> str:
    """An error for the log: of what kind it is, and where it comes from; its own words could hold what was typed."""
    return "".join([*traceback.format_tb(error.__traceback__), type(error).__name__])


def text_of(value: object) -> str:
    """A text fit to be stored, "" for anything else: half a character is none."""
    return value.encode(errors="replace").decode() if isinstance(value, str) else ""
