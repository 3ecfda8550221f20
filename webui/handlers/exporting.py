"""A conversation as a file, to its owner."""

from __future__ import annotations

import logging
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from core.errors import NotFoundError, ParlourError
from core.export.exporting import Form, attachment
from webui.context import log_text

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from webui.context import WebContext

_log = logging.getLogger(__name__)

_PRIVATE: Final = {"cache-control": "no-store"}
_FORMS: Final[Mapping[str, Form]] = {"md": "md", "json": "json"}


class ExportRoutes:
    """`GET /conversations/{id}/export?as=md` or `json`, for the owner of the conversation."""

    def __init__(self, context: WebContext) -> None:
        self._engine = context.engine
        self._words = context.words

    def table(self) -> list[BaseRoute]:
        """All of them."""
        return [Route("/conversations/{conversation_id}/export", self.export, methods=["GET"])]

    async def export(self, request: Request) -> Response:
        """The file, made while it is sent."""
        owner, form = request.scope["owner"], _FORMS.get(request.query_params.get("as", "md"))
        if owner is None or form is None:
            return PlainTextResponse("", 401 if owner is None else 400, headers=_PRIVATE)
        words = self._words(request.headers.get("accept-language", ""))
        try:
            async with self._engine.workspaces.open(owner) as workspace:
                made = await workspace.conversation(request.path_params["conversation_id"]).export(form, words.spoken)
        except ParlourError as error:
            status = 404 if isinstance(error, NotFoundError) else 503
            return PlainTextResponse(words.error(error), status, headers=_PRIVATE)
        headers = {**_PRIVATE, "content-disposition": attachment(made.name), "x-content-type-options": "nosniff"}
        return StreamingResponse(_sent(made.pieces), media_type=made.media_type, headers=headers)


async def _sent(pieces: AsyncGenerator[str, None]) -> AsyncGenerator[bytes, None]:
    """The pieces as bytes. A file that breaks off is not ended as if it were whole: the browser sees that it failed."""
    async with aclosing(pieces):
        try:
            async for piece in pieces:
                yield piece.encode()
        except ParlourError as error:
            _log.error("An export broke off.\n%s", log_text(error))
            raise
