"""What is wrong with a setting, in one sentence that names it, and shows no value that could be secret."""

from __future__ import annotations

import re
import tomllib
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal, cast, get_args, get_origin

from pydantic import AliasChoices, ValidationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
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
_JSON = '{"temperature": 0.2}'
_PAIR = "must be a number, 0 or more, or two, one for guests and one for members, such as 200,0"
_OURS = "PARLOUR_"
_OF_KUBERNETES = re.compile(r"(?:\w+_)?(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?|PORT_\d+_\w+)")
_NEAR = 0.75  # how alike two names are of which one is taken for the other misspelled
_HARMLESS = re.compile(r"[+-]?[\d.]{1,20}|[A-Za-z]{1,12}")
_PLACE = re.compile(r"(?P<what>.*?) \(at (?P<where>[^()]+)\)")


def unheard(variables: Iterable[str], fields: Mapping[str, FieldInfo]) -> str:
    """The sentence for a variable that nobody hears, since its name is misspelled; "" where there is none.

    Args:
        variables: The names of all there are, in capitals.
        fields: All settings by their names.
    """
    heard = [name for field, info in fields.items() for name in _heard(field, info)]
    for variable in sorted(variables):
        own = variable.removeprefix(_OURS)
        if own == variable or variable in heard or _OF_KUBERNETES.fullmatch(own):
            continue
        if (
            near := [own]
            if own in heard
            else get_close_matches(variable, [one for one in heard if _like(own, one)], n=1)
        ):
            return f"There is no setting {variable}. Did you mean {near[0]}?"
    return ""


def _heard(name: str, field: FieldInfo) -> list[str]:
    """The variables that a setting is read from."""
    alias = field.validation_alias
    named = [one for one in alias.choices if isinstance(one, str)] if isinstance(alias, AliasChoices) else []
    return [one for one in named if one.isupper()] or [f"{_OURS}{name.upper()}"]


def _like(own: str, heard: str) -> bool:
    return bool(get_close_matches(own, [heard.removeprefix(_OURS)], cutoff=_NEAR))


def complaint(
    error: Exception, file: Path | None, fields: Mapping[str, FieldInfo], variables: Mapping[str, str]
) -> str:
    """The sentence.

    Args:
        error: As it came from reading or checking the settings.
        fields: All settings by their names, to find out which one was meant and what it may be.
        variables: Those that count, in capitals.
    """
    if isinstance(error, ValidationError):
        return complaints(error, fields, variables)[0]
    if isinstance(error, tomllib.TOMLDecodeError):
        place = _PLACE.fullmatch(str(error))
        where, what = (f" at {place['where']}", place["what"]) if place else ("", str(error))
        return f"The settings file {file} cannot be read{where}: {what[:1].lower()}{what[1:]}."
    field = re.search(r'field "(\w+)"', str(error))
    if field:
        return f"The setting {field[1]!r}{_typed(field[1], variables)} must be written as JSON, such as {_JSON}."
    return f"The settings file {file} cannot be read: {error}."


def complaints(
    error: ValidationError, fields: Mapping[str, FieldInfo], variables: Mapping[str, str] | None = None
) -> list[str]:
    """The sentence for each setting that is wrong."""
    found = cast("list[Mapping[str, Any]]", error.errors(include_url=False, include_input=False))
    return [_wrong(one, fields, variables or {}) for one in found]


def _wrong(first: Mapping[str, Any], fields: Mapping[str, FieldInfo], variables: Mapping[str, str]) -> str:
    loc: tuple[int | str, ...] = first["loc"]
    if loc and _is_pair(fields.get(str(loc[0]))):
        return f"The setting {loc[0]!r}{_typed(str(loc[0]), variables)} {_PAIR}."
    name, kind = ".".join(str(part) for part in loc).lower().removeprefix(_OURS.lower()), str(first["type"])
    if kind == "extra_forbidden":
        near = get_close_matches(name, fields, n=2)
        return f"There is no setting {name!r}." + (f" Did you mean {' or '.join(map(repr, near))}?" if near else "")
    field = fields.get(name)
    given = variables.get(f"{_OURS}{name.upper()}", "") if field is not None and _is_open(field.annotation) else ""
    shown = f", not {given}" if _HARMLESS.fullmatch(given) else ""
    return f"The setting {name!r}{_typed(name, variables)} {_demand(field, kind, first.get('ctx', {}))}{shown}."


def _typed(name: str, variables: Mapping[str, str]) -> str:
    """The variable that it was typed in, if it was."""
    variable = f"{_OURS}{name.upper()}"
    return f" ({variable})" if variable in variables else ""


def _is_pair(field: FieldInfo | None) -> bool:
    kinds = get_args(field.annotation) if field is not None and get_origin(field.annotation) is tuple else ()
    return len(kinds) == 2 and Ellipsis not in kinds


def _is_open(kind: Any) -> bool:
    """Whether a setting is a number, a choice or a switch, which is no secret."""
    kinds = get_args(kind) if get_origin(kind) is not Literal else ()
    return kind in (int, float, bool) or get_origin(kind) is Literal or any(_is_open(one) for one in kinds)


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
