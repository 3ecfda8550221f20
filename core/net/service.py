"""Asking a service on the web with a key: through the same guard as every fetch, and to one address only.

A redirect is never followed, for the key would go along. What goes wrong names the host and nothing that was sent.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from core.net.addresses import Reach
from core.net.fetcher import FetchLimits, Outgoing, body_of, checked, connected, sent

if TYPE_CHECKING:
    from collections.abc import Mapping

_LIMITS = FetchLimits(size=8 * 1024 * 1024, seconds=30.0)
_OPEN = Reach()
_LONGEST_WAIT = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What a service answered.

    Args:
        host: Who.
        status: As HTTP has it; a redirect is an answer too.
        retry_after: Seconds that it asks to wait; `None` if it says none.
    """

    host: str
    status: int
    retry_after: float | None
    data: bytes

    def json(self) -> Any:
        """What it says.

        Raises:
            ValueError: It is no JSON.
        """
        try:
            return json.loads(self.data)
        except RecursionError as error:
            raise ValueError("nested too deep") from error


async def ask(
    url: str,
    *,
    query: Mapping[str, str] | None = None,
    body: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
    limits: FetchLimits = _LIMITS,
    reach: Reach = _OPEN,
) -> Answer:
    """Ask a service once.

    Args:
        url: Where; it begins with `http://` or `https://`.
        query: Added to the address.
        body: Sent as JSON, with POST; without it the request is a GET.
        headers: Besides the usual ones, such as the one with a key: printable ASCII.
        limits: What it may cost; its media types and redirects do not count.
        reach: How far it may go: the open internet by default.

    Raises:
        FetchError: The address is none, may not be called, or nobody answers within the limits.
    """
    target = checked(url)
    if query:
        target = target.copy_merge_params(dict(query))
    said, content, method = dict(headers or {}), None, "GET"
    if body is not None:
        method, content = "POST", json.dumps(body, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
        said["content-type"] = "application/json"
    async with connected(target, limits, reach) as transport:
        response = await sent(
            transport, Outgoing(target, method, {"accept": "application/json", **said}, content), reach
        )
        try:
            data = await body_of(response, target.host, limits.size)
            return Answer(
                target.host, response.status_code, seconds_to_wait(response.headers.get("retry-after", "")), data
            )
        finally:
            await response.aclose()


def seconds_to_wait(said: str) -> float | None:
    """What a header `Retry-After` says, in seconds; a date is not counted."""
    try:
        seconds = float(said)
    except ValueError:
        return None
    return seconds if 0 <= seconds <= _LONGEST_WAIT else None
