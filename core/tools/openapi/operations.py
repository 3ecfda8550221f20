"""The operations of an OpenAPI document: what each is called, takes and does, and where it is sent."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import chain
from itertools import count as count_from
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias
from urllib.parse import urljoin

from core.errors import SettingsError
from core.messages.invisible import without_invisible
from core.tools.openapi.body import body_of
from core.tools.openapi.document import node, plain, rows
from core.tools.openapi.schema import Schemas

if TYPE_CHECKING:
    from core.tools.openapi.document import Document, Node

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


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter.

    Args:
        key: What a model calls it.
        name: What the service calls it.
        where: Where it goes.
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
        method: In capitals.
        path: With the names of parameters in braces.
        server: The address that the path follows; `None` where the document names none.
        summary: What a person reads.
        description: What a model reads.
        parameters: Where each argument goes.
        schema: JSON Schema of all arguments.
        body: The argument that is the body; "" for none.
        media_type: Of the body.
        files: What of the body are files, as `Body` says.
        security: Which schemes will do: any of these sets, each with all of its names.
        invisible: How many invisible characters were taken out of what a model reads.
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


def operations(document: Document, *, server: str = "", only: Sequence[str] = ()) -> Iterator[Operation]:
    """The operations, in the document's order.

    Args:
        document: Where they are described.
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
    found: dict[tuple[str, str], Node] = {}
    for each in [*rows(item.get("parameters")), *rows(about.get("parameters"))]:
        row = document.resolved(each)
        found[str(row.get("in")), str(row.get("name") or "")] = row
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
        is_ours = where == "header" and name.lower() in _OURS
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


def _schema_of(document: Document, row: Node) -> object:
    """A parameter's schema, which may stand under a media type."""
    if "schema" in row:
        return row["schema"]
    return next((document.resolved(part).get("schema") for part in node(row.get("content")).values()), None)


def _described(schema: dict[str, Any], row: Node) -> dict[str, Any]:
    words = plain(str(row.get("description") or schema.get("description") or ""), 300)
    return {**schema, "description": words} if words else schema


def _of_credentials(document: Document) -> set[tuple[str, str]]:
    """Where keys go: these are not a model's to fill in."""
    schemes = node(node(document.root.get("components")).get("securitySchemes"))
    found = (document.resolved(scheme) for scheme in schemes.values())
    return {(str(one.get("in")), str(one.get("name"))) for one in found if one.get("type") == "apiKey"}


def _security(about: Node) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(map(str, node(each))) for each in rows(about.get("security")))
