"""`quick_chat_oai`: messages and tools as OpenAI has them, answered in chunks of the same shape."""

from __future__ import annotations

import time
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from secrets import token_hex
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from core.bridge.snapshots import listed, read, snapshots
from core.errors import BadMessagesError
from core.messages.content import ContentItem
from core.messages.events import MessageFinished
from core.messages.message import ASSISTANT, FUNCTION, SYSTEM, FunctionCall, Message

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Mapping, Sequence

    from core.llm.request import Stream
    from core.messages.events import Event

Json: TypeAlias = dict[str, Any]

_ROLES = {"tool": FUNCTION, "developer": SYSTEM}
_REASONS = {"calls": "tool_calls"}


def chunks(model: str, make: Callable[[], Stream]) -> Generator[Json, None, None]:
    """The reply as chunks. Each holds the whole message so far, what is new as `delta`; the last one the usage.

    Args:
        model: The model's name, for the chunks.
        make: Makes the stream of events.
    """
    end: list[MessageFinished] = []

    async def watched() -> AsyncGenerator[Event, None]:
        async with aclosing(make()) as events:
            async for event in events:
                if isinstance(event, MessageFinished):
                    end.append(event)
                yield event

    writer = _Writer(model)
    shown = snapshots(watched)
    try:
        for messages in shown:
            yield writer.chunk(messages)
    finally:
        shown.close()
    yield writer.last(end[-1] if end else None)


@dataclass(slots=True)
class _Writer:
    model: str
    said: Json = field(default_factory=lambda: {"role": ASSISTANT, "content": ""})
    response_id: str = field(default_factory=lambda: f"chatcmpl-{token_hex(12)}")
    created: int = field(default_factory=lambda: int(time.time()))

    def chunk(self, messages: Sequence[Message]) -> Json:
        before, self.said = self.said, oai_reply(messages)
        return self._chunk(_delta(before, self.said), None, None)

    def last(self, end: MessageFinished | None) -> Json:
        usage = end.usage.model_dump(exclude={"cost", "estimated"}) if end and end.usage else None
        reason = end.reason if end else "stop"
        return self._chunk({}, _REASONS.get(reason, reason), usage)

    def _chunk(self, delta: Json, reason: str | None, usage: Json | None) -> Json:
        choice = {"index": 0, "message": self.said, "delta": delta, "finish_reason": reason}
        return {
            "id": self.response_id,
            "object": "chat.completion.chunk",
            "created": self.created,
            "model": self.model,
            "choices": [choice],
            "usage": usage,
        }


def oai_reply(messages: Iterable[Message]) -> Json:
    """A reply as one assistant message of OpenAI's."""
    said: Json = {"role": ASSISTANT, "content": ""}
    for message in messages:
        said["content"] += message.get_text_content()
        if message.reasoning_content:
            said["reasoning_content"] = f"{said.get('reasoning_content', '')}{message.reasoning_content}"
        if call := message.function_call:
            call_id = str((message.extra or {}).get("function_id") or f"call_{token_hex(8)}")
            function = {"name": call.name, "arguments": call.arguments}
            said.setdefault("tool_calls", []).append({"id": call_id, "type": "function", "function": function})
    return said


def _delta(before: Json, now: Json) -> Json:
    delta: Json = {
        key: now[key][len(before.get(key, "")) :]
        for key in ("content", "reasoning_content")
        if len(now.get(key, "")) > len(before.get(key, ""))
    }
    known = len(before.get("tool_calls", ()))
    if calls := now.get("tool_calls", [])[known:]:
        delta["tool_calls"] = [{"index": known + n, **call} for n, call in enumerate(calls)]
    return delta


def from_oai(messages: Iterable[Json]) -> list[Message]:
    """OpenAI's messages as ours; the given dicts stay as they are.

    A tool's result finds its name by the id of its call, else by the order of the calls.

    Raises:
        BadMessagesError: It is no list of messages; the error names what is wrong with the first that is none.
    """
    open_calls: dict[str, str] = {}  # id to name, in order
    ours = partial(_ours, open_calls)
    return [message for place, given in enumerate(listed(messages)) for message in read(place, given, ours)]


def _ours(open_calls: dict[str, str], given: Mapping[str, Any]) -> list[Message]:
    """One message of OpenAI's: what was thought, what was said, and each call are messages of their own."""
    role = _ROLES.get(str(given.get("role", "")), str(given.get("role", "")))
    content = _content(given.get("content"))
    if role == FUNCTION:
        call_id, name = _answered(given, open_calls)
        return [Message(FUNCTION, content, name=name, extra={"function_id": call_id} if call_id else None)]
    ours: list[Message] = []
    calls: list[Json] = given.get("tool_calls") or []
    reasoning = given.get("reasoning_content")
    if reasoning:
        ours.append(Message(role, "", reasoning_content=reasoning))
    if content or not (calls or reasoning):
        ours.append(Message(role, content, name=given.get("name")))
    for call in calls:
        function, call_id = _function(call), str(call.get("id") or f"call_{token_hex(8)}")
        open_calls[call_id] = str(function["name"])
        made = FunctionCall(function["name"], function.get("arguments") or "{}")
        ours.append(Message(ASSISTANT, "", function_call=made, extra={"function_id": call_id}))
    return ours


def _function(call: Any) -> Mapping[str, Any]:
    """What a call of OpenAI's is about."""
    function = cast("Json", call).get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or not isinstance(cast("Json", function).get("name"), str):
        hint = 'Give calls such as {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}.'
        raise BadMessagesError(code="400", message="A tool call names no function.", hint=hint)
    return cast("Json", function)


def _answered(given: Mapping[str, Any], open_calls: dict[str, str]) -> tuple[str, str]:
    name = str(given.get("name") or "")
    call_id = str(given.get("tool_call_id") or given.get("id") or "")
    if call_id not in open_calls:
        call_id = next((key for key, called in open_calls.items() if not name or called == name), call_id)
    return call_id, open_calls.pop(call_id, name) or name or "tool"


def _content(given: str | list[Json] | None) -> str | list[ContentItem]:
    if given is None or isinstance(given, str):
        return given or ""
    return [_item(part) for part in given]


def _item(part: Json) -> ContentItem:
    match part.get("type"):
        case "image_url":
            return ContentItem(image=part["image_url"]["url"])
        case "video_url":
            return ContentItem(video=part["video_url"]["url"])
        case "video":
            return ContentItem(video=part["video"])
        case "input_audio":
            return ContentItem(audio=part["input_audio"])
        case _:
            return ContentItem(**{key: value for key, value in part.items() if key != "type"})


def functions_of(tools: Iterable[Json] | None) -> list[Json]:
    """The functions that OpenAI's `tools` wrap; bare functions are taken as they are, and so is what is none."""
    each: Iterable[Any] = tools or ()
    return [cast("Json", tool).get("function", tool) if isinstance(tool, dict) else tool for tool in each]
