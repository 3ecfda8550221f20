"""A conversation as the chat templates of local models want it: the system first, then user and assistant in turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from core.llm.calling.neutral import without_tokens
from core.llm.wire.notes import note
from core.messages.content import ContentItem
from core.messages.message import ASSISTANT, SYSTEM, USER, Message

if TYPE_CHECKING:
    from collections.abc import Iterable

    from core.llm.request import Lang

Json: TypeAlias = dict[str, Any]


def local_turns(messages: Iterable[Message], lang: Lang, *, who: str = "", sees: bool = False) -> list[Json]:
    """The turns, neighbours of one role joined; special tokens that somebody typed are broken apart.

    Args:
        messages: Without calls and results, which the calling templates have turned into text.
        lang: The language of notes in place of what the model cannot take.
        who: What stands at the front of the system message.
        sees: Whether the model takes pictures. Contents are lists of `{"type": "text"}` and `{"type": "image"}` then,
            the picture's address under `image`; else they are text.
    """
    system: list[ContentItem] = [ContentItem(text=who)] if who else []
    turns: list[tuple[str, list[ContentItem]]] = []
    for message in messages:
        role = message.role if message.role in {SYSTEM, ASSISTANT} else USER
        items = [item if sees and item.type == "image" else _as_text(item, lang) for item in message.items]
        if role == SYSTEM:
            _append(system, items)
        elif turns and turns[-1][0] == role:
            _append(turns[-1][1], items)
        elif items or role != ASSISTANT:
            turns.append((role, _append([], items)))
    spoken = [(SYSTEM, system), *turns] if system else turns
    return [{"role": role, "content": _parts(items) if sees else _text(items)} for role, items in spoken]


def _as_text(item: ContentItem, lang: Lang) -> ContentItem:
    return ContentItem(text=without_tokens(note(item, lang)))


def _append(items: list[ContentItem], more: list[ContentItem]) -> list[ContentItem]:
    """`items` with one message more, an empty line between them; texts of one message are one."""
    fresh = bool(items)
    for item in more:
        text = item.text or ""
        if item.type != "text" or not items or items[-1].type != "text":
            items.append(item)
        elif text:
            items[-1] = ContentItem(text=f"{items[-1].text}\n\n{text}" if fresh else f"{items[-1].text}{text}")
        fresh = fresh and not text
    return items


def _text(items: list[ContentItem]) -> str:
    return "".join(item.text or "" for item in items)


def _parts(items: list[ContentItem]) -> list[Json]:
    return [
        {"type": "text", "text": item.text or ""} if item.type == "text" else {"type": "image", "image": item.image}
        for item in items
    ]
