"""The search of the palette: `GET /search?q=`, for what its owner has."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import JSONResponse
from starlette.routing import Route

from core.errors import ParlourError
from webui.context import log_text, text_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from core.storage.search import Found, FoundConversation, FoundName
    from webui.context import WebContext

_log = logging.getLogger(__name__)

_PRIVATE: Final = {"cache-control": "no-store"}
_WHO: Final = {"user": "you", "assistant": "reply"}


class SearchRoutes:
    """`GET /search?q=`: conversations down to the message, documents and libraries by name, as JSON."""

    def __init__(self, context: WebContext) -> None:
        self._engine = context.engine
        self._words = context.words

    def table(self) -> list[BaseRoute]:
        """All of them."""
        return [Route("/search", self.search, methods=["GET"])]

    async def search(self, request: Request) -> Response:
        """What was found; `{"failed": sentence}` where the database failed."""
        owner = request.scope["owner"]
        if owner is None:
            return JSONResponse({}, 401, _PRIVATE)
        words = self._words(request.headers.get("accept-language", ""))
        failed: ParlourError | dict[str, Any]
        try:
            async with self._engine.workspaces.open(owner) as workspace:
                found = await workspace.search.find(text_of(request.query_params.get("q", "")))
            return JSONResponse(found_data(found), headers=_PRIVATE)
        except ParlourError as error:
            failed = error
        except Exception as error:
            _log.error("A search failed.\n%s", log_text(error))
            failed = {"key": "unexpected"}
        return JSONResponse({"failed": words.error(failed)}, 503, _PRIVATE)


def found_data(found: Found) -> dict[str, Any]:
    """What was found, as the palette reads it; marks count characters, not units of UTF-16."""
    return {
        "conversations": [_conversation(one) for one in found.conversations],
        "documents": [_named(one) for one in found.documents],
        "libraries": [_named(one) for one in found.libraries],
        "more": sorted(found.more),
    }


def _conversation(found: FoundConversation) -> dict[str, Any]:
    record = found.conversation
    hits = (
        {"message": hit.message_id, "who": _WHO[hit.role], "text": hit.said.text, "marks": hit.said.marks}
        for hit in found.hits
    )
    return {
        "id": record.id,
        "title": record.title,
        "marks": found.marks,
        "archived": record.archived_at is not None,
        "folder": found.folder,
        "at": record.updated_at,
        "hits": list(hits),
    }


def _named(found: FoundName) -> dict[str, Any]:
    return {
        "id": found.id,
        "name": found.name,
        "marks": found.marks,
        "conversation": found.conversation_id,
        "library": found.library_id,
        "within": found.within,
    }
