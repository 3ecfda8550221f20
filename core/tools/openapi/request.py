"""From the arguments of a call to a request: each in its place, none able to leave it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import quote, urlencode

from core.errors import BadArgumentsError, SettingsError

if TYPE_CHECKING:
    from core.tools.openapi.credentials import Placed
    from core.tools.openapi.operations import Operation, Parameter

_SEPARATORS: Final = {"spaceDelimited": " ", "pipeDelimited": "|"}


@dataclass(frozen=True, slots=True)
class Request:
    """What is sent. Its address and headers may hold a key: they are never shown."""

    method: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    content: bytes | None = field(default=None, repr=False)


def request_of(operation: Operation, arguments: Mapping[str, Any], keys: Placed) -> Request:
    """The request of a call.

    Args:
        operation: What is called.
        arguments: Checked against the operation's schema.
        keys: What goes along.

    Raises:
        BadArgumentsError: A value cannot stand where it belongs.
        SettingsError: Nobody says where the service is.
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
        parts.headers["content-type"], content = _body(operation.media_type, arguments[operation.body])
    headers = {**parts.headers, **keys.headers}
    return Request(operation.method, f"{url}?{query}" if query else url, headers, content)


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
        parts = [_text(part) for part in cast("list[object]", value)]
        if parameter.explode and parameter.style == "form":
            return [(parameter.name, part) for part in parts]
        return [(parameter.name, _SEPARATORS.get(parameter.style, ",").join(parts))]
    if isinstance(value, Mapping):
        inner = {str(key): _text(part) for key, part in cast("Mapping[str, object]", value).items()}
        if parameter.style == "deepObject":
            return [(f"{parameter.name}[{key}]", part) for key, part in inner.items()]
        if parameter.explode:
            return list(inner.items())
    return [(parameter.name, _joined(value))]


def _joined(value: Any) -> str:
    match value:
        case list():
            return ",".join(map(_text, cast("list[object]", value)))
        case Mapping():
            parts = cast("Mapping[str, object]", value).items()
            return ",".join(f"{key},{_text(part)}" for key, part in parts)
        case _:
            return _text(value)


def _text(value: object) -> str:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    return json.dumps(value, ensure_ascii=False)


def _body(media_type: str, value: Any) -> tuple[str, bytes]:
    """The body with the type to send it as."""
    if media_type == "application/json" or media_type.endswith("+json"):
        return media_type, json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
    if media_type == "application/x-www-form-urlencoded" and isinstance(value, Mapping):
        return media_type, urlencode(_fields(cast("Mapping[str, Any]", value)), quote_via=quote).encode()
    if media_type == "multipart/form-data" and isinstance(value, Mapping):
        return _multipart(_fields(cast("Mapping[str, Any]", value)))
    return media_type, _text(value).encode("utf-8", "replace")


def _fields(value: Mapping[str, Any]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for name, part in value.items():
        many = cast("list[object]", part) if isinstance(part, list) else [part]
        found += [(str(name), _text(one)) for one in many if one is not None]
    return found


def _multipart(fields: list[tuple[str, str]]) -> tuple[str, bytes]:
    boundary = f"part-{token_hex(16)}"
    parts = [
        f'--{boundary}\r\ncontent-disposition: form-data; name="{quote(name, " ")}"\r\n\r\n{value}\r\n'
        for name, value in fields
    ]
    text = "".join([*parts, f"--{boundary}--\r\n"])
    return f"multipart/form-data; boundary={boundary}", text.encode("utf-8", "replace")
