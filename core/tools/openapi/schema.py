"""From the schemas of an OpenAPI document to the JSON Schema that a model is told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from core.tools.openapi.document import node, plain

if TYPE_CHECKING:
    from core.tools.openapi.document import Document, Node

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
