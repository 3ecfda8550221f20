"""What is wrong with a setting, in a plain sentence that never shows a value: it might be a key."""

from __future__ import annotations

import re
import tomllib
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from pydantic import ValidationError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

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
_PLACE = re.compile(r"(?P<what>.*?) \(at (?P<where>[^()]+)\)")


def check_address(address: str | None) -> str | None:
    """The address of a service, as it is given.

    Raises:
        ValueError: It names no server that can be asked over HTTP.
    """
    if address is None or address == "dashscope":  # the one service that has a name of its own
        return address
    try:
        parts = urlsplit(address)
        fine = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fine = False
    if not fine or re.search(r"\s", address):
        raise ValueError("must be an address such as http://127.0.0.1:8000/v1")
    return address


def complaint(error: Exception, file: Path | None, names: Collection[str]) -> str:
    """The sentence.

    Args:
        error: As it came from reading or checking the settings.
        file: The settings file.
        names: Of all settings, to find out which one was meant.
    """
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        return _wrong(cast("Mapping[str, Any]", first), names)
    if isinstance(error, tomllib.TOMLDecodeError):
        place = _PLACE.fullmatch(str(error))
        where, what = (f" at {place['where']}", place["what"]) if place else ("", str(error))
        return f"The settings file {file} cannot be read{where}: {what[:1].lower()}{what[1:]}."
    field = re.search(r'field "(\w+)"', str(error))
    if field:
        return f"The setting {field[1]!r} must be written as JSON."
    return f"The settings file {file} cannot be read: {error}."


def _wrong(first: Mapping[str, Any], names: Collection[str]) -> str:
    loc: tuple[int | str, ...] = first["loc"]
    name, kind = ".".join(str(part) for part in loc).lower(), str(first["type"])
    if kind == "extra_forbidden":
        near = get_close_matches(name, names, n=2)
        return f"There is no setting {name!r}." + (f" Did you mean {' or '.join(map(repr, near))}?" if near else "")
    return f"The setting {name!r} {_demand(name, kind, first.get('ctx', {}))}."


def _demand(name: str, kind: str, context: Mapping[str, Any]) -> str:
    if name == "port":
        return "must be a whole number from 0 to 65535"
    if kind == "value_error":
        return str(context["error"])
    if kind == "greater_than_equal":
        return f"must be {context['ge']} or more"
    if kind == "literal_error":
        return f"must be {context['expected']}"
    return _MUST_BE.get(kind.partition("_")[0], "is of the wrong kind")
