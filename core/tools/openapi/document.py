"""An OpenAPI 3 document: read from JSON or YAML, its references resolved inside itself and nowhere else."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final, TypeAlias, cast
from urllib.parse import unquote

from core.errors import SettingsError
from core.messages.invisible import plain_line
from core.net.addresses import Reach
from core.net.fetcher import FetchLimits, fetch

Node: TypeAlias = Mapping[str, Any]
Source: TypeAlias = str | Path | Mapping[str, Any]

_LARGEST: Final = 8 * 1024 * 1024  # bytes
_DEEPEST: Final = 100  # collections in collections of a YAML text
_MOST_MERGED: Final = 32
_WITHIN_ITSELF: Final = _LARGEST // 100  # what a part counts that is repeated within itself: it has no size
_MOST_STEPS: Final = 32  # references that lead to references
_LIMITS: Final = FetchLimits(size=_LARGEST, types=("application/", "text/", "binary/octet-stream"))
_OPEN: Final = Reach()
_NOTHING: Final[Node] = {}


@dataclass(frozen=True, slots=True)
class Document:
    """A document.

    Args:
        url: Where it came from; "" where that is no web address.
    """

    root: Node
    url: str = ""

    @property
    def title(self) -> str:
        """What the service is called."""
        return plain(str(node(self.root.get("info")).get("title") or "API"), 60)

    def resolved(self, value: object) -> Node:
        """What a node is, or what its `$ref` leads to; empty where that is nothing, elsewhere, or a circle."""
        for _ in range(_MOST_STEPS):
            found = node(value)
            reference = found.get("$ref")
            if not isinstance(reference, str):
                return found
            value = self._at(reference)
        return _NOTHING

    def _at(self, reference: str) -> object:
        if not reference.startswith("#/"):
            return None  # another document is never fetched
        value: object = self.root
        for part in reference[2:].split("/"):
            name = _unescaped(part)
            if isinstance(value, list):
                rows = cast("list[object]", value)
                value = rows[int(name)] if name.isascii() and name.isdecimal() and int(name[:9]) < len(rows) else None
            else:
                value = node(value).get(name)
        return value


def node(value: object) -> Node:
    """The value, where it is an object; else an empty one."""
    return cast("Node", value) if isinstance(value, Mapping) else _NOTHING


def rows(value: object) -> list[Any]:
    """The value, where it is a list; else an empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def plain(text: str, most: int) -> str:
    """Words from a document on one line, without signs that steer a terminal or a page's direction of writing."""
    shown = plain_line(text)
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"


async def load(source: Source, reach: Reach = _OPEN) -> Document:
    """The document that a program or a user names.

    Args:
        source: A web address, a file, the text itself, or what JSON or YAML made of it.
        reach: How far an address may lead.

    Raises:
        FetchError: The address cannot be fetched, or may not be.
        SettingsError: The file cannot be read, or it is no OpenAPI 3 document.
    """
    if isinstance(source, Mapping):
        return Document(_checked(source))
    if isinstance(source, str) and source.lower().startswith(("http://", "https://")):
        text, url = await fetched_text(source, reach)
        return Document(await asyncio.to_thread(parsed, text), url)
    if isinstance(source, str) and (source.lstrip().startswith("{") or "\n" in source):
        return Document(await asyncio.to_thread(parsed, source))
    return Document(await asyncio.to_thread(lambda: parsed(_text_of(Path(source)))))


async def fetched_text(url: str, reach: Reach = _OPEN) -> tuple[str, str]:
    """The text at an address, and where it was in the end. Raises FetchError."""
    fetched = await fetch(url, limits=_LIMITS, reach=reach)
    return fetched.data.decode("utf-8-sig", "replace"), fetched.url


def parsed(text: str) -> Node:
    """The object in a text of JSON or YAML.

    Raises:
        SettingsError: It is neither, too long, or no OpenAPI 3 document.
    """
    if len(text) > _LARGEST:
        raise _no_document("it is longer than 8 MB")
    try:
        found: object = json.loads(text) if text.lstrip().startswith("{") else _yaml(text)
    except RecursionError as error:
        raise _no_document("it is nested too deep") from error
    except ValueError as error:
        raise _no_document(plain(str(error), 120)) from error
    return _checked(found)


