"""The XML calls of qwen3-coder: `<function=name><parameter=key>value</parameter></function>`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, cast

from core.messages.json_text import read_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_FUNCTION: Final = re.compile(r"<function=([^<>\n]*+)>(.*?)(?:</function>|(?=<function=)|\Z)", re.DOTALL)
_VALUE: Final = re.compile(r"<parameter=([^<>\n]*+)>(.*?)(?:</parameter>|(?=<parameter=)|\Z)", re.DOTALL)


def is_xml(body: str) -> bool:
    """Whether the body of a call is written so."""
    return body.startswith("<function=")


def read_xml(
    body: str, functions: Sequence[Mapping[str, Any]], *, whole: bool = False
) -> list[tuple[str, dict[str, Any]]] | None:
    """Names and arguments of the calls; `None` where one has no name.

    Args:
        body: The text.
        functions: The tools on offer. What their schemas call text stays as it is, other values are read as JSON.
        whole: Whether each end tag must be there.
    """
    if whole and not body.rstrip().endswith("</function>"):
        return None
    calls: list[tuple[str, dict[str, Any]]] = []
    for found in _FUNCTION.finditer(body):
        name = found.group(1).strip().strip("\"'")
        if not name:
            return None
        calls.append((name, dict(_arguments(found.group(2), properties_of(name, functions)))))
    return calls or None


def _arguments(text: str, properties: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for found in _VALUE.finditer(text):
        key, value = found.group(1).strip().strip("\"'"), found.group(2)
        yield key, _value(value.removeprefix("\n").removesuffix("\n"), properties.get(key))


def properties_of(name: str, functions: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The schemas of the arguments of one of `functions`, whatever is missing of them."""
    schema: object = next((f.get("parameters") for f in functions if f.get("name") == name), None)
    found: object = cast("dict[str, Any]", schema).get("properties") if isinstance(schema, dict) else None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _value(text: str, schema: object) -> Any:
    if not isinstance(schema, dict):
        return text
    types = _types(cast("dict[str, Any]", schema))
    if "null" in types and text.strip().lower() in {"null", "none"}:
        return None
    if not types or "string" in types:
        return text
    try:
        return read_value(_LITERALS.get(text.strip().lower(), text))
    except (ValueError, RecursionError):
        return text


_LITERALS: Final = {"true": "true", "false": "false"}


def _types(schema: Mapping[str, Any]) -> set[str]:
    """The JSON types that a value may have; none where the schema does not say."""
    kinds: object = schema.get("type")
    names = {kinds} if isinstance(kinds, str) else {k for k in cast("list[Any]", kinds or []) if isinstance(k, str)}
    for options in (schema.get("anyOf"), schema.get("oneOf")):
        for option in cast("list[Any]", options or []):
            if isinstance(option, dict):
                names |= _types(cast("dict[str, Any]", option))
    return names
