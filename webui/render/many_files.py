"""Many files of one question: one group of narrow rows that unfolds, and pictures as small ones."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from core.reading.senses import stead_of
from webui.render.documents import document_card, file_id, is_damaged, item_html
from webui.render.markup import escaped

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from core.messages.content import ContentItem
    from webui.render.documents import DocumentState
    from webui.words import Words

MOST: Final = 6
"""Files of a question that are shown as cards; more of them become a group."""
_FIRST: Final = 3  # rows of a group that are in sight while it is folded


def files_html(
    items: Sequence[ContentItem],
    about: Mapping[str, Mapping[str, Any]],
    message_id: str,
    words: Words,
    documents: Mapping[str, DocumentState],
) -> str:
    """Markup for the files of a question, pictures first where there are many.

    Args:
        about: `name` and `media_type` of each, by the id of the stored file.
        documents: Documents of the conversation, by the file they come from.
    """

    def shown(item: ContentItem) -> str:
        stored = file_id(item)
        return item_html(item, about.get(stored, {}), words, documents.get(stored))

    if len(items) <= MOST:
        return f'<div class="p-files">{"".join(map(shown, items))}</div>'
    pictures = [item for item in items if item.type == "image" and not _is_damaged(documents.get(file_id(item)))]
    are_small = len(pictures) > MOST
    rows = [item for item in items if item.type == "file" or (are_small and _has_card(documents.get(file_id(item))))]
    others = [item for item in items if item.type != "file" and not (are_small and item.type == "image")]
    small = "".join(item_html(item, about.get(file_id(item), {}), words) for item in pictures) if are_small else ""
    each = [_row(item, about, words, documents.get(file_id(item))) for item in rows]
    cards = "".join(map(shown, others))
    if len(rows) <= MOST:
        cards, rows = cards + "".join(each), []
    parts = [
        f'<div class="p-files p-small-pics">{small}</div>' if small else "",
        f'<div class="p-files">{cards}</div>' if cards else "",
    ]
    if rows:
        states = [documents.get(file_id(item)) for item in rows]
        parts.append(_group(each, [one for one in states if one is not None], message_id, words))
    return "".join(parts)


def _is_damaged(document: DocumentState | None) -> bool:
    return document is not None and is_damaged(document.record)


def _has_card(document: DocumentState | None) -> bool:
    """Whether there is something to say of a picture beside showing it."""
    return document is not None and stead_of(document.record) != "nothing"


def _row(
    item: ContentItem, about: Mapping[str, Mapping[str, Any]], words: Words, document: DocumentState | None
) -> str:
    if document is not None and item.type == "image":  # which is shown above
        return document_card(document, f".{item.value}", words)
    return item_html(item, about.get(file_id(item), {}), words, document)


def _group(rows: Sequence[str], states: Sequence[DocumentState], message_id: str, words: Words) -> str:
    to, rest = f"#do-files-{escaped(message_id)}", len(rows) - _FIRST
    count, more = escaped(words("many.files", n=len(rows))), escaped(words("many.more", n=rest))
    head = f'<a class="p-do p-many-fold" role="button" aria-expanded="false" href="{to}"><span>{count}</span></a>'
    return (
        f'<div class="p-files"><div class="p-many"><p class="p-many-head">{head}{_summary(states, words)}</p>'
        f'<div class="p-rows">{"".join(rows[:_FIRST])}</div><div class="p-rows p-rest">{"".join(rows[_FIRST:])}</div>'
        f'<p class="p-many-more"><a class="p-do" role="button" href="{to}">{more}</a></p></div></div>'
    )


def _summary(states: Sequence[DocumentState], words: Words) -> str:
    """How many of them are still being read, and how many were not; empty where all were read."""
    counted = Counter(state.record.status for state in states)
    shapes = {"reading": "p-run", "failed": "p-bad", "cancelled": "p-off"}
    told = [(shape, words(f"many.{status}", n=counted[status])) for status, shape in shapes.items() if counted[status]]
    return "".join(
        f'<span class="p-kind"><span class="p-st {shape}"></span>{escaped(text)}</span>' for shape, text in told
    )
