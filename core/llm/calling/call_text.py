"""What models write as a call, read into a name and arguments: strictly first, leniently where that failed."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from core.llm.calling.xml_calls import is_xml, properties_of, read_xml
from core.messages.events import CallDelta, CallStarted, Event
from core.messages.json_text import compact, read_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_NAME = re.compile(r"""["']?name["']?\s*:\s*["']([^"'\s]+)["']""")
_MARK = "(unreadable) "
_ARGUMENTS = ("arguments", "parameters", "args", "input")
_BETWEEN = re.compile(r"[ \t\r\n,;]*+")
_MOST = 200  # calls in one body; what has more is no list of calls
_CODE = re.compile(r"(?<=\})\s*+<code>\n?")

Functions = "Sequence[Mapping[str, Any]]"


@dataclass(frozen=True, slots=True)
class CallText:
    """A call as it was read.

    Args:
        name: The tool; empty where none could be read.
        arguments: JSON text; what the model wrote where the call is not `readable`.
        readable: Whether it can be run.
    """

    name: str
    arguments: str
    readable: bool = True


def read_calls(body: str, functions: Sequence[Mapping[str, Any]] = (), *, mend: bool = True) -> list[CallText]:
    """The calls in the body of a call's tag: one object, a list of them, or XML. An empty body holds none.

    Args:
        body: What stands between the tags.
        functions: The tools on offer; their schemas say what a value in XML is.
        mend: Whether to mend what is not JSON. Where a reply was cut off, half an argument must not be acted on.
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
    if len(entries) > _MOST:
        return [unreadable(body)]
    calls = [_call(entry, functions) for entry in entries]
    if code and len(calls) == 1 and calls[0].readable:
        return [_with_code(calls[0], _beside(body[code.end() :]))]
    return calls


def is_marked(arguments: str) -> bool:
    """Whether these arguments, or the text in their JSON string, are of a call that could not be read."""
    return arguments.removeprefix('"').startswith(_MARK)


def without_mark(arguments: str) -> str:
    """What the model wrote of a call that could not be read."""
    return arguments.removeprefix(_MARK)


def unreadable(body: str) -> CallText:
    """A call that cannot be read, with its name where one is to be seen."""
    found = _NAME.search(body)
    return CallText(found.group(1) if found else "", body, readable=False)


def may_be_mended(body: str) -> bool:
    """Whether a call without an end is whole but for it: its last value has ended."""
    return body.rstrip().endswith(("}", "]", "</parameter>", "</function>", "</code>"))


def call_events(calls: Iterable[CallText], ids: Iterable[str]) -> list[Event]:
    """Each call as events, under the next of `ids`; one that could not be read is marked: nobody mends and runs it."""
    events: list[Event] = []
    for call, call_id in zip(calls, ids, strict=False):
        arguments = call.arguments if call.readable else _MARK + call.arguments
        events += [CallStarted(call_id, call.name), CallDelta(call_id, arguments)]
    return events


def arguments_text(value: object) -> str:
    """Arguments as JSON text: those that the model wrote as text itself, and none at all, are understood.

    Raises:
        ValueError: The text cannot be read.
    """
    if value is None or value == []:
        return "{}"
    if isinstance(value, str):
        return compact(read_value(value)) if value.strip() else "{}"
    return compact(value)


def _read(body: str, *, mend: bool) -> object:
    if not mend:
        json.loads(body, strict=False)  # it must be JSON as it stands
        return read_value(body)
    try:
        return _several(body)
    except json.JSONDecodeError:
        return read_value(body)


def _several(body: str) -> object:
    """One value, or a list of several that stand one after the other, as models write more than one call.

    Raises:
        ValueError: There is something else, or too much.
    """
    decoder, found, at = json.JSONDecoder(), list[object](), 0
    while at < len(body):
        end = decoder.raw_decode(body, at)[1]
        found.append(read_value(body[at:end]))
        if len(found) > _MOST:
            raise ValueError(f"There are more than {_MOST} values.")
        between = _BETWEEN.match(body, end)
        at = between.end() if between else end
    return found[0] if len(found) == 1 else found


def _call(entry: object, functions: Sequence[Mapping[str, Any]]) -> CallText:
    """One call of whatever spelling: other words for `arguments`, or the shape of a service's own calls."""
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
    """The arguments among the fields of a call; where they are under no key, those that the tool knows by name."""
    for key in _ARGUMENTS:
        if key in fields and (key in _ARGUMENTS[:2] or key not in properties):
            return fields[key]
    return {key: value for key, value in fields.items() if key in properties and key not in {"name", "function"}}


def _beside(text: str) -> str:
    """Code as it stands after its tag, without the closing one and the line's end before that."""
    return text.removesuffix("</code>").removesuffix("\n") if text.endswith("</code>") else text


def _with_code(call: CallText, code: str) -> CallText:
    """The call with the code that the model wrote beside its arguments."""
    arguments = json.loads(call.arguments)
    if not isinstance(arguments, dict):
        return call
    return CallText(call.name, compact({**cast("dict[str, Any]", arguments), "code": code}))


def _from_xml(body: str, functions: Sequence[Mapping[str, Any]], *, mend: bool) -> list[CallText]:
    found = read_xml(body, functions, whole=not mend)
    if found is None:
        return [CallText("", body, readable=False)]
    return [CallText(name, compact(arguments)) for name, arguments in found]
