"""The text of a reply, for whoever wants to change it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from core.errors import NotFoundError, ParlourError

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from webui.context import WebContext

_PRIVATE: Final = {"cache-control": "no-store"}


class ReplyRoutes:
    """`GET /conversations/{id}/answers/{message}`: the text of a reply's last message, for the owner of the request."""

    def __init__(self, context: WebContext) -> None:
        self._engine = context.engine
        self._words = context.words

    def table(self) -> list[BaseRoute]:
        """All of them."""
        return [Route("/conversations/{conversation_id}/answers/{message_id}", self.answer, methods=["GET"])]

    async def answer(self, request: Request) -> Response:
        """`{"text"}`, as the model wrote it; `{"failed": sentence}` where there is no such reply."""
        owner = request.scope["owner"]
        if owner is None:
            return JSONResponse({}, 401, _PRIVATE)
        words = self._words(request.headers.get("accept-language", ""))
        asked = request.path_params
        try:
            async with self._engine.workspaces.open(owner) as workspace:
                text = await workspace.conversation(asked["conversation_id"]).answer(asked["message_id"])
        except ParlourError as error:
            status = 404 if isinstance(error, NotFoundError) else 503
            return JSONResponse({"failed": words.error(error)}, status, _PRIVATE)
        return JSONResponse({"text": text}, headers=_PRIVATE)
