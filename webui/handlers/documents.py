"""Steering how documents are read: by the bus, and a route of its own for a password, which stands nowhere else."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse
from starlette.routing import Route

from core.errors import ParlourError
from webui.context import json_body, log_text, text_of

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from webui.context import WebContext
    from webui.handlers.desk import Desk
    from webui.views import View

_log = logging.getLogger(__name__)

_LONGEST = 8 * 1024
_PRIVATE = {"cache-control": "no-store"}


async def cancel(desk: Desk, view: View, document_id: str) -> None:
    """Stop reading a document. Raises NotFoundError."""
    await desk.engine.intake.cancel(view.owner, document_id)
    view.poke(stale=True)


async def read_again(desk: Desk, view: View, document_id: str) -> None:
    """Read one more time what failed or was called off. Raises NotFoundError."""
    async with desk.engine.workspaces.open(view.owner) as workspace:
        await workspace.read_again(document_id, view.words.lang)
    view.resting = False
    view.poke(stale=True)


async def forget(desk: Desk, view: View, document_id: str) -> None:
    """Let go of what was read of a document that was stopped. Raises NotFoundError."""
    await desk.engine.intake.forget(view.owner, document_id)
    view.poke(stale=True)


async def ask_now(desk: Desk, view: View) -> None:
    """Let the reply of this conversation go on with what can be searched."""
    desk.engine.intake.go_on(view.owner, view.conversation_id)


class DocumentRoutes:
    """`POST /documents/unlock`: `{"id", "password"}` of a document that asks for one, by its owner."""

    def __init__(self, context: WebContext) -> None:
        self._engine = context.engine
        self._words = context.words

    def table(self) -> list[BaseRoute]:
        """All of them."""
        return [Route("/documents/unlock", self.unlock, methods=["POST"])]

    async def unlock(self, request: Request) -> Response:
        """Read a document with its password; `{"failed": sentence}` where it is another one."""
        owner = request.scope["owner"]
        if owner is None:
            return JSONResponse({}, 401, _PRIVATE)
        wanted = await _asked(request)
        if wanted is None:
            return JSONResponse({}, 400, _PRIVATE)
        words = self._words(request.headers.get("accept-language", ""))
        document_id, password = wanted
        failed: ParlourError | dict[str, Any] = ParlourError()
        try:
            async with self._engine.workspaces.open(owner) as workspace:
                record = await workspace.read_again(document_id, words.lang, password=password)
            if record.status != "failed":
                return JSONResponse({}, headers=_PRIVATE)
            failed = record.error or {}
        except ParlourError as error:
            failed = error
        except Exception as error:
            _log.error("A document was not opened.\n%s", log_text(error))
        return JSONResponse({"failed": words.error(failed)}, headers=_PRIVATE)


async def _asked(request: Request) -> tuple[str, str] | None:
    """Which document, and its password; `None` where the request is not one of the page's own."""
    given = await json_body(request, _LONGEST)
    document_id, password = ((given or {}).get(name) for name in ("id", "password"))
    if not isinstance(document_id, str) or not isinstance(password, str) or not password:
        return None
    return text_of(document_id), text_of(password)
