"""Who asks at `/v1`: the key alone decides, never a cookie, and never one in an address; bodies are bounded."""

from __future__ import annotations

import asyncio
import json
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, cast

from starlette.requests import ClientDisconnect

from core.doors.asked import LONGEST_BODY, BadRequestError
from core.errors import ParlourError
from core.storage.api_keys import PREFIX
from webui.doors.refusals import refusal, refused

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.responses import Response

    from core.doors.door import Door, Doors
    from core.storage.api_keys import Scope

    Work = Callable[[Request, Door], Awaitable[Response]]

_IN_ADDRESSES: Final = frozenset({"api_key", "apikey", "api-key", "key", "token", "access_token", "authorization"})
_LARGE: Final = 256 * 1024  # bytes of JSON that are read in a thread
_WHO: Final = {"www-authenticate": 'Bearer realm="Parlour"'}


class Entry:
    """Lets in whoever shows a key that may do what is asked.

    Args:
        doors: Know whose a key is.
    """

    def __init__(self, doors: Doors) -> None:
        self._doors = doors

    def guarded(self, work: Work, scope: Scope | None) -> Callable[[Request], Awaitable[Response]]:
        """The work, for whoever may have it done.

        Args:
            scope: What the key must be for; `None` where any key will do.
        """

        async def answer(request: Request) -> Response:
            shown = key_of(request)
            if isinstance(shown, str):
                try:
                    door = await self._doors.owner_of_key(shown, visitor=bool(request.scope.get("visitor")))
                    turned_away = _turned_away(door, scope)
                    return turned_away or await work(request, cast("Door", door))
                except ClientDisconnect:
                    return refusal(400, "The request broke off.", "broken_off")
                except ParlourError as error:
                    return refused(error)
            return shown

        return answer


def key_of(request: Request) -> str | Response:
    """The key that a request shows, or what it is refused with."""
    for name, value in request.query_params.multi_items():
        if name.lower() in _IN_ADDRESSES or value.startswith(PREFIX):
            said = (
                "A key in an address ends up in logs, so it is not taken from there. "
                "Send it as the header Authorization: Bearer ..., and revoke this one."
            )
            return refusal(400, said, "key_in_address")
    kind, _, shown = request.headers.get("authorization", "").partition(" ")
    if kind.lower() != "bearer" or not shown.strip():
        said = "This needs a key, as the header Authorization: Bearer ... Make one in Parlour's settings."
        return refusal(401, said, "missing_api_key", headers=_WHO)
    return shown.strip()


def _turned_away(door: Door | None, scope: Scope | None) -> Response | None:
    if door is None:
        said = "This key is not known here: it was revoked, its time is up, or it never was one."
        return refusal(401, said, "invalid_api_key", headers=_WHO)
    if scope not in door.key.scopes if scope is not None else door.key.scopes == ("embed",):
        said = f"This key is not for that: it lacks {scope or 'chat'!r}. Make one that has it in Parlour's settings."
        return refusal(403, said, "insufficient_scope", kind="permission_error")
    if scope is not None and door.key.is_spent:
        said = "The budget of this key is used up for this month."
        headers = {"retry-after": str(_till_next_month()), "x-should-retry": "false"}
        return refusal(429, said, "insufficient_quota", kind="insufficient_quota", headers=headers)
    return None


async def json_of(request: Request) -> dict[str, Any]:
    """The JSON object of a request. Raises BadRequestError, also for one that is too large (code `too_large`)."""
    told = request.headers.get("content-length", "")
    if told.isdecimal() and int(told) > LONGEST_BODY:
        raise _too_large()
    raw = bytearray()
    async for piece in request.stream():
        raw += piece
        if len(raw) > LONGEST_BODY:
            raise _too_large()
    try:
        given: object = json.loads(raw) if len(raw) <= _LARGE else await asyncio.to_thread(json.loads, bytes(raw))
    except (ValueError, RecursionError) as error:
        raise BadRequestError("The body of the request is no JSON.", code="invalid_json") from error
    if not isinstance(given, dict):
        raise BadRequestError("The body of the request must be a JSON object.", code="invalid_json")
    return cast("dict[str, Any]", given)


def _too_large() -> BadRequestError:
    megabytes = LONGEST_BODY // (1024 * 1024)
    said = f"The request is larger than {megabytes} MB."
    return BadRequestError(said, code="too_large", hint="Send large files to /v1/files, and name them.")


def _till_next_month() -> int:
    now = datetime.fromtimestamp(time.time(), UTC)
    following = now.replace(
        year=now.year + now.month // 12, month=now.month % 12 + 1, day=1, hour=0, minute=0, second=0, microsecond=0
    )
    return max(1, int((following - now).total_seconds()))
