"""A conversation as entries of the Chatbot: questions with their files, replies, versions, and a cache of them."""

from __future__ import annotations

import threading
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, cast

from core.reading.attachments import UNTAKEN
from core.runs.reply import CallBlock, ItemBlock
from core.storage.base import file_ids
from webui.render.comparing import between, column
from webui.render.documents import DocumentState, Waiting, file_id, in_stead, state_line
from webui.render.entries import message_entry, time_html
from webui.render.judging import Judging
from webui.render.many_files import files_html
from webui.render.markdown import markdown
from webui.render.markup import escaped, invisible_in, verbatim
from webui.render.reply import reply_entries

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from core.messages.message import Message
    from core.rag.document import ReadingProgress
    from core.readiness import Part
    from core.reading.preparing import Made
    from core.runs.reply import Reply
    from core.storage.base import DocumentRecord, StoredMessage
    from core.workspace.judging import JudgingState
    from webui.render.comparing import Compared
    from webui.render.entries import Entry
    from webui.words import Words

WINDOW = 40
_KEPT = 600


class Rendered:
    """Cache of the entries of finished messages, so that a frame renders the live reply alone."""

    def __init__(self, most: int = _KEPT) -> None:
        self._most = most
        self._guard = threading.Lock()
        self._entries: dict[tuple[Any, ...], list[Entry]] = {}

    def get(self, key: tuple[Any, ...]) -> list[Entry] | None:
        """The entries of a key, if cached."""
        return self._entries.get(key)

    def put(self, key: tuple[Any, ...], entries: list[Entry]) -> None:
        """Cache entries; evicts the oldest."""
        with self._guard:  # frames are made in several threads
            while len(self._entries) >= self._most:
                del self._entries[next(iter(self._entries))]
            self._entries[key] = entries


def conversation_entries(  # noqa: PLR0913 - each is a part of the page, by name
    thread: Sequence[StoredMessage],
    replies: Mapping[str, Reply],
    *,
    words: Words,
    window: int = WINDOW,
    anchor: str | None = None,
    documents: Sequence[DocumentRecord] = (),
    readings: Mapping[str, ReadingProgress] | None = None,
    preparing: Mapping[str, Made] | None = None,
    held_up: str = "",
    versions: Mapping[str, Sequence[str]] | None = None,
    free: bool = True,
    cast: Collection[str] = (),
    mentions: Sequence[str] = (),
    rendered: Rendered | None = None,
    judging: Mapping[str, JudgingState | None] | None = None,
    formatted: bool = False,
    compared: Compared | None = None,
    model: Part | None = None,
) -> tuple[list[Entry], list[str]]:
    """The entries of a conversation.

    Args:
        thread: The turns from the first to the last.
        replies: The replies by message id, live ones too.
        window: How many turns from the end are shown.
        anchor: The turn to begin with instead.
        documents: The conversation's; each has a card with its question.
        readings: Progress of documents that are being read, by document id.
        preparing: Progress of documents without all embeddings yet, by document id.
        held_up: Why these get no more, as of `DocumentState`.
        versions: The ids of all versions of a turn, by the id of the shown one.
        free: Whether versions can be switched: not while a reply is being written.
        cast: The names of all who may speak, where that is known; with several, speakers are named.
        mentions: Those whom a question can turn to with an @; one that begins with another name says so.
        judging: How far the judgements of replies have come, by their ids; `None` where no model judges them.
        formatted: Whether the Markdown of questions is shown as what it means.
        compared: A second reply to one of the questions.
        model: How far the model is that answers; a reply that has not begun waits for one that is being loaded.

    Returns:
        The entries, and for each the id of the message it belongs to ("" for "show earlier").
    """
    first = _first(thread, window, anchor)
    now, come = readings or {}, preparing or {}
    states = {one.file_id: DocumentState(one, now.get(one.id), come.get(one.id), held_up) for one in documents}
    speaking = (name for reply in replies.values() for name in reply.speakers)
    names = tuple(dict.fromkeys([*cast, *speaking]))
    entries: list[Entry] = [message_entry("assistant", _earlier(words))] if first else []
    owners = [""] * len(entries)
    for index, message in enumerate(thread[first:], first):
        last, reply = message is thread[-1], replies.get(message.id)
        second = compared if compared is not None and compared.is_beside(message) else None
        # Both are in sight: there is nothing to switch to.
        others = (versions or {}).get(message.id, ()) if second is None else ()
        beside = versions_html(message.id, others, words, free=free)
        judged = Judging(judging.get(message.id)) if judging is not None else None
        missed = _missed(message, names, mentions)
        how = _How(beside, names, judged, last=last, formatted=formatted, missed=missed, model=model)
        key = _key(message, reply, words, states, how)
        made = rendered.get(key) if rendered is not None and key else None
        if made is None:
            waiting = _waiting(thread[index - 1], states) if index and reply is not None else None
            made = _entries(message, reply, words, states, waiting, how)
            if rendered is not None and key:
                rendered.put(key, made)
        if second is not None:
            made = column(message, reply, made, words, 1)
        entries.extend(made)
        owners.extend([message.id] * len(made))
        if second is not None:
            theirs = reply_entries(second.message, second.reply, words, last=last, cast=names)
            theirs = [between(words), *column(second.message, second.reply, theirs, words, 2)]
            entries.extend(theirs)
            owners.extend([second.message.id] * len(theirs))
    return entries, owners


