"""Reads and extends a conversation: its language, its system message, and the calls of the last turn."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from core.messages.content import ContentItem
from core.messages.message import FUNCTION, SYSTEM, USER, Message

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from core.languages import Lang
    from core.rag.document import Passage

HEARD: Mapping[Lang, str] = {"en": "{name}: {text}", "zh": "{name}：{text}"}
SAID_NOTHING: Mapping[Lang, str] = {
    "en": "“{name}” had nothing to say.",
    "zh": "“{name}”没有作出回答。",
}
_LATIN_WORD = re.compile(r"[A-Za-z\u00c0-\u024f]+")
_CHINESE = re.compile(r"[\u3400-\u9fff]")


def language_of(messages: Sequence[Message]) -> Lang:
    """The language of the user's last message that has text."""
    for message in reversed(messages):
        if message.role == USER and (text := message.get_text_content().strip()):
            return "zh" if _is_chinese(text[:4000]) else "en"
    return "en"


def _is_chinese(text: str) -> bool:
    """Whether there are more Chinese characters than Latin words: a single foreign term does not decide."""
    return len(_CHINESE.findall(text)) > len(_LATIN_WORD.findall(text))


def prepend_system(messages: list[Message], text: str) -> list[Message]:
    """A new list whose system message begins with `text`; one is made where there is none."""
    if not text:
        return list(messages)
    if not messages or messages[0].role != SYSTEM:
        return [Message(SYSTEM, text), *messages]
    said = messages[0].content
    content = f"{text}\n\n{said}" if isinstance(said, str) else [ContentItem(text=f"{text}\n\n"), *said]
    return [messages[0].model_copy(update={"content": content}), *messages[1:]]


def append_system(messages: Sequence[Message], text: str, *, extra: Mapping[str, Any] | None = None) -> list[Message]:
    """A new list whose system message ends with `text`; one is made where there is none.

    Args:
        text: If it is empty, nothing is added to what a system message says.
        extra: Merged into the system message's `extra`.
    """
    more = dict(extra or {})
    if not messages or messages[0].role != SYSTEM:
        return [Message(SYSTEM, text, extra=more or None), *messages]
    told = append_paragraph(messages[0], text) if text else messages[0]
    if more:
        told = told.model_copy(update={"extra": {**(told.extra or {}), **more}})
    return [told, *messages[1:]]


def append_paragraph(message: Message, text: str) -> Message:
    """The message with `text` as a further paragraph."""
    said = message.content
    content = f"{said}\n\n{text}" if isinstance(said, str) else [*said, ContentItem(text=f"\n\n{text}")]
    return message.model_copy(update={"content": content})


def this_turn(messages: Sequence[Message]) -> Sequence[Message]:
    """The messages after the user's last one."""
    asked = (index for index in range(len(messages) - 1, -1, -1) if messages[index].role == USER)
    return messages[next(asked, -1) + 1 :]


def unanswered_calls(messages: Sequence[Message]) -> list[Message]:
    """The calls of this turn that have no result, in order."""
    said = this_turn(messages)
    answered = {call_id(message) for message in said if message.role == FUNCTION}
    return [message for message in said if message.function_call is not None and call_id(message) not in answered]


def has_called(messages: Sequence[Message]) -> bool:
    """Whether the model has called a tool in this turn."""
    return any(message.function_call is not None for message in this_turn(messages))


def passages_found(messages: Sequence[Message]) -> list[Passage]:
    """The passages that were found in this turn, in the order of their numbers."""
    from core.rag.document import Passage  # brings the document readers with it

    rows = [
        row
        for message in this_turn(messages)
        for row in (message.extra or {}).get("passages") or ()
        if message.role == FUNCTION or row.get("number")  # what a model cites outside of an agent has none
    ]
    numbered = {int(row.get("number") or 0): row for row in rows}  # the last one found under a number counts
    return [Passage.from_dict(numbered[number]) for number in sorted(numbered)]


def call_id(message: Message) -> str:
    """The id that a call and its result share."""
    return str((message.extra or {}).get("function_id") or "")


def with_call_id(message: Message, known: str) -> Message:
    """The message of a call or a result, under another id."""
    return message.model_copy(update={"extra": {**(message.extra or {}), "function_id": known}})


def reserve_call_ids(messages: Sequence[Message], ids: Iterable[str]) -> list[Message]:
    """The conversation for a further agent of the same reply, with call ids that it must not use again.

    Args:
        ids: Ids of calls that other agents made and this one does not see.
    """
    taken = sorted(ids)
    if not taken or not messages:
        return list(messages)
    last = messages[-1]
    return [*messages[:-1], last.model_copy(update={"extra": {**(last.extra or {}), "taken": taken}})]


def mark_private(messages: list[Message]) -> list[Message]:
    """Mark the conversation as one with private content, for whoever decides about calls: such content was left out."""
    marked = next((at for at, one in enumerate(messages) if one.role in {SYSTEM, USER}), None)
    if marked is None:
        return messages
    extra = messages[marked].extra or {}
    extra = {**extra, "files": extra.get("files") or [""]}
    return [*messages[:marked], messages[marked].model_copy(update={"extra": extra}), *messages[marked + 1 :]]