def _yaml(text: str) -> object:
    """What YAML text says; only plain values come of it, never objects."""
    yaml: Any = import_module("yaml")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        _look_through(yaml, _bounded(yaml, yaml.parse(text, Loader=loader)))
        return yaml.load(text, Loader=loader)  # one of the two that make no objects
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


def _bounded(yaml: Any, events: Iterable[Any]) -> Generator[Any]:
    """The events of a text, before anything is made of it.

    Brackets without end would end the process, and merges of merges would fill its memory.

    Raises:
        ValueError: It is nested too deep, or merges too much.
    """
    depth = aliases = merges = 0
    for event in events:
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        aliases += isinstance(event, yaml.AliasEvent)
        merges += isinstance(event, yaml.ScalarEvent) and event.value == "<<"
        if depth > _DEEPEST:
            raise ValueError("it is nested too deep")
        if merges and aliases > _MOST_MERGED:
            raise ValueError("it merges too many parts")
        yield event


def _look_through(yaml: Any, events: Iterable[Any]) -> None:
    """See that what the text repeats by its aliases is no more than a text may hold.

    A few lines that each repeat the one before ten times say more than any memory holds, once somebody walks through.

    Raises:
        ValueError: It repeats too much.
    """
    sizes: dict[str | None, int] = {}
    opened: list[tuple[str | None, int]] = []
    size = repeated = 0  # of the collection that is being read; of all aliases
    for event in events:
        if isinstance(event, yaml.CollectionStartEvent):
            opened.append((event.anchor, size))
            sizes.pop(event.anchor, None)
            size = 1
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, outside = opened.pop()
            if anchor:
                sizes[anchor] = size
            size += outside
        elif isinstance(event, yaml.ScalarEvent):
            if event.anchor:
                sizes[event.anchor] = 1 + len(event.value)
            size += 1 + len(event.value)
        elif isinstance(event, yaml.AliasEvent):
            again = sizes.get(event.anchor, _WITHIN_ITSELF)
            size += again
            repeated += again
            if repeated > _LARGEST:
                raise ValueError("it repeats its parts too often")


def _checked(found: object) -> Node:
    root = node(found)
    version = str(root.get("openapi") or "")
    if root.get("swagger"):
        raise SettingsError("This is a document of Swagger 2.", hint="Convert it to OpenAPI 3.", key="openapi_version")
    if not version.startswith("3."):
        raise _no_document("it does not say `openapi: 3…`")
    if not isinstance(root.get("paths"), Mapping):
        raise _no_document("it has no `paths`")
    return root


def _text_of(path: Path) -> str:
    try:
        if path.stat().st_size > _LARGEST:
            raise _no_document("it is longer than 8 MB")
        return path.read_text("utf-8-sig", "replace")
    except (OSError, ValueError) as error:
        raise SettingsError(f"The file {path.name!r} cannot be read.", hint="Give its path, or its address.") from error


def _unescaped(part: str) -> str:
    return unquote(part).replace("~1", "/").replace("~0", "~")


def _no_document(why: str) -> SettingsError:
    hint = "Give an OpenAPI 3 document in JSON or YAML."
    return SettingsError(f"This is no OpenAPI document: {why}.", hint=hint, key="openapi_unreadable", why=why)


_MOST_NODES: Final = 300  # of one parameter: references to references can grow without end, and a model reads it all
_DEPTHS: Final = (8, 6, 4, 3, 2)  # the first that fits: what is near the top counts more than what is far below
_LONGEST: Final = 300  # letters of a description
_LONGEST_VALUE: Final = 2000  # letters of a value that a schema names
_DEEPEST_VALUE: Final = 2  # lists in lists
_LONGEST_PATTERN: Final = 80
_LISTS: Final = ("oneOf", "anyOf", "allOf")
_KEPT: Final = frozenset(
    {
        *("type", "format", "enum", "const", "default", "minLength", "maxLength", "minimum", "maximum"),
        *("exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems", "uniqueItems"),
        *("minProperties", "maxProperties"),
    }
)


