"""A question: its files, its words, and a way to change it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from webui.render.entries import said
from webui.render.files import file_id, item_html
from webui.render.html import escaped
from webui.render.invisible import invisible
from webui.render.markdown import markdown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from core.messages.message import Message
    from core.storage.base import StoredMessage
    from webui.render.entries import Entry
    from webui.render.reading import DocumentState
    from webui.words import Words

# A headline that fills many screens is not one; the whole text is kept and was sent.
LONGEST = 12_000


def question_entry(
    message: StoredMessage, words: Words, documents: Mapping[str, DocumentState], versions: str = ""
) -> Entry:
    """The entry of a user's turn.

    Args:
        message: The turn.
        words: The reader's.
        documents: Documents of the conversation, by the file they come from.
        versions: Markup of the way to its other versions.
    """
    parts = [_files(part, words, documents) for part in message.parts]
    text = "\n\n".join(part.get_text_content() for part in message.parts).strip()
    body = markdown(text[:LONGEST], words)
    parts.append(f"{body}\n" if body else "")
    if len(text) > LONGEST:
        parts.append(_note(words("reply.cut_text", n=len(text))))
    parts.extend(_troubles(message, words, documents))
    parts.extend(_note(words(f"note.{note}")) for note in map(_noted, message.parts) if f"note.{note}" in words)
    parts.extend(_note(invisible(part.extra, words)) for part in message.parts if invisible(part.extra, words))
    label = escaped(words("reply.edit"))
    edit = (
        f'<a class="p-do p-edit" role="button" href="#do-edit-{escaped(message.id)}" title="{label}">'
        f'<span class="p-sr">{label}</span></a>'
        if len(text) <= LONGEST
        else ""
    )
    parts.append(f'<p class="p-acts">{versions}{edit}</p>' if versions or edit else "")
    return said("user", "\n\n".join(part for part in parts if part))


def _files(part: Message, words: Words, documents: Mapping[str, DocumentState]) -> str:
    items = [item for item in part.items if item.type != "text"]
    if not items:
        return ""
    known = cast("list[dict[str, Any]]", (part.extra or {}).get("files") or [])
    about = {str(file.get("id")): file for file in known}
    chips = [item_html(item, about.get(file_id(item), {}), words, documents.get(file_id(item))) for item in items]
    return f'<div class="p-files">{"".join(chips)}</div>'


def _troubles(message: StoredMessage, words: Words, documents: Mapping[str, DocumentState]) -> list[str]:
    """What is wrong with files that were read all the same."""
    states = (documents.get(file_id(item)) for part in message.parts for item in part.items if item.type != "text")
    read = [state.record for state in states if state is not None and state.record.status == "ready"]
    return [_note(words.error(record.error)) for record in read if record.error]


def _noted(part: Message) -> str:
    return str((part.extra or {}).get("note", ""))


def _note(text: str) -> str:
    return f'<p class="p-note">{escaped(text)}</p>'
