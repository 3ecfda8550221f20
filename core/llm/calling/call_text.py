"""Parsing tool calls that models write as JSON or XML: strictly first, then leniently."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from core.messages.events import CallDelta, CallStarted, Event
from core.messages.json_text import compact, read_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

_NAME = re.compile(r"""["']?name["']?\s*:\s*["']([^"'\s]+)["']""")
_MARK = "(unreadable) "
_ARGUMENTS = ("arguments", "parameters", "args", "input")
_BETWEEN = re.compile(r"[ \t\r\n,;]*+")
_MOST_CALLS = 200  # in one body; more is no list of calls
_CODE = re.compile(r"(?<=\})\s*+<code>\n?")

Functions = "Sequence[Mapping[str, Any]]"


@dataclass(frozen=True, slots=True)
class CallText:
    """A parsed call.

    Args:
        name: The tool; empty if none could be parsed.
        arguments: JSON text; if not `readable`, what the model wrote.
        readable: Whether it could be parsed, and can be run.
    """

    name: str
    arguments: str
    readable: bool = True


def read_calls(body: str, functions: Sequence[Mapping[str, Any]] = (), *, mend: bool = True) -> list[CallText]:
    """The calls between a call's tags: one object, several, a list, or XML; none in an empty body.

    Args:
        body: The text between the tags.
        functions: The tools on offer; their schemas give the types of XML values.
        mend: Whether to repair invalid JSON; not if the reply was cut off, as half an argument must not be used.
    """
    body = body.strip()
    if not body:
        return []
    if is_xml(body):
        return _from_xml(body, functions, mend=mend)
    code = _CODE.search(body)
    if code and not mend and not body.endswith("</code>"):
        return [unreadable(body)]
    try:
        value = _read(body[: code.start()] if code else body, mend=mend)
    except (ValueError, RecursionError):
        return [unreadable(body)]
    entries = cast("list[Any]", value) if isinstance(value, list) else [value]
    if len(entries) > _MOST_CALLS:
        return [unreadable(body)]
    calls = [_call(entry, functions) for entry in entries]
    if code and len(calls) == 1 and calls[0].readable:
        return [_with_code(calls[0], _trailing_code(body[code.end() :]))]
    return calls


def is_marked(arguments: str) -> bool:
    """Whether arguments, plain or in a JSON string, are marked as those of an unreadable call."""
    return arguments.removeprefix('"').startswith(_MARK)


def without_mark(arguments: str) -> str:
    """The text that the model wrote for an unreadable call."""
    return arguments.removeprefix(_MARK)


def unreadable(body: str) -> CallText:
    """An unreadable call, with its name if one can be found."""
    found = _NAME.search(body)
    return CallText(found.group(1) if found else "", body, readable=False)


def may_be_mended(body: str) -> bool:
    """Whether a call without its closing tag is otherwise complete."""
    return body.rstrip().endswith(("}", "]", "</parameter>", "</function>", "</code>"))


def call_events(calls: Iterable[CallText], ids: Iterable[str]) -> list[Event]:
    """The events of calls, with the next of `ids` each; an unreadable call is marked, so that it is never run."""
    events: list[Event] = []
    for call, call_id in zip(calls, ids, strict=False):
        arguments = call.arguments if call.readable else _MARK + call.arguments
        events += [CallStarted(call_id, call.name), CallDelta(call_id, arguments)]
    return events


def arguments_text(value: object) -> str:
    """Arguments as JSON text; accepts JSON in a string, and none at all.

    Raises:
        ValueError: The text cannot be parsed.
    """
    if value is None or value == []:
        return "{}"
    if isinstance(value, str):
        return compact(read_value(value)) if value.strip() else "{}"
    return compact(value)


def _read(body: str, *, mend: bool) -> object:
    if not mend:
        json.loads(body, strict=False)  # it must be valid JSON
        return read_value(body)
    try:
        return _several(body)
    except json.JSONDecodeError:
        return read_value(body)


def _several(body: str) -> object:
    """One value, or a list of several that follow one another, as some models write several calls.

    Raises:
        ValueError: There is anything else, or too many.
    """
    decoder, found, at = json.JSONDecoder(), list[object](), 0
    while at < len(body):
        end = decoder.raw_decode(body, at)[1]
        found.append(read_value(body[at:end]))
        if len(found) > _MOST_CALLS:
            raise ValueError(f"There are more than {_MOST_CALLS} values.")
        between = _BETWEEN.match(body, end)
        at = between.end() if between else end
    return found[0] if len(found) == 1 else found


def _call(entry: object, functions: Sequence[Mapping[str, Any]]) -> CallText:
    """One call in any known spelling: synonyms of `arguments`, or the form of services' own calls."""
    if not isinstance(entry, dict):
        return CallText("", compact(entry), readable=False)
    fields = cast("dict[str, Any]", entry)
    if isinstance(fields.get("function"), dict):
        fields = cast("dict[str, Any]", fields["function"])
    name = fields.get("name", fields.get("function"))
    if not isinstance(name, str) or not name.strip():
        return CallText("", compact(entry), readable=False)
    try:
        arguments = arguments_text(_given(fields, properties_of(name.strip(), functions)))
    except (ValueError, RecursionError):
        return CallText(name.strip(), compact(entry), readable=False)
    return CallText(name.strip(), arguments)


def _given(fields: Mapping[str, Any], properties: Mapping[str, Any]) -> object:
    """The arguments in a call's fields; without a key of their own, those fields that the tool declares."""
    for key in _ARGUMENTS:
        if key in fields and (key in _ARGUMENTS[:2] or key not in properties):
            return fields[key]
    return {key: value for key, value in fields.items() if key in properties and key not in {"name", "function"}}


def _trailing_code(text: str) -> str:
    """The code after `<code>`, without the closing tag and the line break before it."""
    return text.removesuffix("</code>").removesuffix("\n") if text.endswith("</code>") else text


def _with_code(call: CallText, code: str) -> CallText:
    """The call with the code that followed its arguments."""
    arguments = json.loads(call.arguments)
    if not isinstance(arguments, dict):
        return call
    return CallText(call.name, compact({**cast("dict[str, Any]", arguments), "code": code}))


def _from_xml(body: str, functions: Sequence[Mapping[str, Any]], *, mend: bool) -> list[CallText]:
    found = read_xml(body, functions, whole=not mend)
    if found is None:
        return [CallText("", body, readable=False)]
    return [CallText(name, compact(arguments)) for name, arguments in found]


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
