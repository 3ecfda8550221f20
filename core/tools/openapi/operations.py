"""The operations of an OpenAPI document: what each is called, takes and does, and where it is sent."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import chain
from itertools import count as count_from
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast
from urllib.parse import quote, urlencode, urljoin

import httpx

from core.errors import BadArgumentsError, SettingsError
from core.messages.invisible import without_invisible
from core.tools.openapi.document import Schemas, node, plain, rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from core.tools.given_files import GivenFile
    from core.tools.openapi.document import Document, Node


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
        value: The argument, checked against the schema.
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


Where: TypeAlias = Literal["path", "query", "header", "cookie"]

MOST: Final = 500
METHODS: Final = ("get", "head", "post", "put", "patch", "delete")
_WHERES: Final[Mapping[str, Where]] = {"path": "path", "query": "query", "header": "header", "cookie": "cookie"}
_NOT_IN_NAMES: Final = re.compile(r"[^a-zA-Z0-9_-]+")
_MOST_PARAMETERS: Final = 200  # of one operation: more no model fills in
_LONGEST_NAME: Final = 64  # what model services accept
_LONGEST_DESCRIPTION: Final = 900
# Headers that are not a model's to set: they say who asks, where to, and how the message is read.
_OURS: Final = frozenset(
    {
        *("accept", "accept-encoding", "authorization", "connection", "content-encoding", "content-length"),
        *("content-type", "cookie", "expect", "forwarded", "host", "keep-alive", "origin", "referer", "te", "trailer"),
        *("transfer-encoding", "upgrade", "via", "x-forwarded-for", "x-forwarded-host", "x-http-method-override"),
    }
)

_ONCE: Final = ("header", "idempotency-key")
"""Where a service takes what stands for one request, so that it does it once (draft-ietf-httpapi-idempotency-key)."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter.

    Args:
        key: What a model calls it.
        name: What the service calls it.
        style: How lists and objects are written there.
        explode: Whether each of their parts stands by itself.
    """

    key: str
    name: str
    where: Where
    style: str
    explode: bool


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation.

    Args:
        name: Unique in its document; letters, digits, `_` and `-`.
        path: With the names of parameters in braces.
        server: The address that the path follows; `None` where the document names none.
        schema: JSON Schema of all arguments.
        body: The argument that is the body; "" for none.
        files: What of the body are files, as `Body` says.
        security: Which schemes will do: any of these sets, each with all of its names.
        invisible: How many invisible characters were taken out of what a model reads.
        once: The header by whose value the service knows a request that it has done already; "" for none.
    """

    name: str
    method: str
    path: str
    server: str | None
    summary: str
    description: str
    parameters: tuple[Parameter, ...]
    schema: Mapping[str, Any]
    body: str = ""
    media_type: str = ""
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    security: tuple[frozenset[str], ...] = field(default_factory=tuple)
    invisible: int = 0
    once: str = ""


def operations(document: Document, *, server: str = "", only: Sequence[str] = ()) -> Iterator[Operation]:
    """The operations, in the document's order.

    Args:
        server: Sent there instead of where the document says.
        only: Patterns of the names that are wanted; all if left out.

    Raises:
        SettingsError: There are more than anybody could choose from.
    """
    names: set[str] = set()
    schemas = Schemas(document)
    count = 0
    for path, item in node(document.root.get("paths")).items():
        known = document.resolved(item)
        for method in METHODS:
            if not isinstance(known.get(method), Mapping) or not str(path).startswith("/"):
                continue
            name = unique(_name_of(document.resolved(known[method]), str(path), method), names)
            names.add(name)
            if only and not any(fnmatchcase(name, pattern) for pattern in only):
                continue
            count += 1
            if count > MOST:
                raise SettingsError(
                    f"{document.title} has more than {MOST} operations.",
                    hint="Name those that are wanted.",
                    key="openapi_too_many",
                    most=MOST,
                )
            yield _operation(schemas, name, str(path), method, known, server)


def unique(name: str, taken: set[str], ending: str = "") -> str:
    """The name, no longer than allowed, with an ending where it is taken."""
    name = name[:_LONGEST_NAME]
    endings = chain([f"_{ending}"] if ending else [], (f"_{number}" for number in count_from(2)))
    tried = name
    while tried in taken:
        one = next(endings)
        tried = f"{name[: _LONGEST_NAME - len(one)]}{one}"
    return tried


def _name_of(about: Node, path: str, method: str) -> str:
    plainly = re.sub(r"[^a-zA-Z0-9-]+", "_", path).strip("_")
    name = str(about.get("operationId") or "") or f"{method}_{plainly}"
    return _NOT_IN_NAMES.sub("_", name).strip("_") or method


