"""From the arguments of a call to a request, each in its place; sent through the guard, and its answer a result."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import quote, urlencode
from uuid import uuid4

from core.errors import BadArgumentsError, FetchError, SettingsError, ToolError
from core.llm.media import kind_of
from core.messages.content import ContentItem
from core.net.addresses import Reach
from core.net.fetcher import FetchLimits, Outgoing, body_of, checked, connected, name_of, sent
from core.tools.base import ToolResult
from core.tools.given_files import LARGEST, named
from core.tools.openapi.document import plain
from core.tools.openapi.operations import text_of, written

if TYPE_CHECKING:
    import httpx

    from core.tools.given_files import GivenFile
    from core.tools.openapi.credentials import Keys, Placed
    from core.tools.openapi.operations import Operation, Parameter


_NO_FILES: Final[Mapping[str, GivenFile]] = MappingProxyType({})
_SEPARATORS: Final = {"spaceDelimited": " ", "pipeDelimited": "|"}


@dataclass(frozen=True, slots=True)
class Request:
    """What is sent. Its address and headers may hold a key: they are never shown."""

    method: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    content: bytes | None = field(default=None, repr=False)


def request_of(
    operation: Operation,
    arguments: Mapping[str, Any],
    keys: Placed,
    files: Mapping[str, GivenFile] = _NO_FILES,
    once: str = "",
) -> Request:
    """The request of a call.

    Args:
        arguments: Checked against the operation's schema.
        files: Those that a call may name.
        once: Stands for this call, where the service takes such a key; a new one where it is left out.

    Raises:
        BadArgumentsError: A value cannot stand where it belongs, or there is no such file.
        SettingsError: Nobody says where the service is.
        ToolError: A file cannot be read, or all together are too large.
    """
    if operation.server is None:
        raise SettingsError("The document names no server.", hint="Give its address.", key="openapi_no_server")
    parts = _Parts(operation.path)
    for parameter in operation.parameters:
        if arguments.get(parameter.key) is not None:
            parts.put(parameter, arguments[parameter.key])
    if "{" in parts.path:
        raise BadArgumentsError("A part of the address is missing.")
    query = urlencode([*parts.query, *keys.query.items()], quote_via=quote)
    url = operation.server.partition("#")[0].partition("?")[0].rstrip("/") + parts.path
    if cookies := {**parts.cookies, **keys.cookies}:
        parts.headers["cookie"] = "; ".join(f"{name}={value}" for name, value in cookies.items())
    content = None
    if operation.body and arguments.get(operation.body) is not None:
        parts.headers["content-type"], content = written(
            operation.media_type, arguments[operation.body], operation.files, _Reading(files).read
        )
    known = {operation.once.lower(): once or str(uuid4())} if operation.once else {}
    headers = {**parts.headers, **known, **keys.headers}
    return Request(operation.method, f"{url}?{query}" if query else url, headers, content)


@dataclass(slots=True)
class _Reading:
    """Reads the files of one request, which are bounded together."""

    files: Mapping[str, GivenFile]
    size: int = 0

    def read(self, name: str) -> tuple[GivenFile, bytes]:
        """A file with its bytes."""
        file = named(self.files, name)
        self.size += file.size
        if self.size > LARGEST:
            raise ToolError("The files are larger than 32 MB together.", hint="Send fewer, or smaller ones.")
        return file, file.read()


@dataclass(slots=True)
class _Parts:
    """A request that is being put together."""

    path: str
    query: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    headers: dict[str, str] = field(default_factory=lambda: {"accept": "application/json, */*;q=0.8"})
    cookies: dict[str, str] = field(default_factory=dict[str, str])

    def put(self, parameter: Parameter, value: Any) -> None:
        """Put a value where it belongs."""
        match parameter.where:
            case "path":
                self.path = self.path.replace(f"{{{parameter.name}}}", _segment(parameter, value))
            case "query":
                self.query += _pairs(parameter, value)
            case "header":
                self.headers[parameter.name.lower()] = _header(parameter, value)
            case "cookie":
                self.cookies[quote(parameter.name, "")] = quote(_joined(value), "")


def _segment(parameter: Parameter, value: Any) -> str:
    """A value in the path: one step of it, that leads neither up nor elsewhere."""
    text = quote(_joined(value), "")
    if not text or set(text) <= {"."}:
        raise BadArgumentsError(f"The field {parameter.key!r} cannot stand in an address.", field=parameter.key)
    return text


def _header(parameter: Parameter, value: Any) -> str:
    text = _joined(value)
    if not text.isascii() or not text.isprintable():
        raise BadArgumentsError(f"The field {parameter.key!r} cannot be sent as a header.", field=parameter.key)
    return text


def _pairs(parameter: Parameter, value: Any) -> list[tuple[str, str]]:
    """A value in the query, by the parameter's style."""
    if isinstance(value, list):
        parts = [text_of(part) for part in cast("list[object]", value)]
        if parameter.explode and parameter.style == "form":
            return [(parameter.name, part) for part in parts]
        return [(parameter.name, _SEPARATORS.get(parameter.style, ",").join(parts))]
    if isinstance(value, Mapping):
        inner = {str(key): text_of(part) for key, part in cast("Mapping[str, object]", value).items()}
        if parameter.style == "deepObject":
            return [(f"{parameter.name}[{key}]", part) for key, part in inner.items()]
        if parameter.explode:
            return list(inner.items())
    return [(parameter.name, _joined(value))]


def _joined(value: Any) -> str:
    match value:
        case list():
            return ",".join(map(text_of, cast("list[object]", value)))
        case Mapping():
            parts = cast("Mapping[str, object]", value).items()
            return ",".join(f"{key},{text_of(part)}" for key, part in parts)
        case _:
            return text_of(value)


_LIMITS: Final = FetchLimits(size=16 * 1024 * 1024, seconds=55.0)
_ELSEWHERE: Final = Reach()  # where a service sends on to: the open internet, whatever is agreed for itself
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_TEXTS: Final = ("text/", "application/json", "application/xml", "application/yaml", "application/javascript")
_PICTURES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_ANYTHING: Final = frozenset({"application/octet-stream", "binary/octet-stream"})
_LONGEST_REASON: Final = 300


async def called(request: Request, keys: Keys, reach: Reach) -> ToolResult:
    """Send it, and the result.

    Args:
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
