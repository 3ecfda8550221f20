"""What models write as a call, read into a name and arguments."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from core.messages.events import CallDelta, CallStarted, Event
from core.messages.json_text import compact, read_value

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

_NAME = re.compile(r"""["']?name["']?\s*:\s*["']([^"'\s]+)["']""")


@dataclass(frozen=True, slots=True)
class CallText:
    """A call as it was read; `arguments` is JSON text, or what the model wrote where that cannot be read."""

    name: str
    arguments: str


def read_calls(body: str, *, cut: bool = False) -> list[CallText]:
    """The calls that the body of a call tag holds: one object, or a list of them.

    A name with arguments that cannot be read is a call all the same, so that the model can be told;
    without a name there is no call, and the list is empty. Where the reply was `cut` off inside the call nothing
    is mended: half an argument must not be acted on.
    """
    try:
        value = json.loads(body) if cut else read_value(body)
    except (ValueError, RecursionError):
        found = _NAME.search(body)
        return [CallText(found.group(1), body)] if found else []
    entries = cast("list[Any]", value) if isinstance(value, list) else [value]
    calls = [_call(entry) for entry in entries]
    return [call for call in calls if call is not None]


def could_be_call(text: str, names: Collection[str]) -> bool:
    """Whether `text` is, or may yet become, an untagged call of one of `names`: bare or in a code fence."""
    squeezed = re.sub(r"\s", "", text).replace("'", '"')
    for fence in ("```json", "```"):
        if squeezed and fence.startswith(squeezed):
            return True
        if squeezed.startswith(fence):
            squeezed = squeezed[len(fence) :]
            break
    starts = (f'{{"name":"{name}"' for name in names)
    return any(squeezed.startswith(start) or start.startswith(squeezed) for start in starts)


def untagged_call(text: str, names: Collection[str], *, cut: bool = False) -> CallText | None:
    """The call that `text` as a whole is, or `None`; where the reply was `cut` off, it is read as `read_calls` does."""
    if not could_be_call(text, names):
        return None
    try:
        call = next(iter(read_calls(text.strip(), cut=True)), None) if cut else _call(read_value(text))
    except ValueError:
        return None
    return call if call is not None and call.name in names else None


def call_events(calls: Iterable[CallText], ids: Iterable[str]) -> list[Event]:
    """Each call as events, under the next of `ids`."""
    events: list[Event] = []
    for call, call_id in zip(calls, ids, strict=False):
        events += [CallStarted(call_id, call.name), CallDelta(call_id, call.arguments)]
    return events


def _call(entry: object) -> CallText | None:
    if not isinstance(entry, dict):
        return None
    fields = cast("dict[str, Any]", entry)
    name = fields.get("name")
    if not isinstance(name, str) or not name.strip():
        return None
    arguments = fields.get("arguments", fields.get("parameters"))
    if arguments is None:
        return CallText(name.strip(), "{}")
    if isinstance(arguments, str):  # arguments that the model already wrote as text
        try:
            arguments = read_value(arguments)
        except ValueError:
            return CallText(name.strip(), arguments if arguments.strip() else "{}")
    return CallText(name.strip(), compact(arguments))