def text_length(thread: Sequence[StoredMessage], replies: Mapping[str, Reply]) -> int:
    """Characters of all questions and replies: the cost of their entries grows with it."""
    asked = sum(len(message.get_text_content()) for one in thread if one.role == "user" for message in one.parts)
    return asked + sum(map(_written, replies.values()))


def _written(reply: Reply) -> int:
    growing = (block for block in reply.blocks if not isinstance(block, ItemBlock))
    inner = (block.inner for block in reply.blocks if isinstance(block, CallBlock) and block.inner is not None)
    return sum(len(piece) for block in growing for piece in block.pieces) + sum(map(_written, inner))


def _first(thread: Sequence[StoredMessage], window: int, anchor: str | None) -> int:
    start = max(0, len(thread) - window)
    if anchor is None:
        return start
    # From the end, where it is: a turn is decoded when it is asked for.
    return next((at for at in range(len(thread) - 1, -1, -1) if thread[at].id == anchor), start)


@dataclass(frozen=True, slots=True)
class _How:
    """What else the entries of a turn depend on.

    Args:
        beside: Markup of the links to its other versions.
        cast: The names of all who may speak.
        judging: How far the judgement of a reply has come.
        last: Whether it is the last one.
        formatted: Whether the Markdown of a question is shown as what it means.
        missed: Whom a question turns to who is not there, and whom it could turn to.
        model: How far the model is that answers, where that is known.
    """

    beside: str
    cast: tuple[str, ...]
    judging: Judging | None
    _: KW_ONLY
    last: bool
    formatted: bool
    missed: tuple[str, ...] = ()
    model: Part | None = None


def _missed(message: StoredMessage, cast: Sequence[str], mentions: Sequence[str]) -> tuple[str, ...]:
    """The name behind the @ that a question begins with, where nobody has it, and those that could stand there."""
    if message.role != "user" or not mentions or not message.parts:
        return ()
    from core.agents.hub import mentions_nobody  # imports the models, which a page need not wait for

    name = mentions_nobody(message.parts[0].get_text_content(), cast)
    return (name, *mentions) if name else ()


def _key(
    message: StoredMessage,
    reply: Reply | None,
    words: Words,
    states: Mapping[str, DocumentState],
    how: _How,
) -> tuple[Any, ...] | None:
    """The cache key of a message: all that its entries depend on. None while the reply grows."""
    if message.role == "user":
        mine = [states[one] for one in file_ids(message.parts) if one in states]
        told = tuple((one.record.id, one.record.status, state_line(one, words)) for one in mine)
        return (message.id, words.lang, told, how.beside, how.formatted, how.missed)
    if reply is None:
        return (message.id, words.lang, message.status, len(message.parts), how.last, how.beside)
    drawn = (message.id, words.lang, reply.status, reply.seen, how.last, how.beside, how.cast, how.judging)
    return None if reply.status == "running" else drawn