def servers_of(document: Document, part: Node) -> list[str]:
    """The addresses that a part of the document names, in order; relative ones follow the document's own.

    A whole document that names none means `/`: where it came from itself.
    """
    found: list[str] = []
    named = rows(part.get("servers")) or ([{"url": "/"}] if part is document.root else [])
    for each in named:
        server = document.resolved(each)
        url = str(server.get("url") or "")
        for name, about in node(server.get("variables")).items():
            url = url.replace(f"{{{name}}}", str(document.resolved(about).get("default") or ""))
        url = urljoin(document.url, url) if document.url else url
        if url.lower().startswith(("http://", "https://")):
            found.append(url)
    return found


def _operation(schemas: Schemas, name: str, path: str, method: str, item: Node, server: str) -> Operation:
    document = schemas.document
    about = document.resolved(item[method])
    parameters, properties, required = _parameters(schemas, item, about)
    body, argument = body_of(document, about, schemas), ""
    if body is not None:
        argument = unique("body", set(properties))
        properties[argument] = body.schema
        required += [argument] if body.is_needed else []
    summary = plain(str(about.get("summary") or about.get("operationId") or f"{method.upper()} {path}"), 80)
    said = plain(str(about.get("description") or ""), _LONGEST_DESCRIPTION - len(summary) - 2)
    named = servers_of(document, about) or servers_of(document, item) or servers_of(document, document.root)
    return Operation(
        name,
        method.upper(),
        path,
        server or (named[0] if named else None),
        summary,
        f"{summary}. {said}" if said and said != summary else summary,
        tuple(parameters),
        # What the service does not know would be shown to the user, and never sent.
        {"type": "object", "properties": properties, "required": required, "additionalProperties": False},
        argument,
        body.media_type if body is not None else "",
        body.files if body is not None else {},
        _security(about if "security" in about else document.root),
        _invisible(about),
        next((name for where, name in _known_parameters(document, item, about) if (where, name.lower()) == _ONCE), ""),
    )


def _invisible(about: Node) -> int:
    """How many invisible characters stand in what the document says of an operation."""
    parameters = (node(row).get("description") for row in rows(about.get("parameters")))
    texts = (about.get("summary"), about.get("operationId"), about.get("description"), *parameters)
    return sum(without_invisible(text).removed for text in texts if isinstance(text, str))


def _parameters(
    schemas: Schemas, item: Node, about: Node
) -> tuple[list[Parameter], dict[str, dict[str, Any]], list[str]]:
    """Those of the path and of the operation, which come over them."""
    document = schemas.document
    found = _known_parameters(document, item, about)
    if len(found) > _MOST_PARAMETERS:
        raise SettingsError(
            f"An operation of {document.title} has more than {_MOST_PARAMETERS} parameters.",
            hint="Take it out of the document.",
            key="openapi_parameters",
            most=_MOST_PARAMETERS,
        )
    hidden = _of_credentials(document)
    parameters: list[Parameter] = []
    properties: dict[str, dict[str, Any]] = {}
    required: list[str] = []
    for (place, name), row in found.items():
        where = _WHERES.get(place)
        is_ours = where == "header" and (name.lower() in _OURS or (where, name.lower()) == _ONCE)
        if where is None or not name or is_ours or (place, name) in hidden:
            continue
        key = unique(_NOT_IN_NAMES.sub("_", name).strip("_") or where, set(properties), where)
        style = str(row.get("style") or ("form" if where in {"query", "cookie"} else "simple"))
        explode = row.get("explode")
        parameters.append(
            Parameter(
                key, name, where, style, explode if isinstance(explode, bool) else style in {"form", "deepObject"}
            )
        )
        properties[key] = _described(schemas.of(_schema_of(document, row)), row)
        if where == "path" or row.get("required") is True:
            required.append(key)
    return parameters, properties, required


def _known_parameters(document: Document, item: Node, about: Node) -> dict[tuple[str, str], Node]:
    """All of them, by where they stand and their names."""
    given = [*rows(item.get("parameters")), *rows(about.get("parameters"))]
    found = [document.resolved(each) for each in given]
    return {(str(row.get("in")), str(row.get("name") or "")): row for row in found}


def _schema_of(document: Document, row: Node) -> object:
    """A parameter's schema, which may stand under a media type."""
    if "schema" in row:
        return row["schema"]
    return next((document.resolved(part).get("schema") for part in node(row.get("content")).values()), None)


def _of_credentials(document: Document) -> set[tuple[str, str]]:
    """Where keys go: these are not a model's to fill in."""
    schemes = node(node(document.root.get("components")).get("securitySchemes"))
    found = (document.resolved(scheme) for scheme in schemes.values())
    return {(str(one.get("in")), str(one.get("name"))) for one in found if one.get("type") == "apiKey"}


def _security(about: Node) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(map(str, node(each))) for each in rows(about.get("security")))
