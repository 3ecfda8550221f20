"""A conversation as entries of the Chatbot."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from core.runs.reply import CallBlock, ItemBlock
from core.storage.base import file_ids
from webui.render.entries import said
from webui.render.question import question_entry
from webui.render.reading import DocumentState, Waiting, state_line
from webui.render.reply import reply_entries
from webui.render.versions import versions_html

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from core.rag.progress import ReadingProgress
    from core.reading.preparing import Made
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
        self._guard = threading.Lock()
        self._entries: dict[tuple[Any, ...], list[Entry]] = {}

    def get(self, key: tuple[Any, ...]) -> list[Entry] | None:
        """The entries under a key."""
        return self._entries.get(key)

    def put(self, key: tuple[Any, ...], entries: list[Entry]) -> None:
        """Keep entries; the oldest go when there are too many."""
        with self._guard:  # frames are made in several threads
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
    readings: Mapping[str, ReadingProgress] | None = None,
    preparing: Mapping[str, Made] | None = None,
    versions: Mapping[str, Sequence[str]] | None = None,
    free: bool = True,
    cast: Collection[str] = (),
    rendered: Rendered | None = None,
) -> tuple[list[Entry], list[str]]:
    """What the Chatbot shows of a conversation.

    Args:
        thread: The turns from the first to the last.
        replies: The replies among them, by id; live ones as far as they are.
        words: The reader's.
        window: How many turns from the end are shown.
        anchor: The turn to begin with instead.
        documents: Those of the conversation: how far their reading is stands on a card with the question.
        readings: How far those are that are being read, by the document's id.
        preparing: Those that search by meaning does not know yet, by their ids, and how far that has come.
        versions: The ids of all versions of a turn, for those that have several.
        free: Whether another version can be turned to: not while a reply is being written.
        cast: The names of all who may speak, where that is known; who speaks is told where there are several.
        rendered: Keeps what does not change from frame to frame.

    Returns:
        The entries, and for each the id of the message it belongs to ("" for "show earlier").
    """
    first = _first(thread, window, anchor)
    now, come = readings or {}, preparing or {}
    states = {one.file_id: DocumentState(one, now.get(one.id), come.get(one.id)) for one in documents}
    speaking = (name for reply in replies.values() for name in reply.speakers)
    names = tuple(dict.fromkeys([*cast, *speaking]))
    entries: list[Entry] = []
    owners: list[str] = []
    if first:
        entries.append(said("assistant", _earlier(words)))
        owners.append("")
    for index, message in enumerate(thread[first:], first):
        last, reply = message is thread[-1], replies.get(message.id)
        beside = versions_html(message.id, (versions or {}).get(message.id, ()), words, free=free)
        key = _key(message, reply, words, states, beside, names, last=last)
        made = rendered.get(key) if rendered is not None and key else None
        if made is None:
            waiting = _waiting(thread[index - 1], states) if index and reply is not None else None
            made = _entries(message, reply, words, states, beside, names, last=last, waiting=waiting)
            if rendered is not None and key:
                rendered.put(key, made)
        entries.extend(made)
        owners.extend([message.id] * len(made))
    return entries, owners


def letters(thread: Sequence[StoredMessage], replies: Mapping[str, Reply]) -> int:
    """How many characters of questions and replies there are to show: what making their entries costs grows with it."""
    asked = sum(len(message.get_text_content()) for one in thread if one.role == "user" for message in one.parts)
    return asked + sum(map(_written, replies.values()))


def _written(reply: Reply) -> int:
    growing = (block for block in reply.blocks if not isinstance(block, ItemBlock))
    inner = (block.inner for block in reply.blocks if isinstance(block, CallBlock) and block.inner is not None)
    return sum(len(piece) for block in growing for piece in block.pieces) + sum(map(_written, inner))


def _first(thread: Sequence[StoredMessage], window: int, anchor: str | None) -> int:
    for index, message in enumerate(thread):
        if anchor is not None and message.id == anchor:
            return index
    return max(0, len(thread) - window)


def _key(  # noqa: PLR0913 - each is a part of the page, by name
    message: StoredMessage,
    reply: Reply | None,
    words: Words,
    states: Mapping[str, DocumentState],
    beside: str,
    cast: tuple[str, ...],
    *,
    last: bool,
) -> tuple[Any, ...] | None:
    """What the entries of a message depend on; None while they still change."""
    if message.role == "user":
        mine = [states[one] for one in file_ids(message.parts) if one in states]
        told = tuple((one.record.id, one.record.status, state_line(one, words)) for one in mine)
        return (message.id, words.lang, told, beside)
    if reply is None:
        return (message.id, words.lang, message.status, len(message.parts), last, beside)
    drawn = (message.id, words.lang, reply.status, reply.seen, last, beside, cast)
    return None if reply.status == "running" else drawn


def _entries(  # noqa: PLR0913 - each is a part of the page, by name
    message: StoredMessage,
    reply: Reply | None,
    words: Words,
    states: Mapping[str, DocumentState],
    beside: str,
    cast: tuple[str, ...],
    *,
    last: bool,
    waiting: Waiting | None,
) -> list[Entry]:
    if message.role == "user":
        return [question_entry(message, words, states, beside)]
    return reply_entries(message, reply, words, last=last, waiting=waiting, versions=beside, cast=cast)


def _waiting(question: StoredMessage, states: Mapping[str, DocumentState]) -> Waiting | None:
    """What a reply that has not begun waits for: documents that came with its question."""
    mine = (states[one].record for one in file_ids(question.parts) if one in states)
    names = tuple(record.name for record in mine if record.status == "reading")
    searchable = any(state.record.library_id is not None for state in states.values())
    return Waiting(names, searchable) if names else None


def _earlier(words: Words) -> str:
    return f'<p class="p-earlier"><a class="p-do" href="#do-earlier">{words("reply.earlier")}</a></p>'
