"""`quick_chat_oai`: OpenAI's messages and tools in, chunks of OpenAI's form out."""

from __future__ import annotations

import time
from contextlib import aclosing
from dataclasses import dataclass, field
from secrets import token_hex
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from core.bridge.snapshots import listed, read, snapshots
from core.messages.events import MessageFinished
from core.messages.message import ASSISTANT, Message
from core.messages.openai_form import OpenAIReader

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Sequence

    from core.llm.request import Stream
    from core.messages.events import Event

Json: TypeAlias = dict[str, Any]

_REASONS = {"calls": "tool_calls"}


def chunks(model: str, make: Callable[[], Stream]) -> Generator[Json, None, None]:
    """The reply as chunks, each with the whole message so far and its `delta`; the last has the usage.

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
    """A reply as one assistant message in OpenAI's form."""
    said: Json = {"role": ASSISTANT, "content": ""}
    texts: list[str] = []
    thoughts: list[Any] = []
    for message in messages:
        texts.append(message.get_text_content())
        if message.reasoning_content:
            thoughts.append(message.reasoning_content)
        if call := message.function_call:
            call_id = str((message.extra or {}).get("function_id") or f"call_{token_hex(8)}")
            function = {"name": call.name, "arguments": call.arguments}
            said.setdefault("tool_calls", []).append({"id": call_id, "type": "function", "function": function})
    said["content"] = "".join(texts)
    if thoughts:
        said["reasoning_content"] = "".join(map(str, thoughts))
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
        BadMessagesError: It is not a list of messages; the error names the first fault.
    """
    ours = OpenAIReader()
    return [message for place, given in enumerate(listed(messages)) for message in read(place, given, ours.read)]


def functions_of(tools: Iterable[Json] | None) -> list[Json]:
    """The functions in OpenAI's `tools`; anything else is passed through."""
    each: Iterable[Any] = tools or ()
    return [cast("Json", tool).get("function", tool) if isinstance(tool, dict) else tool for tool in each]
