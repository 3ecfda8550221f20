"""Events to the cumulative `list[Message]` of synchronous callers, joined by time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import aclosing
from time import monotonic
from typing import Any, TypeAlias, TypeVar, cast

from pydantic import ValidationError

from core.bridge.sync import Post, iterate, pumped
from core.errors import BadMessagesError, shown
from core.messages.content import BaseModelCompatibleDict
from core.messages.events import Event, ItemAdded, ReasoningDelta, TextDelta
from core.messages.marks import appended
from core.messages.message import ASSISTANT, USER, Message
from core.messages.openai_form import FormError, OpenAIReader, content_of, has_parts, is_openai
from core.messages.transcript import Transcript

MakeEvents: TypeAlias = Callable[[], AsyncGenerator[Event, None]]
Snapshot: TypeAlias = list[Message]
Made = TypeVar("Made")

_PAUSE = 0.05  # seconds between two snapshots: no reader follows more than 20 a second


def snapshots(make: MakeEvents) -> Generator[list[Message], None, None]:
    """The reply so far, again and again: at most 20 times a second, and always once when it is whole.

    A list that was given never changes; closing the iterator closes the events.

    Args:
        make: Makes the event stream; called on the shared loop.
    """
    return pumped(lambda post: _Snapshots(post).follow(make))


def deltas(make: MakeEvents) -> Generator[list[Message], None, None]:
    """Only what is new, event by event: lists of one message each. Calls have no partial form and are left out."""
    for event in iterate(make):
        match appended(event):
            case TextDelta(text):
                yield [Message(ASSISTANT, text)]
            case ReasoningDelta(text):
                yield [Message(ASSISTANT, "", reasoning_content=text)]
            case ItemAdded(item):
                yield [Message(ASSISTANT, [item])]
            case _:
                continue


class _Snapshots:
    """Joins events on the loop's side, so that a thread wakes only for what it is going to show."""

    def __init__(self, post: Post[Snapshot]) -> None:
        self._post = post
        self._transcript = Transcript()
        self._loop = asyncio.get_event_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0
        self._changed = False
        self._shown: list[Message] = []

    async def follow(self, make: MakeEvents) -> None:
        apply = self._transcript.apply
        try:
            async with aclosing(make()) as events:
                async for event in events:
                    apply(event)
                    self._changed = True
                    if self._timer is None:
                        self._plan()
        finally:
            if self._timer is not None:
                self._timer.cancel()
            self._show()  # the whole reply, or all there is when it breaks off

    def _plan(self) -> None:
        """Show now if it is time, else when it is: the last word before a silence is not held back."""
        now = monotonic()
        if now >= self._due:
            self._show()
        self._timer = self._loop.call_later(max(self._due - now, 0.0), self._ring)

    def _ring(self) -> None:
        self._timer = None
        if self._changed:
            self._plan()

    def _show(self) -> None:
        """Post the reply if it changed; a call that began, say, changes no message yet."""
        messages = self._transcript.messages() if self._changed else []
        self._changed = False
        if messages and messages != self._shown:
            self._post(messages)
            self._shown = messages
            self._due = monotonic() + _PAUSE


def as_messages(given: Iterable[Message | dict[str, Any]]) -> tuple[list[Message], bool]:
    """Messages, and whether the answer should be dicts: it is when nothing but dicts came in.

    The caller's objects are neither changed nor kept: dicts are validated into new messages. Those in OpenAI's form
    (parts with a `type`, `tool_calls`, the roles `tool` and `developer`) are read, too.

    Raises:
        BadMessagesError: It is no list of messages; the error names what is wrong with the first that is none.
    """
    items = listed(given)
    openai = OpenAIReader()

    def ours(item: Mapping[str, Any]) -> list[Message]:
        return openai.read(item) if is_openai(item) else [_message(item)]

    messages: list[Message] = []
    for place, item in enumerate(items):
        messages += [item] if isinstance(item, Message) else read(place, item, ours)
    return messages, are_dicts(items)


def listed(given: Any) -> list[Any]:
    """What was given as messages, as a list.

    Raises:
        BadMessagesError: It is something else than a list, a text or a single message for example.
    """
    kind = _kind(given)
    if isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping | BaseModelCompatibleDict):
        return list(cast("Iterable[Any]", given))
    hint = 'Give a list, such as [{"role": "user", "content": "Hello"}].'
    raise BadMessagesError(code="400", message=f"Messages cannot be given as {kind}.", hint=hint)


def are_dicts(given: Any) -> bool:
    """Whether messages are dicts throughout, so that the answer should be."""
    items = cast("list[Any]", given) if isinstance(given, list | tuple) else []
    return bool(items) and not any(isinstance(item, Message) for item in items)


def read(place: int, item: Any, make: Callable[[Mapping[str, Any]], Made]) -> Made:
    """What `make` makes of one item of a list of messages.

    Raises:
        BadMessagesError: The item is no dict, or not one of a message; the error counts from 1.
    """
    if not isinstance(item, Mapping):
        hint = 'Give a Message, or a dict with role and content, such as {"role": "user", "content": "Hello"}.'
        raise BadMessagesError(code="400", message=f"Message {place + 1} is {_called(item)}.", hint=hint)
    try:
        return make(cast("Mapping[str, Any]", item))
    except FormError as error:
        message = f"Message {place + 1} cannot be read: {error}"
        raise BadMessagesError(code="400", message=message, hint=error.hint) from error
    except ValidationError as error:
        where, said, hint = _wrong(error)
        message = f"Message {place + 1} cannot be read: {where}: {said}."
        raise BadMessagesError(code="400", message=message, hint=hint) from error


def _wrong(error: ValidationError) -> tuple[str, str, str]:
    """Which field of a message is wrong, how, and what to do."""
    every = error.errors(include_input=False, include_url=False)
    wrong = next((one for one in every if len(one["loc"]) > 2), every[0])  # of a list the part says more
    where = str(wrong["loc"][0]) if wrong["loc"] else "message"
    if where == "content" and len(wrong["loc"]) <= 2:
        return where, "it is neither a text nor a list of parts", 'Give a text, or parts such as {"text": "Hello"}.'
    return where, str(wrong["msg"]).removeprefix("Value error, ").rstrip("."), f"Correct its {where}."


def _message(item: Mapping[str, Any]) -> Message:
    fields: dict[str, Any] = {"role": "", **item}  # without a role the message itself says what is wrong
    if fields["role"] == USER and "content" not in fields:  # nobody means to ask nothing
        hint = 'Write what is asked as its content, such as {"role": "user", "content": "Hello"}.'
        raise FormError("it is a user's and has no content.", hint)
    if has_parts(fields):
        fields["content"] = content_of(fields["content"])
    return Message(**fields)


def _kind(given: object) -> str:
    return "None" if given is None else type(given).__name__


def _called(given: object) -> str:
    """What was given, as people call it."""
    if given is None or isinstance(given, bool):
        return str(given)
    if isinstance(given, bytes | str):
        return "a text" if isinstance(given, str) else "bytes"
    return "a number" if isinstance(given, int | float) else shown(given)


def dumped(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """The messages as dicts, for callers who gave dicts."""
    return [message.model_dump() for message in messages]


def in_dicts(shown: Generator[list[Message], None, None]) -> Generator[list[dict[str, Any]], None, None]:
    """`dumped`, for each of many; closing it closes what it reads."""
    try:
        for messages in shown:
            yield dumped(messages)
    finally:
        shown.close()
