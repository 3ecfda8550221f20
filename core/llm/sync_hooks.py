"""The synchronous hooks of Qwen-Agent's models, as a stream of events."""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from secrets import token_hex
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from core.errors import ModelMisbehavedError
from core.llm.concurrency import from_blocking
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

T = TypeVar("T")

Whole: TypeAlias = "list[Message] | list[dict[str, Any]]"
StreamHook: TypeAlias = Callable[..., Iterable[Whole]]
WholeHook: TypeAlias = Callable[..., Whole]
CallingHook: TypeAlias = "Callable[..., Whole | Iterable[Whole]]"


@dataclass(frozen=True, slots=True)
class Hooks:
    """The hooks of one model, each called with the parameters that it declares.

    Args:
        stream: `_chat_stream(messages, delta_stream, generate_cfg)`; if not implemented, the next one is called.
        whole: `_chat_no_stream(messages, generate_cfg)`.
        calling: `_chat_with_functions(messages, functions, stream, delta_stream, generate_cfg, lang)`, if functions
            are on offer; if not implemented, the others are called.
    """

    stream: StreamHook
    whole: WholeHook
    calling: CallingHook


async def hooks_stream(hooks: Hooks, request: ChatRequest, model: str) -> Stream:
    """Run the hooks in a thread and turn their growing messages into events.

    Args:
        request: Its functions are in `generate_cfg["functions"]`, too.
        model: The name of the model's class, for errors.

    Raises:
        NotImplementedError: The model implements none.
        ModelMisbehavedError: Earlier text changed.
    """
    yield MessageStarted()
    growth = Growth()
    async with aclosing(from_blocking(lambda: _snapshots(hooks, request, model))) as snapshots:
        async for snapshot in snapshots:
            for event in growth.events(snapshot):
                yield event
    yield MessageFinished("calls" if growth.calls else "stop")


def _snapshots(hooks: Hooks, request: ChatRequest, model: str) -> Iterator[list[Message]]:
    # Hooks may change their arguments; the caller's messages stay as they are.
    messages = [Message(**message.model_dump()) for message in request.messages]
    generate: dict[str, Any] = dict(request.generate)
    given: dict[str, Any] = {"messages": messages, "delta_stream": False, "generate_cfg": generate}
    ways: list[Callable[[], Any]] = [partial(by_name, hooks.stream, **given)]
    ways.append(partial(by_name, hooks.whole, messages=messages, generate_cfg=generate))
    if request.functions:
        generate["functions"] = list(request.functions)
        calling = {**given, "functions": list(request.functions), "stream": True, "lang": request.lang}
        ways.insert(0, partial(by_name, hooks.calling, **calling))
    for way in ways:
        try:
            growing = _replies(way())
            first = next(growing, None)
        except NotImplementedError:
            continue
        try:
            if first is not None:
                yield first
            yield from growing
        finally:
            growing.close()
        return
    raise NotImplementedError(f"{model} answers nothing: it must define _stream, _chat_stream or _chat_no_stream.")


def _replies(given: Any) -> Generator[list[Message], None, None]:
    """The snapshots of a hook that returns one or many."""
    if isinstance(given, list) and not (given and isinstance(given[0], list)):
        given = [cast("Whole", given)]
    growing = iter(cast("Iterable[Whole]", given))
    try:
        for snapshot in growing:
            yield _messages(snapshot)
    finally:
        if isinstance(growing, Generator):
            growing.close()


def by_name(hook: Callable[..., T], **given: Any) -> T:
    """Call a hook with those of `given` that it declares, by name.

    A parameter of another name gets the first value that is left over, so that hooks with other parameter names get
    Qwen-Agent's order; values without a parameter are dropped.
    """
    signature = inspect.signature(hook)
    parameters = signature.parameters.values()
    every = {one.name for one in parameters}
    left = {name: value for name, value in given.items() if name not in every}
    arguments: dict[str, Any] = {}
    for one in parameters:
        if one.kind is one.VAR_POSITIONAL:
            arguments[one.name] = ()
        elif one.kind is one.VAR_KEYWORD:
            arguments[one.name] = left
        elif one.name in given:
            arguments[one.name] = given[one.name]
        elif one.default is one.empty and left:
            arguments[one.name] = left.pop(next(iter(left)))
    bound = inspect.BoundArguments(signature, OrderedDict(arguments))
    return hook(*bound.args, **bound.kwargs)


def _messages(snapshot: Whole) -> list[Message]:
    return [item if isinstance(item, Message) else Message(**item) for item in snapshot]


@dataclass(slots=True)
class _Seen:
    """How much of one message was emitted."""

    text: str = ""
    reasoning: str = ""
    items: int = 0
    call_id: str = ""


@dataclass(slots=True)
class Growth:
    """Turns growing snapshots of a reply into events."""

    calls: int = 0
    _seen: list[_Seen] = field(default_factory=list[_Seen])

    def events(self, snapshot: list[Message]) -> Iterator[Event]:
        """What is new since the last snapshot.

        Raises:
            ModelMisbehavedError: Earlier text changed.
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
    if before.startswith(now):  # a hook that strips trailing white space: it comes again
        return ""
    raise ModelMisbehavedError(message="The model changed what it had said before.")


def _text_of(content: str | list[ContentItem] | None) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    return "".join(item.text for item in content if item.text)


def _call_id(extra: Mapping[str, Any] | None) -> str:
    return str((extra or {}).get("function_id") or f"call_{token_hex(8)}")
