"""Files, pictures and sounds in the conversation."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from core.storage.base import FILE_ADDRESS
from webui.render.html import escaped
from webui.render.reading import document_card

if TYPE_CHECKING:
    from collections.abc import Mapping

    from core.messages.content import ContentItem
    from webui.render.reading import DocumentState
    from webui.words import Words

_ADDRESS = re.compile(rf"{FILE_ADDRESS}([\w-]+)\Z")


def file_id(item: ContentItem) -> str:
    """The stored file that an item names; empty for anything else."""
    match = _ADDRESS.match(item.value) if isinstance(item.value, str) else None
    return match[1] if match else ""


def item_html(item: ContentItem, about: Mapping[str, Any], words: Words, document: DocumentState | None = None) -> str:
    """Markup for a stored file: a picture, a player, or a chip to take it by. Anything else is named, not fetched.

    Args:
        item: The picture, file, sound or video.
        about: What is known of the file: `name`, `media_type`.
        words: The reader's.
        document: The file as a document of this conversation: how far its reading is.
    """
    stored = file_id(item)
    name = str(about.get("name") or words(_KINDS[item.type]))
    if not stored:
        return f'<p class="p-none">{escaped(name)}</p>'
    # Gradio makes a host of the first part of an absolute address of media, so these are relative.
    address = f".{FILE_ADDRESS}{stored}"
    match item.type:
        case "image":
            return f'<a class="p-pic" href="{address}"><img src="{address}" alt="{escaped(name)}"></a>'
        case "audio":
            return f'<audio controls preload="metadata" src="{address}" title="{escaped(name)}"></audio>'
        case "video":
            return f'<video controls preload="metadata" src="{address}" title="{escaped(name)}"></video>'
        case _:
            return _chip(address, name) if document is None else document_card(document, address, words)


_KINDS = {
    "image": "reply.picture",
    "audio": "reply.sound",
    "video": "reply.video",
    "file": "reply.file",
    "text": "reply.file",
}


def _chip(address: str, name: str) -> str:
    kind = escaped(PurePosixPath(name).suffix[1:].upper()[:5])
    note = f'<span class="p-kind">{kind}</span>' if kind else ""
    return f'<a class="p-chip" href="{address}?download=1"><span class="p-name">{escaped(name)}</span>{note}</a>'
