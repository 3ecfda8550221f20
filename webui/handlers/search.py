"""The search of the palette for what its owner has: `GET /search?q=`, and `/search/passages?q=` in documents."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import JSONResponse
from starlette.routing import Route

from core.errors import ParlourError
from webui.context import log_text, text_of
from webui.render.citations import passage_label

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from core.storage.search import Found, FoundConversation, FoundName
    from core.workspace.looking import FoundPassages
    from core.workspace.workspace import Workspace
    from webui.context import WebContext
    from webui.words import Words

_log = logging.getLogger(__name__)

_PRIVATE: Final = {"cache-control": "no-store"}
_WHO: Final = {"user": "you", "assistant": "reply"}


class SearchRoutes:
    """Both answer with JSON.

    `GET /search?q=` finds conversations down to the message, and documents and libraries by name.
    `GET /search/passages?q=` finds what stands in documents; it may have to open an index.
    """

    def __init__(self, context: WebContext) -> None:
        self._engine = context.engine
        self._words = context.words

    def table(self) -> list[BaseRoute]:
        """All of them."""
        return [
            Route("/search", self.search, methods=["GET"]),
            Route("/search/passages", self.passages, methods=["GET"]),
        ]

    async def search(self, request: Request) -> Response:
        """What was found; `{"failed": sentence}` where the database failed."""

        async def find(workspace: Workspace, text: str, _: Words) -> dict[str, Any]:
            return found_data(await workspace.search.find(text))

        return await self._answer(request, find)

    async def passages(self, request: Request) -> Response:
        """What stands in documents; `{"failed": sentence}` where an index cannot be read."""

        async def find(workspace: Workspace, text: str, words: Words) -> dict[str, Any]:
            return passages_data(await workspace.document_search.find(text), words)

        return await self._answer(request, find)

    async def _answer(
        self, request: Request, find: Callable[[Workspace, str, Words], Awaitable[dict[str, Any]]]
    ) -> Response:
        owner = request.scope["owner"]
        if owner is None:
            return JSONResponse({}, 401, _PRIVATE)
        words = self._words(request.headers.get("accept-language", ""))
        failed: ParlourError | dict[str, Any]
        try:
            async with self._engine.workspaces.open(owner) as workspace:
                found = await find(workspace, text_of(request.query_params.get("q", "")), words)
            return JSONResponse(found, headers=_PRIVATE)
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


def passages_data(found: FoundPassages, words: Words) -> dict[str, Any]:
    """The passages, as the palette reads them; marks as of `found_data`."""
    passages = [
        {
            "document": one.passage.document_id,
            "chunk": one.passage.chunk_id,
            "where": passage_label({**one.passage.as_dict(), "document": one.place.name}, words),
            "within": one.place.within,
            "text": one.said.text,
            "marks": one.said.marks,
        }
        for one in found.passages
    ]
    return {"passages": passages, "more": found.more}


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
