"""What is wrong with a setting, in one sentence that names it and never shows a value."""

from __future__ import annotations

import re
import tomllib
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, cast, get_args

from pydantic import ValidationError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pydantic.fields import FieldInfo


_MUST_BE = {
    "int": "must be a whole number",
    "float": "must be a number",
    "bool": "must be true or false",
    "string": "must be a text",
    "path": "must be a path",
    "tuple": "must be a list",
    "list": "must be a list",
    "dict": "must be a section of names and values",
}
_BOUNDS = {"ge": "{} or more", "gt": "above {}", "le": "{} or less"}
_PLACE = re.compile(r"(?P<what>.*?) \(at (?P<where>[^()]+)\)")


def complaint(error: Exception, file: Path | None, fields: Mapping[str, FieldInfo]) -> str:
    """The sentence.

    Args:
        error: As it came from reading or checking the settings.
        fields: All settings by their names, to find out which one was meant and what it may be.
    """
    if isinstance(error, ValidationError):
        return complaints(error, fields)[0]
    if isinstance(error, tomllib.TOMLDecodeError):
        place = _PLACE.fullmatch(str(error))
        where, what = (f" at {place['where']}", place["what"]) if place else ("", str(error))
        return f"The settings file {file} cannot be read{where}: {what[:1].lower()}{what[1:]}."
    field = re.search(r'field "(\w+)"', str(error))
    if field:
        return f"The setting {field[1]!r} must be written as JSON."
    return f"The settings file {file} cannot be read: {error}."


def complaints(error: ValidationError, fields: Mapping[str, FieldInfo]) -> list[str]:
    """The sentence for each setting that is wrong."""
    found = cast("list[Mapping[str, Any]]", error.errors(include_url=False, include_input=False))
    return [_wrong(one, fields) for one in found]


def _wrong(first: Mapping[str, Any], fields: Mapping[str, FieldInfo]) -> str:
    loc: tuple[int | str, ...] = first["loc"]
    name, kind = ".".join(str(part) for part in loc).lower(), str(first["type"])
    if kind == "extra_forbidden":
        near = get_close_matches(name, fields, n=2)
        return f"There is no setting {name!r}." + (f" Did you mean {' or '.join(map(repr, near))}?" if near else "")
    return f"The setting {name!r} {_demand(fields.get(name), kind, first.get('ctx', {}))}."


def _demand(field: FieldInfo | None, kind: str, context: Mapping[str, Any]) -> str:
    if kind == "value_error":
        return str(context["error"])
    if kind == "literal_error":
        return f"must be {context['expected']}"
    if field is not None and (bounds := _bounds(field)):
        return _number_within(field, bounds)
    return _MUST_BE.get(kind.partition("_")[0], "is of the wrong kind")


def _bounds(field: FieldInfo) -> dict[str, Any]:
    """What a number may be: its `ge`, `gt` and `le`, as far as it has them."""
    return {name: getattr(one, name) for one in field.metadata for name in _BOUNDS if hasattr(one, name)}


def _number_within(field: FieldInfo, bounds: Mapping[str, Any]) -> str:
    demand = _MUST_BE["int" if int in (field.annotation, *get_args(field.annotation)) else "float"]
    if set(bounds) == {"ge", "le"}:
        return f"{demand} from {bounds['ge']} to {bounds['le']}"
    return f"{demand}, {' and '.join(_BOUNDS[name].format(bound) for name, bound in bounds.items())}"
