"""Reads JSON that a model wrote: strictly first, then what is nearly JSON exactly, and only then by guessing."""

from __future__ import annotations

import json
import re
from functools import partial
from typing import Any, cast

from core.messages.json_repairing import repaired
from core.messages.loose_json import finite, read_loose

_FENCE = re.compile(r"\A```[\w-]*[ \t]*\n(.*?)\n?```\Z", re.DOTALL)
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_LONGEST_LOOSE = 1_000_000
_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{4}|.)", re.DOTALL)
_COMMENTS = ("//", "/*", "#")

compact = partial(json.dumps, ensure_ascii=False)
"""JSON text for a model: characters as they are, one space after `:` and `,`."""


def read_object(text: str) -> dict[str, Any]:
    """The one JSON object that `text` holds, bare or in a code fence.

    Raw line breaks in strings, single quotes, bare keys, trailing commas, comments, `None`/`True`, a missing or an
    extra brace and JSON inside a JSON string are understood. NaN and infinities, which JSON does not have, become
    `None`; half a surrogate pair becomes U+FFFD.

    Raises:
        ValueError: There is no object, or nothing that can be mended into one.
    """
    found = read_value(text)
    if isinstance(found, str):  # JSON text inside a JSON string
        found = read_value(found)
    if not isinstance(found, dict):
        raise ValueError(f"There is no JSON object in {text[:80]!r}.")  # noqa: TRY004 - bad text, not a wrong type
    return cast("dict[str, Any]", found)


def read_value(text: str) -> Any:
    """The JSON value that `text` holds, read like `read_object`: an object or a list is mended where it must be.

    Raises:
        ValueError: There is none.
    """
    text = text.strip()
    fenced = _FENCE.match(text)
    if fenced:
        text = fenced.group(1).strip()
    found = _read(text)
    return _whole(found) if "\\u" in text.lower() else found


def _read(text: str) -> object:
    try:
        return json.loads(text, strict=False, parse_constant=_no_number, parse_float=finite)
    except json.JSONDecodeError:
        return _mended(text)
    except RecursionError as error:
        raise ValueError("The JSON is nested too deeply.") from error


def _mended(text: str) -> object:
    if not text.startswith(("{", "[")) or len(text) > _LONGEST_LOOSE:
        raise ValueError(f"This is not JSON: {text[:80]!r}.")
    try:
        return read_loose(text)
    except ValueError:
        pass
    except RecursionError as error:
        raise ValueError("The JSON is nested too deeply.") from error
    found = repaired(text)
    if _letters(found) < _letters(text) and not any(mark in text for mark in _COMMENTS):
        raise ValueError(f"This cannot be mended without losing something: {text[:80]!r}.")
    return json.loads(found, parse_constant=_no_number, parse_float=finite)


def _letters(text: str) -> int:
    """How many letters there are; mending must not lose any but those of comments."""
    return sum(map(str.isalpha, _ESCAPE.sub("", text)))


def _no_number(_: str) -> None:
    return None


def _whole(value: object) -> object:
    """The value with surrogate pairs as the characters they stand for, and without lone halves, which nothing takes."""
    if isinstance(value, str):
        if _LONE_SURROGATE.search(value) is None:
            return value
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_whole(key): _whole(item) for key, item in cast("dict[object, object]", value).items()}
    if isinstance(value, list):
        return [_whole(item) for item in cast("list[object]", value)]
    return value