def _entries(
    message: StoredMessage,
    reply: Reply | None,
    words: Words,
    states: Mapping[str, DocumentState],
    waiting: Waiting | None,
    how: _How,
) -> list[Entry]:
    if message.role == "user":
        missed = words("agents.nobody", name=how.missed[0], names=", ".join(how.missed[1:])) if how.missed else ""
        return [question_entry(message, words, states, how.beside, formatted=how.formatted, missed=missed)]
    return reply_entries(
        message,
        reply,
        words,
        last=how.last,
        waiting=waiting,
        versions=how.beside,
        cast=how.cast,
        judging=how.judging,
        model=how.model,
    )


def _waiting(question: StoredMessage, states: Mapping[str, DocumentState]) -> Waiting | None:
    """The documents of the question that a reply still waits for."""
    mine = (states[one].record for one in file_ids(question.parts) if one in states)
    names = tuple(record.name for record in mine if record.status == "reading")
    searchable = any(state.record.library_id is not None for state in states.values())
    return Waiting(names, searchable) if names else None


def _earlier(words: Words) -> str:
    return f'<p class="p-earlier"><a class="p-do" href="#do-earlier">{words("reply.earlier")}</a></p>'


# Longer questions are cut on the page; the model gets all of it.
LONGEST_QUESTION = 20_000
_FOLDED_FROM = 12  # lines, of which a folded question shows eight
_LINE = 70  # letters of a line, about; a Chinese one is as wide as two


def question_entry(
    message: StoredMessage,
    words: Words,
    documents: Mapping[str, DocumentState],
    versions: str = "",
    *,
    formatted: bool = False,
    missed: str = "",
) -> Entry:
    """The entry of a user's turn.

    Args:
        documents: Documents of the conversation, by the file they come from.
        versions: Markup of the links to its other versions.
        formatted: Whether its Markdown is shown as what it means.
        missed: What is said of it where it turns to somebody who is not there.
    """
    parts = [_files(part, message.id, words, documents) for part in message.parts]
    text = "\n\n".join(part.get_text_content() for part in message.parts)
    text = text if text.strip() else ""
    acts = ["edit", "copy", "fork"] if len(text) <= LONGEST_QUESTION else ["copy", "fork"]
    links = "".join(_beside(act, message.id, words) for act in acts) + time_html(message.created_at)
    beside = f'<p class="p-acts p-beside{"" if versions else " p-alone"}">{links}</p>'
    parts.append(f'<div class="p-turn">{_asked(text[:LONGEST_QUESTION], words, formatted=formatted)}{beside}</div>')
    if len(text) > LONGEST_QUESTION:
        parts.append(_note(words("reply.cut_text", n=len(text))))
    parts.extend([_note(missed)] if missed else [])
    parts.extend(_note(said) for part in message.parts if (said := _left_out(part, words)))
    parts.extend(_troubles(message, words, documents))
    parts.extend(_in_stead(message, words, documents))
    parts.extend(_note(words(f"note.{note}")) for note in map(_noted, message.parts) if f"note.{note}" in words)
    parts.extend(_note(invisible_in(part.extra, words)) for part in message.parts if invisible_in(part.extra, words))
    parts.append(f'<p class="p-acts">{versions}</p>' if versions else "")
    return message_entry("user", "\n\n".join(part for part in parts if part))


