"""The evidence panel: the passage behind a mark, on the page it came from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from anyio import to_thread

from core.errors import DocumentError, NotFoundError
from core.rag.parsers.catalog import PICTURES
from webui.panels.evidence import ShownPage, evidence_html

if TYPE_CHECKING:
    from core.rag.library import Library
    from webui.handlers.desk import Desk
    from webui.views import View


async def cited(desk: Desk, view: View, message_id: str, number: int) -> None:
    """Open the passage that a mark in a reply names.

    Raises:
        NotFoundError: The reply is not part of the conversation that the tab shows, or has no such passage.
    """
    passages = await _passages(desk, view, message_id)
    opened = next((passage for passage in passages if passage["number"] == number), None)
    if opened is None:
        raise NotFoundError("There is no such passage.")
    page = await _page(desk, view, str(opened.get("document_id")), opened.get("page"))
    view.cited = message_id
    view.evidence = evidence_html(passages, number, view.words, message_id=message_id, page=page)


async def paged(desk: Desk, view: View, document_id: str, number: int) -> None:
    """Turn to another page of a document that the open reply came from; past its ends nothing happens.

    Raises:
        NotFoundError: No evidence is open, or the document is not part of it.
    """
    passages = await _passages(desk, view, view.cited)
    if all(passage.get("document_id") != document_id for passage in passages):
        raise NotFoundError("There is no such document.")
    page = await _page(desk, view, document_id, number)
    if page is not None:
        view.evidence = evidence_html(passages, None, view.words, message_id=view.cited, page=page)


async def _passages(desk: Desk, view: View, message_id: str) -> list[dict[str, Any]]:
    """What the marks of a reply lead to. The text of a mark can be forged, so the reply is looked up."""
    message = await desk.engine.conversations.message(view.owner, message_id)
    if message.conversation_id != view.conversation_id:
        raise NotFoundError("This reply is in another conversation.")
    return (await desk.engine.runs.reply(view.owner, message)).passages


async def _page(desk: Desk, view: View, document_id: str, page: int | None) -> ShownPage | None:
    """What is shown of a page; `None` where the document has no pages, or is gone."""
    if page is None:
        return None
    library = await desk.engine.library(view.owner)
    return await to_thread.run_sync(_shown_page, library, document_id, page)


def _shown_page(library: Library, document_id: str, page: int) -> ShownPage | None:
    try:
        document = library.document(document_id)
        if document.media_type not in PICTURES:  # slides and sheets are numbered too, but nothing draws them
            return None
        return ShownPage(
            document_id=document_id,
            document=document.name,
            page=page,
            pages=document.pages,
            size=library.page_size(document_id, page),
            text_box=library.text_box(document_id, page),
        )
    except (NotFoundError, DocumentError):
        return None
