"""The evidence panel: the passage behind a mark, on the page it came from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.errors import NotFoundError

if TYPE_CHECKING:
    from webui.handlers.desk import Desk
    from webui.views import View


async def cited(desk: Desk, view: View, message_id: str, number: int) -> None:
    """Open the passage that a mark in a reply names.

    Raises:
        NotFoundError: The reply is not part of the conversation that the tab shows, or has no such passage.
    """
    raise NotFoundError("There is no such passage.")


async def paged(desk: Desk, view: View, document_id: str, page: int) -> None:
    """Turn to another page of the document that is open.

    Raises:
        NotFoundError: There is no such document or page.
    """
    raise NotFoundError("There is no such page.")