class Schemas:
    """The schemas of one document, with everything they refer to put in place.

    A schema that contains itself ends where it begins again; from there on any value will do, and the service checks.
    What hundreds of operations share is made once, and shared by their tools: nobody may change it.
    """

    def __init__(self, document: Document) -> None:
        self.document = document
        self._left = 0
        self._deepest = 0
        # Each by the identity of its node, which is kept beside it, so that no other can come to have the same.
        self._made: dict[int, tuple[Node, dict[str, Any]]] = {}
        self._own: dict[int, tuple[Node, dict[str, Any]]] = {}
        self._led_to: dict[str, Node] = {}

    def of(self, value: object) -> dict[str, Any]:
        """The schema as plain JSON Schema."""
        found = self._resolved(value)
        if id(found) not in self._made:
            self._made[id(found)] = found, self._fitting(found)
        return self._made[id(found)][1]

    def _fitting(self, value: Node) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for self._deepest in _DEPTHS:
            self._left = _MOST_NODES
            made = self._plain(value, ())
            if self._left > 0:
                break
        return made

    def _plain(self, value: object, inside: tuple[int, ...]) -> dict[str, Any]:
        if len(inside) >= self._deepest or self._left <= 0:
            return {}
        found = self._resolved(value)
        if id(found) in inside:
            return {}
        self._left -= 1
        if id(found) not in self._own:
            self._own[id(found)] = found, _without_parts(found)
        made = {**self._own[id(found)][1]}
        self._add_parts(made, found, (*inside, id(found)))
        return made

    def _add_parts(self, made: dict[str, Any], found: Any, inside: tuple[int, ...]) -> None:
        if "properties" in found:
            made["properties"] = {}
            for name, part in node(found["properties"]).items():
                if self._left > 0 and not self._is_read_only(part):
                    made["properties"][str(name)] = self._plain(part, inside)
            required = found.get("required")
            needed = cast("list[object]", required) if isinstance(required, list) else []
            made["required"] = [name for name in needed if name in made["properties"]]
        if "items" in found:
            made["items"] = self._plain(found["items"], inside)
        more = found.get("additionalProperties")
        if isinstance(more, bool):
            made["additionalProperties"] = more
        elif more:
            made["additionalProperties"] = self._plain(more, inside)
        for key in _LISTS:
            if isinstance(found.get(key), list):
                made[key] = [self._plain(part, inside) for part in found[key]]

    def _is_read_only(self, part: object) -> bool:
        return self._resolved(part).get("readOnly") is True

    def _resolved(self, value: object) -> Node:
        reference = node(value).get("$ref")
        if not isinstance(reference, str):
            return node(value)
        if reference not in self._led_to:
            self._led_to[reference] = self.document.resolved(value)
        return self._led_to[reference]


def _without_parts(found: Node) -> dict[str, Any]:
    """What a schema says of a value itself, and not of what is in it."""
    made: dict[str, Any] = {key: _json(found[key]) for key in found if key in _KEPT}
    if words := _words(found):
        made["description"] = plain(words, _LONGEST)
    _mend(made, nullable=found.get("nullable") is True)
    return made


def _words(found: Node) -> str:
    """What is said of a value. A pattern is only told: one that was made to take for ever is never tried."""
    words, pattern = str(found.get("description") or found.get("title") or ""), str(found.get("pattern") or "")
    return f"{words} (must match {pattern})".strip() if 0 < len(pattern) <= _LONGEST_PATTERN else words


def _mend(made: dict[str, Any], *, nullable: bool) -> None:
    """What OpenAPI 3.0 says in another way than JSON Schema."""
    for key, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(made.get(key), bool):
            is_exclusive = made.pop(key)
            if is_exclusive and bound in made:
                made[key] = made.pop(bound)
    if nullable and isinstance(made.get("type"), str):
        made["type"] = [made["type"], "null"]
        if isinstance(made.get("enum"), list) and None not in made["enum"]:
            made["enum"] = [*made["enum"], None]


def _json(value: object, inside: int = 0) -> Any:
    """A value that JSON has; YAML also reads dates, and lists that contain themselves."""
    match value:
        case str():
            return value[:_LONGEST_VALUE]
        case None | bool() | int() | float():
            return value
        case list() if inside < _DEEPEST_VALUE:
            return [_json(part, inside + 1) for part in cast("list[object]", value)[:200]]
        case _:
            return str(value)[:200]
