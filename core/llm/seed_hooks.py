"""Lets a model that implements the seed's synchronous hooks speak in events."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from secrets import token_hex
from typing import TYPE_CHECKING, Any, TypeAlias

from core.errors import ModelMisbehavedError
from core.llm.blocking import from_blocking
from core.messages.events import (
    CallDelta,
    CallStarted,
    Event,
    ItemAdded,
    MessageFinished,
    MessageStarted,
    ReasoningDelta,
    TextDelta,
)
from core.messages.message import Message

if TYPE_CHECKING:
    from core.llm.request import ChatRequest, Stream
    from core.messages.content import ContentItem

Whole: TypeAlias = "list[Message] | list[dict[str, Any]]"
StreamHook: TypeAlias = Callable[[list[Message], bool, dict[str, Any]], Iterable[Whole]]
WholeHook: TypeAlias = Callable[[list[Message], dict[str, Any]], Whole]


async def hooks_stream(stream_hook: StreamHook, whole_hook: WholeHook, request: ChatRequest) -> Stream:
    """Run the hooks in a thread and turn their growing messages into events.

    Args:
        stream_hook: `_chat_stream(messages, delta_stream, generate_cfg)`; not implemented: the other one is called.
        whole_hook: `_chat_no_stream(messages, generate_cfg)`.
        request: What is asked; offered functions are in `generate_cfg["functions"]`.

    Raises:
        NotImplementedError: The model implements neither.
        ModelMisbehavedError: What was said before changed.
    """
    yield MessageStarted()
    growth = Growth()
    async with aclosing(from_blocking(lambda: _snapshots(stream_hook, whole_hook, request))) as snapshots:
        async for snapshot in snapshots:
            for event in growth.events(snapshot):
                yield event
    yield MessageFinished("calls" if growth.calls else "stop")


def _snapshots(stream_hook: StreamHook, whole_hook: WholeHook, request: ChatRequest) -> Iterator[list[Message]]:
    # The hooks of the seed may change what they are given; the caller's own messages stay as they are.
    messages = [Message(**message.model_dump()) for message in request.messages]
    generate: dict[str, Any] = dict(request.generate)
    if request.functions:
        generate["functions"] = list(request.functions)
    try:
        growing = iter(stream_hook(messages, False, generate))  # noqa: FBT003 - the seed's signature
        first = next(growing, None)
    except NotImplementedError:
        yield _messages(whole_hook(messages, generate))
        return
    try:
        if first is not None:
            yield _messages(first)
        for snapshot in growing:
            yield _messages(snapshot)
    finally:
        if isinstance(growing, Generator):
            growing.close()


def _messages(snapshot: Whole) -> list[Message]:
    return [item if isinstance(item, Message) else Message(**item) for item in snapshot]


@dataclass(slots=True)
class _Seen:
    """How much of one message was told already."""

    text: str = ""
    reasoning: str = ""
    items: int = 0
    call_id: str = ""


@dataclass(slots=True)
class Growth:
    """Compares whole replies with what was seen before and tells what is new."""

    calls: int = 0
    _seen: list[_Seen] = field(default_factory=list[_Seen])

    def events(self, snapshot: list[Message]) -> Iterator[Event]:
        """What the reply gained since the last snapshot.

        Raises:
            ModelMisbehavedError: What was said before changed.
        """
        for index, message in enumerate(snapshot):
            if index == len(self._seen):
                self._seen.append(_Seen())
            yield from self._grown(self._seen[index], message)

    def _grown(self, seen: _Seen, message: Message) -> Iterator[Event]:
        reasoning = _text_of(message.reasoning_content)
        if new := _added(seen.reasoning, reasoning):
            seen.reasoning = reasoning
            yield ReasoningDelta(new)
        text = _text_of(message.content)
        if new := _added(seen.text, text):
            seen.text = text
            yield TextDelta(new)
        others = [item for item in message.items if item.type != "text"]
        for item in others[seen.items :]:
            yield ItemAdded(item)
        seen.items = max(seen.items, len(others))
        if message.function_call and not seen.call_id:
            self.calls += 1
            seen.call_id = _call_id(message.extra)
            yield CallStarted(seen.call_id, message.function_call.name)
            yield CallDelta(seen.call_id, message.function_call.arguments)


def _added(before: str, now: str) -> str:
    if now.startswith(before):
        return now[len(before) :]
    if before.startswith(now):  # a hook that strips the end while it grows: the rest comes back
        return ""
    raise ModelMisbehavedError(message="The model changed what it had said before.")


def _text_of(content: str | list[ContentItem] | None) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    return "".join(item.text for item in content if item.text)


def _call_id(extra: Mapping[str, Any] | None) -> str:
    return str((extra or {}).get("function_id") or f"call_{token_hex(8)}")
