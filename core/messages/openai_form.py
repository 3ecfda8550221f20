"""OpenAI's messages, read into ours: parts with a `type`, `tool_calls`, and the roles `tool` and `developer`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from secrets import token_hex
from typing import Any, Final, TypeAlias, cast

from core.messages.content import ContentItem
from core.messages.message import ASSISTANT, FUNCTION, SYSTEM, FunctionCall, Message

Json: TypeAlias = dict[str, Any]

_ROLES: Final = {"tool": FUNCTION, "developer": SYSTEM}
_CALL_FORM: Final = '{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}'
_PART_FORMS: Final = {
    "text": '{"type": "text", "text": "…"}',
    "image_url": '{"type": "image_url", "image_url": {"url": "…"}}',
    "video_url": '{"type": "video_url", "video_url": {"url": "…"}}',
    "video": '{"type": "video", "video": "…"}',
    "input_audio": '{"type": "input_audio", "input_audio": {"data": "…", "format": "wav"}}',
    "file": '{"type": "file", "file": {"file_data": "data:…"}}',
}
_SAME: Final = {"input_text": "text", "output_text": "text", "input_image": "image_url"}


class FormError(ValueError):
    """A message, or a part of one, that cannot be read.

    Args:
        said: What is wrong with it.
    """

    def __init__(self, said: str, hint: str) -> None:
        super().__init__(said)
        self.hint = hint


class OpenAIReader:
    """Reads one conversation: a tool's result finds its name by the id of its call, else by the order of the calls."""

    def __init__(self) -> None:
        self._open_calls: dict[str, str] = {}  # id to name, in order

    def read(self, given: Mapping[str, Any]) -> list[Message]:
        """One message of OpenAI's: what was thought, what was said, and each call are messages of their own.

        Raises:
            FormError: A part or a call cannot be read.
            ValidationError: It is no message.
        """
        role = _ROLES.get(str(given.get("role", "")), str(given.get("role", "")))
        content = content_of(given.get("content"))
        if role == FUNCTION:
            call_id, name = self._answered(given)
            extra = {"function_id": call_id} if call_id else None
            return [Message(FUNCTION, content, name=name, extra=extra)]
        ours: list[Message] = []
        calls: Any = given.get("tool_calls") or []
        reasoning = given.get("reasoning_content")
        if reasoning:
            ours.append(Message(role, "", reasoning_content=reasoning))
        if content or not (calls or reasoning):
            ours.append(Message(role, content, name=given.get("name")))
        if not isinstance(calls, list):
            raise FormError("tool_calls must be a list.", f"Give calls such as {_CALL_FORM}.")
        return [*ours, *(self._called(call) for call in cast("list[Any]", calls))]

    def _called(self, call: Any) -> Message:
        whole = cast("Json", call) if isinstance(call, dict) else {}
        function = whole.get("function")
        if not isinstance(function, dict) or not isinstance(cast("Json", function).get("name"), str):
            raise FormError("A tool call names no function.", f"Give calls such as {_CALL_FORM}.")
        named, call_id = cast("Json", function), str(whole.get("id") or f"call_{token_hex(8)}")
        self._open_calls[call_id] = str(named["name"])
        arguments: Any = named.get("arguments") or "{}"
        if isinstance(arguments, Mapping):
            arguments = json.dumps(arguments, ensure_ascii=False)
        made = FunctionCall(named["name"], arguments)
        return Message(ASSISTANT, "", function_call=made, extra={"function_id": call_id})

    def _answered(self, given: Mapping[str, Any]) -> tuple[str, str]:
        name = str(given.get("name") or "")
        call_id = str(given.get("tool_call_id") or given.get("id") or "")
        if call_id not in self._open_calls:
            known = (key for key, called in self._open_calls.items() if not name or called == name)
            call_id = next(known, call_id)
        return call_id, self._open_calls.pop(call_id, name) or name or "tool"


def is_openai(given: Mapping[str, Any]) -> bool:
    """Whether a message has a role or calls that OpenAI's messages have, and ours have not."""
    role = given.get("role")
    return bool(given.get("tool_calls")) or (isinstance(role, str) and role in _ROLES)


def has_parts(given: Mapping[str, Any]) -> bool:
    """Whether the content of a message has parts as OpenAI has them, or texts alone."""
    content: Any = given.get("content")
    return isinstance(content, list) and any(_is_part(part) for part in cast("list[Any]", content))


def _is_part(part: object) -> bool:
    """Whether it is in no form of ours; what can be read in no form at all is told by whoever reads it."""
    return "type" in part if isinstance(part, Mapping) else not isinstance(part, ContentItem)


def content_of(given: object) -> str | list[ContentItem]:
    """The content of a message.

    Raises:
        FormError: It is neither a text nor a list of parts.
        ValidationError: A part is none.
    """
    if given is None or isinstance(given, str):
        return given or ""
    if not isinstance(given, list):
        said = f"content must be a text or a list of parts, not {type(given).__name__}."
        raise FormError(said, f"Give a text, or parts such as {_PART_FORMS['text']}.")
    return [_item(part) for part in cast("list[Any]", given)]


def _item(part: Any) -> ContentItem:
    if isinstance(part, str):
        return ContentItem(text=part)
    if isinstance(part, ContentItem):
        return part
    if not isinstance(part, Mapping):
        said = f"A part of the content cannot be {'None' if part is None else type(part).__name__}."
        raise FormError(said, f"Give parts such as {_PART_FORMS['text']}.")
    given = cast("Mapping[str, Any]", part)
    kind = _SAME.get(str(given.get("type")), given.get("type"))
    if kind is None:
        return ContentItem(**given)
    if kind not in _PART_FORMS:
        return _own_form(given)
    value = given.get(str(kind))
    item = _made(str(kind), value, given)
    if item is None:
        raise FormError(f"A part of the type {kind!r} cannot be read.", f"Write it as {_PART_FORMS[str(kind)]}.")
    return item


def _made(kind: str, value: Any, given: Mapping[str, Any]) -> ContentItem | None:
    address = cast("Mapping[str, Any]", value).get("url") if isinstance(value, Mapping) else value
    match kind:
        case "text":
            text = given.get("text")
            return ContentItem(text=text) if isinstance(text, str) else None
        case "image_url" if isinstance(address, str):
            return ContentItem(image=address)
        case "video_url" if isinstance(address, str):
            return ContentItem(video=address)
        case "video" if isinstance(value, str | list):
            return ContentItem(video=cast("str | list[Any]", value))
        case "input_audio" if isinstance(value, str | dict):
            return ContentItem(audio=cast("str | Json", value))
        case "file":
            data = cast("Mapping[str, Any]", value).get("file_data") if isinstance(value, Mapping) else value
            return ContentItem(file=data) if isinstance(data, str) else None
        case _:
            return None


def _own_form(given: Mapping[str, Any]) -> ContentItem:
    """A part of ours that names its type besides."""
    try:
        return ContentItem(**{key: value for key, value in given.items() if key != "type"})
    except ValueError as error:
        forms = ", ".join(_PART_FORMS)
        raise FormError(f"There is no part of the type {given['type']!r}.", f"Known: {forms}.") from error
