"""The body of an operation: what a model fills in, which of it are files, and how it is written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import quote, urlencode

import httpx

from core.errors import BadArgumentsError
from core.tools.openapi.document import node, plain, rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from core.tools.given_files import GivenFile
    from core.tools.openapi.document import Document, Node
    from core.tools.openapi.schema import Schemas

WHOLE: Final = ""
"""Among the files of a body: the body itself is one."""
PARTS: Final = "multipart/form-data"
_FORM: Final = "application/x-www-form-urlencoded"
_KNOWN: Final = ("application/json", _FORM, PARTS, "text/plain")
_ANY: Final = "application/octet-stream"
_BYTES: Final = ("image/", "audio/", "video/", "*/", "application/*", _ANY, "application/pdf", "application/zip")
_SAID: Final = "The name of a file of this conversation"


@dataclass(frozen=True, slots=True)
class Body:
    """What an operation takes besides its parameters.

    Args:
        media_type: How it is sent.
        schema: JSON Schema of what a model fills in: files by their names.
        is_needed: Whether there must be one.
        files: The parts that are files, each with the kinds that the service takes ("" for any); `WHOLE` is the body.
    """

    media_type: str
    schema: dict[str, Any]
    is_needed: bool
    files: Mapping[str, str] = field(default_factory=dict[str, str])


def body_of(document: Document, about: Node, schemas: Schemas) -> Body | None:
    """The body that an operation takes, in the way of those that it offers which serves best."""
    body = document.resolved(about.get("requestBody"))
    types = {str(one).partition(";")[0].strip().lower(): part for one, part in node(body.get("content")).items()}
    if not types:
        return None
    parts = document.resolved(types.get(PARTS))
    files = dict(_files(document, parts))
    json_like = [one for one in types if one.endswith("+json")]
    liked = [_KNOWN[0], *json_like, *([PARTS] if files else []), *_KNOWN[1:]]
    media_type = next((one for one in liked if one in types), next(iter(types)))
    value = document.resolved(types[media_type]).get("schema")
    is_needed = body.get("required") is True
    if media_type == PARTS:
        return Body(media_type, _with_files(_described(schemas.of(value), body), files), is_needed, files)
    if media_type not in liked and (_is_bytes(media_type) or _is_file(document.resolved(value), media_type)):
        return Body(media_type, _file_schema(_described({}, body)), is_needed, {WHOLE: media_type})
    schema = schemas.of(value) if media_type in liked else {"type": "string"}
    return Body(media_type, _described(schema, body), is_needed)


def written(
    media_type: str, value: Any, files: Mapping[str, str], given: Callable[[str], tuple[GivenFile, bytes]]
) -> tuple[str, bytes]:
    """The body with the type to send it as.

    Args:
        media_type: The operation's.
        value: The argument, checked against the schema.
        files: The operation's.
        given: The file of a name, with its bytes.

    Raises:
        BadArgumentsError: There is no such file, or a part cannot be written.
        ToolError: A file cannot be read.
    """
    if WHOLE in files:
        file, data = given(_name(value))
        return (file.media_type if "*" in media_type else media_type), data
    if media_type == "application/json" or media_type.endswith("+json"):
        return media_type, json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
    if media_type == _FORM and isinstance(value, Mapping):
        fields = [(name, text_of(one)) for name, one in _each(cast("Mapping[str, Any]", value))]
        return media_type, urlencode(fields, quote_via=quote).encode()
    if media_type == PARTS and isinstance(value, Mapping):
        return _in_parts([_part(name, one, files, given) for name, one in _each(cast("Mapping[str, Any]", value))])
    return media_type, text_of(value).encode("utf-8", "replace")


def names_in(value: Any, files: Mapping[str, str]) -> list[str]:
    """The names of the files that a body mentions, in order, each once."""
    if WHOLE in files:
        return [value] if isinstance(value, str) else []
    found = [one for name, one in _each(node(value)) if name in files and isinstance(one, str)]
    return list(dict.fromkeys(found))


def text_of(value: object) -> str:
    """A value as it is written outside of JSON."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    return json.dumps(value, ensure_ascii=False)


