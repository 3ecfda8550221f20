"""A conversation as a file, to its owner."""

from __future__ import annotations

import logging
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from core.errors import NotFoundError, ParlourError
from core.export.exporting import attachment
from core.export.together import ZIP, archive_name
from webui.context import log_text

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping

    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from core.export.exporting import Form
    from core.export.together import FileForm
    from core.languages import Lang
    from core.workspace.workspace import Workspace
    from webui.context import WebContext

_log = logging.getLogger(__name__)

_PRIVATE: Final = {"cache-control": "no-store"}
_FORMS: Final[Mapping[str, Form]] = {"md": "md", "json": "json", "html": "html"}
_FILES: Final[Mapping[str, FileForm]] = {**_FORMS, "pdf": "pdf"}
BUNDLE: Final = "bundle"
_MOST: Final = 1000  # conversations that an address may name


class ExportRoutes:
    """`GET /conversations/{id}/export?as=md`, `json`, `html`, `pdf` or `bundle`, for the owner of the conversation.

    `GET /conversations/export` gives many as one archive: those of `id=…&id=…`, those of `folder=…`, or all of them.
    """

    def __init__(self, context: WebContext) -> None:
        self._engine = context.engine
        self._words = context.words

    def table(self) -> list[BaseRoute]:
        """All of them."""
        return [
            Route("/conversations/{conversation_id}/export", self.export, methods=["GET"]),
            Route("/conversations/export", self.together, methods=["GET"]),
        ]

    async def export(self, request: Request) -> Response:
        """The file, made while it is sent."""
        wanted = request.query_params.get("as", "md")
        conversation_id = request.path_params["conversation_id"]

        async def made(workspace: Workspace, lang: Lang) -> Response:
            conversation = workspace.conversation(conversation_id)
            if wanted == "bundle":
                found = await workspace.conversations.get(conversation_id)
                name = await workspace.taking.exporting.archive_name(found.title)
                return _archive(workspace.taking.bundle([conversation_id], lang), name)
            if wanted == "pdf":
                name, printed = await conversation.printed(lang)
                return Response(printed, media_type="application/pdf", headers=_saved(name))
            exported = await conversation.export(_FORMS[wanted], lang)
            sent = _sent(exported.pieces)
            return StreamingResponse(sent, media_type=exported.media_type, headers=_saved(exported.name))

        return await self._answered(request, made if wanted in {*_FILES, BUNDLE} else None)

    async def together(self, request: Request) -> Response:
        """An archive of many, made while it is sent."""
        asked = request.query_params
        wanted, ids, folder = asked.get("as", "md"), asked.getlist("id"), asked.get("folder", "")

        async def made(workspace: Workspace, lang: Lang) -> Response:
            chosen, name = await workspace.taking.chosen(ids, folder=folder), ""
            if folder and not ids:
                name = await workspace.taking.exporting.archive_name((await workspace.folders.get(folder)).name)
            if wanted == BUNDLE:
                return _archive(workspace.taking.bundle(chosen, lang), name)
            return _archive(workspace.taking.archive(chosen, _FILES[wanted], lang), name)

        is_known = wanted in {*_FILES, BUNDLE} and len(ids) <= _MOST
        return await self._answered(request, made if is_known else None)

    async def _answered(
        self, request: Request, made: Callable[[Workspace, Lang], Awaitable[Response]] | None
    ) -> Response:
        """What was made for the owner who asks; `None` where the request is not one of the page's own."""
        owner = request.scope["owner"]
        if owner is None or made is None:
            return PlainTextResponse("", 401 if owner is None else 400, headers=_PRIVATE)
        words = self._words(request.headers.get("accept-language", ""))
        try:
            async with self._engine.workspaces.open(owner) as workspace:
                return await made(workspace, words.spoken)
        except ParlourError as error:
            status = 404 if isinstance(error, NotFoundError) else 503
            return PlainTextResponse(words.error(error), status, headers=_PRIVATE)


def _archive(pieces: AsyncGenerator[bytes, None], name: str = "") -> Response:
    return StreamingResponse(_sent(pieces), media_type=ZIP, headers=_saved(name or archive_name()))


def _saved(name: str) -> dict[str, str]:
    return {**_PRIVATE, "content-disposition": attachment(name), "x-content-type-options": "nosniff"}


async def _sent(pieces: AsyncGenerator[str, None] | AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """The pieces as bytes. A file that breaks off is not ended as if it were whole: the browser sees that it failed."""
    async with aclosing(pieces):
        try:
            async for piece in pieces:
                yield piece.encode() if isinstance(piece, str) else piece
        except ParlourError as error:
            _log.error("An export broke off.\n%s", log_text(error))
            raise