def _asked(text: str, words: Words, *, formatted: bool) -> str:
    """The question as it was typed, white space and all, or as Markdown; a long one is folded."""
    if not text:
        return ""
    lines = sum(1 + _width(line) // _LINE for line in text.split("\n"))
    fold = " p-long p-folded" if lines > _FOLDED_FROM else ""
    if formatted:  # what was typed stays there, to be copied and changed; empty lines let the Markdown begin and end
        typed = f'<div class="p-asked" hidden>{verbatim(text)}</div>'
        shown = f'{typed}<div class="p-formatted{fold}">\n\n{markdown(text, words)}\n\n</div>'
    else:
        shown = f'<div class="p-asked{fold}">{verbatim(text)}</div>'
    if not fold:
        return shown
    more, less = escaped(words("question.more", n=f"{lines:,}")), escaped(words("question.less"))
    return (
        f'{shown}<p class="p-unfold"><a class="p-do" role="button" href="#do-long-question">'
        f'<span class="p-more">{more}</span><span class="p-less">{less}</span></a></p>'
    )


def _width(line: str) -> int:
    return len(line) + sum(sign > "\u2e80" for sign in line)


def _beside(act: str, message_id: str, words: Words) -> str:
    label = escaped(words(f"question.{act}"))
    return (
        f'<a class="p-do p-{act}" role="button" href="#do-{act}-{escaped(message_id)}" title="{label}">'
        f'<span class="p-sr">{label}</span></a>'
    )


def _files(part: Message, message_id: str, words: Words, documents: Mapping[str, DocumentState]) -> str:
    items = [item for item in part.items if item.type != "text"]
    if not items:
        return ""
    known = cast("list[dict[str, Any]]", (part.extra or {}).get("files") or [])
    about = {str(file.get("id")): file for file in known}
    return files_html(items, about, message_id, words, documents)


def _troubles(message: StoredMessage, words: Words, documents: Mapping[str, DocumentState]) -> list[str]:
    """Warnings about files that could be read nevertheless."""
    states = (documents.get(file_id(item)) for part in message.parts for item in part.items if item.type != "text")
    read = [state.record for state in states if state is not None and state.record.status == "ready"]
    return [_note(words.error(record.error)) for record in read if record.error]


def _in_stead(message: StoredMessage, words: Words, documents: Mapping[str, DocumentState]) -> list[str]:
    """What is said of pictures and recordings that were read for a model without the sense for them."""
    items = (item for part in message.parts for item in part.items if item.type in {"image", "audio", "video"})
    states = ((documents.get(file_id(item)), item.type) for item in items)
    return [_note(told) for state, kind in states if state is not None and (told := in_stead(state, kind, words))]


def _noted(part: Message) -> str:
    return str((part.extra or {}).get("note", ""))


def _left_out(part: Message, words: Words) -> str:
    """That files were too many to be added with this question; empty where none were."""
    left: object = (part.extra or {}).get(UNTAKEN)
    values = cast("dict[str, Any]", left) if isinstance(left, dict) else {}
    n, names = values.get("n"), values.get("names")
    if not isinstance(n, int) or not isinstance(names, str):
        return ""
    return words("question.left_out" if n > 1 else "question.left_out_one", n=f"{n:,}", names=names)


def _note(text: str) -> str:
    return f'<p class="p-note">{escaped(text)}</p>'


def versions_html(message_id: str, versions: Sequence[str], words: Words, *, free: bool) -> str:
    """The switch of versions in a turn's line of actions, ‹ 2 / 3 ›; empty for a single version.

    Args:
        message_id: The turn that is shown.
        versions: All its versions, the oldest first.
        free: Whether another one can be chosen now.
    """
    if len(versions) < 2 or message_id not in versions:
        return ""
    at = versions.index(message_id)
    older = versions[at - 1] if at else ""
    newer = versions[at + 1] if at + 1 < len(versions) else ""
    # Eyes get the numbers and the stroke; screen readers get the words.
    before, between, after = (_heard(part) for part in words("versions.which", number="|", total="|").split("|"))
    return (
        f'<span class="p-versions p-v-{escaped(message_id)}">{_version_link("older", older if free else "", words)}'
        f'<span class="p-number">{before}{at + 1}<span class="p-stroke"></span>{between}{len(versions)}{after}</span>'
        f"{_version_link('newer', newer if free else '', words)}</span>"
    )


def _heard(text: str) -> str:
    return f'<span class="p-sr">{escaped(text)}</span>' if text else ""


def _version_link(way: str, to: str, words: Words) -> str:
    """A link to a version, or an inactive sign where there is none or it cannot be chosen now."""
    if not to:
        return f'<span class="p-dead p-{way}"></span>'
    label = escaped(words(f"versions.{way}"))
    return (
        f'<a class="p-do p-{way}" role="button" href="#do-version-{escaped(to)}" title="{label}">'
        f'<span class="p-sr">{label}</span></a>'
    )