_Part = tuple[str, tuple[str | None, bytes, str | None]]


def _part(name: str, value: object, files: Mapping[str, str], given: Callable[[str], tuple[GivenFile, bytes]]) -> _Part:
    if name not in files:
        return name, (None, text_of(value).encode(), "application/json" if isinstance(value, Mapping) else None)
    file, data = given(_name(value))
    wanted = [one for each in files[name].split(",") if (one := each.strip()) and "*" not in one and one != _ANY]
    kind = file.media_type if file.media_type in wanted or len(wanted) != 1 else wanted[0]
    return name, (file.name, data, kind)


def _in_parts(parts: list[_Part]) -> tuple[str, bytes]:
    if not parts:
        raise BadArgumentsError("The field 'body' is empty.", field="body")
    request = httpx.Request("POST", "http://here", files=parts)
    return request.headers["content-type"], request.read()


def _each(value: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, part in value.items():
        many = cast("list[object]", part) if isinstance(part, list) else [part]
        yield from ((str(name), one) for one in many if one is not None)


def _name(value: object) -> str:
    if not isinstance(value, str):
        raise BadArgumentsError("A file is given by its name.")
    return value


def _files(document: Document, parts: Node) -> Iterator[tuple[str, str]]:
    """The parts of a form that are files."""
    encoding = node(parts.get("encoding"))
    for name, schema in _properties(document, parts.get("schema")):
        kinds = str(document.resolved(encoding.get(name)).get("contentType") or "")
        of_each = schema.get("items") if _type(schema) == "array" or "items" in schema else schema
        one = document.resolved(of_each)
        if _is_file(one, kinds):
            yield name, kinds or str(one.get("contentMediaType") or "")


def _properties(document: Document, schema: object) -> Iterator[tuple[str, Node]]:
    found = document.resolved(schema)
    for each in (found, *map(document.resolved, rows(found.get("allOf")))):
        for name, part in node(each.get("properties")).items():
            own = document.resolved(part)
            choices = [document.resolved(one) for one in (*rows(own.get("anyOf")), *rows(own.get("allOf")))]
            yield str(name), next((one for one in choices if _type(one) != "null"), own) if choices else own


def _is_file(schema: Node, kinds: str) -> bool:
    if schema.get("contentEncoding"):
        return False  # bytes written as text, which is what a model fills in
    if schema.get("format") == "binary" or schema.get("contentMediaType"):
        return _type(schema) in {"string", ""}
    return not _type(schema) and any(_is_bytes(one.strip()) for one in kinds.split(","))


def _is_bytes(media_type: str) -> bool:
    return media_type.startswith(_BYTES) and not media_type.endswith("+xml")


def _type(schema: Node) -> str:
    named = schema.get("type")
    found = [str(one) for one in rows(named) if one != "null"]
    return found[0] if found else str(named or "")


def _with_files(schema: dict[str, Any], files: Mapping[str, str]) -> dict[str, Any]:
    """The schema of a form whose files are given by name."""
    made = dict(schema)
    if "allOf" in made:
        made["allOf"] = [_with_files(part, files) for part in rows(made["allOf"])]
    own = dict(cast("dict[str, dict[str, Any]]", made.get("properties") or {}))
    for name in own.keys() & files.keys():
        is_list = "items" in own[name]
        own[name] = {**own[name], "items": _file_schema({})} if is_list else _file_schema(own[name])
    return {**made, "properties": own} if own else made


def _file_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    words = str(schema.get("description") or "")
    return {"type": "string", "description": f"{_SAID}. {words}".strip() if words else f"{_SAID}."}


def _described(schema: dict[str, Any], row: Node) -> dict[str, Any]:
    words = plain(str(row.get("description") or schema.get("description") or ""), 300)
    return {**schema, "description": words} if words else schema
