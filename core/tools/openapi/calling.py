"""Sends a request to a service through the guard of every fetch, and turns what comes back into a result."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from core.errors import FetchError, ToolError
from core.llm.media import kind_of
from core.messages.content import ContentItem
from core.net.addresses import Reach
from core.net.fetcher import FetchLimits, Outgoing, body_of, checked, connected, sent
from core.net.names import name_of
from core.tools.base import ToolResult
from core.tools.openapi.document import plain

if TYPE_CHECKING:
    import httpx

    from core.tools.openapi.credentials import Keys
    from core.tools.openapi.request import Request

_LIMITS: Final = FetchLimits(size=16 * 1024 * 1024, seconds=55.0)
_ELSEWHERE: Final = Reach()  # where a service sends on to: the open internet, whatever is agreed for itself
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_OURS_ALONE: Final = frozenset({"authorization", "cookie", "proxy-authorization"})
_TEXTS: Final = ("text/", "application/json", "application/xml", "application/yaml", "application/javascript")
_PICTURES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_ANYTHING: Final = frozenset({"application/octet-stream", "binary/octet-stream"})
_LONGEST_REASON: Final = 300


async def called(request: Request, keys: Keys, reach: Reach) -> ToolResult:
    """Send it, and the result.

    Args:
        request: What is sent.
        keys: Taken out of whatever comes back.
        reach: How far the service itself may be.

    Raises:
        FetchError: It may not be called, does not answer, or answers too much.
        ToolError: It answers that it will not.
    """
    what = Outgoing(checked(request.url), request.method, request.headers, request.content)
    home = _origin(what.url)
    async with connected(what.url, _LIMITS, reach) as transport:
        for _ in range(_LIMITS.redirects + 1):
            response = await sent(transport, what, reach if _origin(what.url) == home else _ELSEWHERE)
            try:
                if response.status_code not in _REDIRECTS or not response.headers.get("location"):
                    return await _result(response, what.url, keys)
                what = _next(what, response)
            finally:
                await response.aclose()
    raise FetchError(f"{what.url.host} sends from one address to the next.", key="fetch_redirects", host=what.url.host)


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


def _next(what: Outgoing, response: httpx.Response) -> Outgoing:
    """Where the service sends on to. Nothing of ours goes to another origin: no key, no header, no body."""
    try:
        target = checked(str(what.url.join(response.headers["location"])))
    except (FetchError, ValueError) as error:
        raise ToolError(f"{what.url.host} sends on to an address that is none.") from error
    is_same = _origin(target) == _origin(what.url)
    if what.method in {"GET", "HEAD"}:
        if is_same:
            return replace(what, url=target)
        kept = {name: value for name, value in what.headers.items() if name == "accept"}
        return Outgoing(target, what.method, kept)
    if not is_same:
        raise ToolError(f"{what.url.host} sends on to {target.host}; what changes something is not sent there.")
    if response.status_code in {307, 308}:
        return replace(what, url=target)
    headers = {name: value for name, value in what.headers.items() if name != "content-type"}
    return Outgoing(target, "GET", headers)


async def _result(response: httpx.Response, url: httpx.URL, keys: Keys) -> ToolResult:
    media_type, _, more = response.headers.get("content-type", "").lower().partition(";")
    media_type = media_type.strip()
    data = await body_of(response, url.host, _LIMITS.size)
    charset = more.partition("charset=")[2].split(";")[0].strip(" \"'")
    if response.status_code >= 400 or response.status_code in _REDIRECTS:
        raise _refused(response.status_code, url.host, keys.hidden(_text(data[:4096], charset)))
    if not data:
        return ToolResult(f"Done: {url.host} answered {_status(response.status_code)}, and nothing else.")
    if not media_type or media_type.startswith(_TEXTS) or media_type.endswith(("+json", "+xml")):
        return ToolResult(keys.hidden(_text(data, charset)))
    name = name_of(url.path, response.headers.get("content-disposition", ""), media_type)
    return ToolResult(_told(media_type, len(data)), (_item(media_type, name, data),))


def _item(media_type: str, name: str, data: bytes) -> ContentItem:
    if media_type in _ANYTHING:  # a picture is shown, whatever the service calls its bytes
        media_type = kind_of(data[:32]) or media_type
    named = f";name={quote(name, '')}" if name else ""
    kind = media_type if media_type.isascii() and media_type.replace("/", "").replace("-", "").isalnum() else ""
    address = f"data:{kind or 'application/octet-stream'}{named};base64,{b64encode(data).decode()}"
    if media_type in _PICTURES:
        return ContentItem(image=address)
    return ContentItem(audio=address) if media_type.startswith("audio/") else ContentItem(file=address)


def _told(media_type: str, size: int) -> str:
    return f"The service answered with a file ({plain(media_type, 80)}, {size} bytes)."


def _refused(status: int, host: str, said: str) -> ToolError:
    reason = plain(said, _LONGEST_REASON)
    text = f"{host} answered {_status(status)}{f': {reason}' if reason else '.'}"
    return ToolError(text, key="service_refused", host=host, status=status)


def _status(status: int) -> str:
    try:
        return f"{status} ({HTTPStatus(status).phrase})"
    except ValueError:
        return str(status)


def _text(data: bytes, charset: str) -> str:
    try:
        return data.decode(charset or "utf-8-sig", "replace")
    except LookupError:
        return data.decode("utf-8-sig", "replace")
