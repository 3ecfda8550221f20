"""Tools on offer, checked before they leave: what cannot be sent is refused with the tool's name."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from core.errors import ModelRefusedError

if TYPE_CHECKING:
    from collections.abc import Iterable

Json: TypeAlias = dict[str, Any]

_TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})
_DEEPEST = 16
_NOTHING: Json = {"type": "object", "properties": {}}


def checked(functions: Iterable[Json]) -> list[Json]:
    """The tools as `{"name", "description", "parameters"}`; a tool without parameters gets an empty schema.

    The form `{"type": "function", "function": {…}}` is understood, and the old list of parameters.

    Raises:
        ModelRefusedError: A tool has no name, two have the same, or a schema is none.
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
    """The first type of a parameter that is none; how deep schemas may lie in one another is the service's concern."""
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
