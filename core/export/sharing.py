"""A conversation as a page behind a link: what is in sight of it now, and what that page holds, before it is made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from core.errors import ParlourError
from core.export.html_page import HtmlWriter, inline_picture

if TYPE_CHECKING:
    from core.export.exporting import Exporting
    from core.languages import Lang

LARGEST: Final = 50 * 1024 * 1024
"""Bytes of a page; what is larger is passed on as a bundle."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A page that can be shared.

    Args:
        title: Of the conversation.
        page: HTML that runs nothing and fetches nothing.
        messages: How many turns it shows.
        pages: How many pages of documents it shows, as pictures or by their passages.
        files: The names of the files that it names; what is in them is not in it.
    """

    title: str
    page: bytes
    messages: int
    pages: int
    files: tuple[str, ...]


async def snapshot(exporting: Exporting, conversation_id: str, lang: Lang) -> Snapshot:
    """What is in sight of a conversation now.

    Args:
        lang: The language of what is not the conversation's own.

    Raises:
        NotFoundError: There is none such of this owner.
        StorageError: The database failed.
        ParlourError: key `share_large`: the page would be larger than `LARGEST`.
    """
    outline, redaction = await exporting.opened(conversation_id)
    named: dict[str, None] = {}

    def note(address: str) -> str:
        named[address] = None
        return ""

    writer = HtmlWriter({}, lang, source=note)
    pieces: list[bytes] = []
    size = 0
    async for piece in exporting.page(outline, redaction, writer, lambda _, picture: inline_picture(picture.png)):
        pieces.append(piece.encode())
        size += len(pieces[-1])
        if size > LARGEST:
            hint = "Export it as a bundle, and pass that on."
            raise ParlourError("The page would be too large.", hint=hint, key="share_large", limit=LARGEST)
    files = dict.fromkeys(known.name for one in named if (known := writer.files.get(one)) is not None and known.name)
    title = redaction.said(outline.conversation.title)
    return Snapshot(title, b"".join(pieces), len(outline.path), len(writer.pages()), tuple(files))
