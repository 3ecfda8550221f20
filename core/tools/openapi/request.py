"""From the arguments of a call to a request: each in its place, none able to leave it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import quote, urlencode

from core.errors import BadArgumentsError, SettingsError, ToolError
from core.tools.given_files import LARGEST, named
from core.tools.openapi.body import text_of, written

if TYPE_CHECKING:
    from core.tools.given_files import GivenFile
    from core.tools.openapi.credentials import Placed
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
    operation: Operation, arguments: Mapping[str, Any], keys: Placed, files: Mapping[str, GivenFile] = _NO_FILES
) -> Request:
    """The request of a call.

    Args:
        operation: What is called.
        arguments: Checked against the operation's schema.
        keys: What goes along.
        files: Those that a call may name.

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
    headers = {**parts.headers, **keys.headers}
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
