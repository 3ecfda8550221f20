"""A conversation as entries of the Chatbot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from webui.render.entries import said
from webui.render.question import question_entry
from webui.render.reply import reply_entries

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.runs.reply import Reply
    from core.storage.base import DocumentRecord, StoredMessage
    from webui.render.entries import Entry
    from webui.words import Words

WINDOW = 40
_KEPT = 600


class Rendered:
    """Entries of messages that do not change any more, so that a frame costs the live reply alone."""

    def __init__(self, most: int = _KEPT) -> None:
        self._most = most
        self._entries: dict[tuple[Any, ...], list[Entry]] = {}

    def get(self, key: tuple[Any, ...]) -> list[Entry] | None:
        """The entries under a key."""
        return self._entries.get(key)

    def put(self, key: tuple[Any, ...], entries: list[Entry]) -> None:
        """Keep entries; the oldest go when there are too many."""
        while len(self._entries) >= self._most:
            del self._entries[next(iter(self._entries))]
        self._entries[key] = entries


def shown(  # noqa: PLR0913 - each is a part of the page, by name
    thread: Sequence[StoredMessage],
    replies: Mapping[str, Reply],
    *,
    words: Words,
    window: int = WINDOW,
    anchor: str | None = None,
    documents: Sequence[DocumentRecord] = (),
    rendered: Rendered | None = None,
) -> tuple[list[Entry], list[str]]:
    """What the Chatbot shows of a conversation.

    Args:
        thread: The turns from the first to the last.
        replies: The replies among them, by id; live ones as far as they are.
        words: The reader's.
        window: How many turns from the end are shown.
        anchor: The turn to begin with instead.
        documents: Those of the conversation: whether they could be read is said beside their names.
        rendered: Keeps what does not change from frame to frame.

    Returns:
        The entries, and for each the id of the message it belongs to ("" for "show earlier").
    """
    first = _first(thread, window, anchor)
    states = {document.file_id: document for document in documents}
    entries: list[Entry] = []
    owners: list[str] = []
    if first:
        entries.append(said("assistant", _earlier(words)))
        owners.append("")
    for message in thread[first:]:
        last = message is thread[-1]
        key = _key(message, replies.get(message.id), words, states, last=last)
        made = rendered.get(key) if rendered is not None and key else None
        if made is None:
            made = _entries(message, replies.get(message.id), words, states, last=last)
            if rendered is not None and key:
                rendered.put(key, made)
        entries.extend(made)
        owners.extend([message.id] * len(made))
    return entries, owners


def _first(thread: Sequence[StoredMessage], window: int, anchor: str | None) -> int:
    for index, message in enumerate(thread):
        if anchor is not None and message.id == anchor:
            return index
    return max(0, len(thread) - window)


def _key(
    message: StoredMessage,
    reply: Reply | None,
    words: Words,
    states: Mapping[str, DocumentRecord],
    *,
    last: bool,
) -> tuple[Any, ...] | None:
    """What the entries of a message depend on; None while they still change."""
    if message.role == "user":
        return (message.id, words.lang, tuple((state.file_id, state.status) for state in states.values()))
    if reply is None:
        return (message.id, words.lang, message.status, len(message.parts), last)
    return None if reply.status == "running" else (message.id, words.lang, reply.status, reply.seen, last)


def _entries(
    message: StoredMessage,
    reply: Reply | None,
    words: Words,
    states: Mapping[str, DocumentRecord],
    *,
    last: bool,
) -> list[Entry]:
    if message.role == "user":
        return [question_entry(message, words, states)]
    return reply_entries(message, reply, words, last=last)


def _earlier(words: Words) -> str:
    return f'<p class="p-earlier"><a class="p-do" href="#do-earlier">{words("reply.earlier")}</a></p>'
