"""Tools on offer, validated before they are sent, and their names as services accept them."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from core.errors import ModelRefusedError

if TYPE_CHECKING:
    from collections.abc import Iterable

Json: TypeAlias = dict[str, Any]

_TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})
_DEEPEST = 16
_NOTHING: Json = {"type": "object", "properties": {}}


def checked_functions(functions: Iterable[Json]) -> list[Json]:
    """The tools as `{"name", "description", "parameters"}`; a tool without parameters gets an empty schema.

    `{"type": "function", "function": {…}}` is accepted too, and the old list of parameters.

    Raises:
        ModelRefusedError: A tool has no name, two have the same, or a schema is invalid.
    """
    made = [_checked(number, function) for number, function in enumerate(functions, 1)]
    names = [function["name"] for function in made]
    for name in names:
        if names.count(name) > 1:
            raise _refused(f"Two tools are named {name!r}.", "Give each a name of its own.")
    return made


def _checked(number: int, given: object) -> Json:
    function = cast("Json", given) if isinstance(given, dict) else {}
    if "name" not in function and isinstance(function.get("function"), dict):
        function = cast("Json", function["function"])
    name = function.get("name")
    if not isinstance(name, str) or not name.strip():
        raise _refused(f"Tool {number} has no name.", 'A tool is {"name": …, "description": …, "parameters": {…}}.')
    parameters = function.get("parameters")
    if isinstance(parameters, list):
        parameters = _from_list(name, cast("list[Any]", parameters))
    parameters = _NOTHING if parameters is None or parameters == {} else parameters
    if not isinstance(parameters, dict):
        raise _broken(name, "is not an object")
    schema = cast("Json", parameters)
    if schema.get("type", "object") != "object":
        raise _broken(name, f'has the type {schema["type"]!r} in place of "object"')
    if not isinstance(schema.get("properties", {}), dict):
        raise _broken(name, "has properties that are not an object")
    if unknown := _unknown_type(schema):
        raise _broken(name, f"has the type {unknown!r}, which JSON Schema does not know")
    made = {**function, "name": name, "parameters": {"type": "object", **schema}}
    try:
        json.dumps(made, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise _broken(name, "cannot be written as JSON") from error
    return made


def _unknown_type(schema: Json, depth: int = 0) -> str:
    """The first invalid type in a schema, empty if there is none; deep nesting is left to the service."""
    kinds: Any = schema.get("type")
    for kind in cast("list[Any]", kinds) if isinstance(kinds, list) else [kinds]:
        if isinstance(kind, str) and kind not in _TYPES:
            return kind
    properties: Any = schema.get("properties")
    below = [*cast("Json", properties).values()] if isinstance(properties, dict) else []
    nested = (cast("Json", each) for each in [*below, schema.get("items")] if isinstance(each, dict))
    return next((found for each in nested if depth < _DEEPEST and (found := _unknown_type(each, depth + 1))), "")


def _from_list(name: str, parameters: list[Any]) -> Json:
    """The old form: a list of `{"name", "type", "description", "required"}`."""
    properties: Json = {}
    required: list[str] = []
    for parameter in parameters:
        each = cast("Json", parameter) if isinstance(parameter, dict) else {}
        if not isinstance(each.get("name"), str):
            raise _broken(name, "is a list of what has no name")
        properties[each["name"]] = {key: value for key, value in each.items() if key not in {"name", "required"}}
        if each.get("required"):
            required.append(each["name"])
    return {"type": "object", "properties": properties, "required": required}


def _broken(name: str, how: str) -> ModelRefusedError:
    hint = 'Parameters are JSON Schema: {"type": "object", "properties": {…}, "required": […]}.'
    return _refused(f"The schema of the tool {name!r} {how}.", hint)


def _refused(said: str, hint: str) -> ModelRefusedError:
    return ModelRefusedError(code="400", message=said, hint=hint, sent=False)


_FINE: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_OTHER: Final = re.compile(r"[^A-Za-z0-9_-]+")
_LONGEST: Final = 64


class ToolNames:
    """Tools' names on the wire: ASCII letters, digits, `_` and `-`, at most 64. Most names need no change.

    Args:
        names: Of the tools on offer; others are added when they are asked for.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._sent: dict[str, str] = {}
        self._given: dict[str, str] = {}
        known = list(names)
        self._taken = {name for name in known if _FINE.fullmatch(name)}
        for name in known:
            self.wire_name(name)

    def wire_name(self, name: str) -> str:
        """The name as sent to the service."""
        if _FINE.fullmatch(name):
            return name
        if name not in self._sent:
            plain = _OTHER.sub("_", name).strip("_")[:_LONGEST] or "tool"
            free, number = plain, 1
            while free in self._taken:
                number += 1
                end = f"_{number}"
                free = plain[: _LONGEST - len(end)] + end
            self._taken.add(free)
            self._sent[name], self._given[free] = free, name
        return self._sent[name]

    def tool_name(self, name: str) -> str:
        """The tool's own name for one on the wire."""
        return self._given.get(name, name)
