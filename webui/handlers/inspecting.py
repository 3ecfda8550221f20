"""The inspector: the model calls behind a reply, in the panel beside the conversation and as a file."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from anyio import to_thread
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from core.errors import NotFoundError, ParlourError
from webui.context import log_text
from webui.panels.inspector import inspector_html
from webui.views import INSPECT

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from core.export.cases import CaseForm
    from core.languages import Lang
    from core.storage.base import StoredMessage
    from core.workspace.workspace import Workspace
    from webui.context import WebContext
    from webui.handlers.desk import Desk
    from webui.views import View

_log = logging.getLogger(__name__)
_PRIVATE: Final = {"cache-control": "no-store"}


async def inspected(desk: Desk, view: View, message_id: str, call_id: str = "", stage: str = "") -> None:
    """Show the calls of a reply, and the stages of one of them.

    Args:
        call_id: The one; empty for the table alone.
        stage: Which stage is in front; the request as it was sent by default.

    Raises:
        NotFoundError: The reply is not part of the conversation that the tab shows.
    """
    view.looks += 1
    look = view.looks
    async with desk.reading(view) as workspace:
        message = await _reply(workspace, message_id)
        if message.conversation_id != view.shown_id:
            raise NotFoundError("This reply is in another conversation.")
        looks = workspace.conversation(message.conversation_id).inspecting()
        calls = await looks.calls(message, only=call_id) if call_id else []
        lines = [one.line for one in calls] or await looks.lines(message)
        trace = await looks.trace(message)
    has_case = message.status == "complete" and message.parent_id is not None
    opened = next((one for one in calls if one.line.call_id == call_id), None)

    def drawn() -> str:
        return inspector_html(
            message_id, lines, view.words, opened=opened, stage=stage or "sent", trace=trace, has_case=has_case
        )

    markup = await to_thread.run_sync(drawn)
    if view.looks == look:
        view.cover(view.panel, INSPECT)
        view.place, view.side, view.evidence = None, "", markup


async def _file(message_id: str, workspace: Workspace) -> tuple[StoredMessage, bytes]:
    message = await _reply(workspace, message_id)
    return message, await workspace.conversation(message.conversation_id).inspecting().as_json(message)


async def _case(form: CaseForm, lang: Lang, message_id: str, workspace: Workspace) -> tuple[StoredMessage, bytes]:
    message = await _reply(workspace, message_id)
    return message, await workspace.conversation(message.conversation_id).inspecting().case(message, form, lang)


async def _reply(workspace: Workspace, message_id: str) -> StoredMessage:
    message = await workspace.conversations.message(message_id)
    if message.role != "assistant":
        raise NotFoundError("Only a reply has model calls.", kind="message")
    return message


class InspectRoutes:
    """Files of a reply, without keys.

    `GET /inspect/{message}.json`: all its calls with their stages. `…/{message}/case.yaml` and `….json`: a case of it.
    """

    def __init__(self, context: WebContext) -> None:
        self._engine = context.engine
        self._words = context.words

    def table(self) -> list[BaseRoute]:
        """All of them."""
        return [
            Route("/inspect/{message}.json", self.download, methods=["GET"]),
            Route("/inspect/{message}/case.yaml", partial(self.case, "yaml"), methods=["GET"]),
            Route("/inspect/{message}/case.json", partial(self.case, "json"), methods=["GET"]),
        ]

    async def download(self, request: Request) -> Response:
        """The file; 404 for what is not the reader's."""
        return await self._answered(request, _file, "json")

    async def case(self, form: CaseForm, request: Request) -> Response:
        """A case for a suite; 404 for what is not the reader's, and for what is no whole reply."""
        words = self._words(request.headers.get("accept-language", ""))
        return await self._answered(request, partial(_case, form, words.spoken), form, "case")

    async def _answered(
        self,
        request: Request,
        made: Callable[[str, Workspace], Awaitable[tuple[StoredMessage, bytes]]],
        ending: str,
        what: str = "reply",
    ) -> Response:
        owner = request.scope["owner"]
        if owner is None:
            return JSONResponse({}, 401, _PRIVATE)
        words = self._words(request.headers.get("accept-language", ""))
        failed: ParlourError | dict[str, Any]
        try:
            message, file = await self._engine.demonstrations.also(owner, partial(made, request.path_params["message"]))
        except NotFoundError as error:
            return JSONResponse({"failed": words.error(error)}, 404, _PRIVATE)
        except ParlourError as error:
            failed = error
        except Exception as error:
            _log.error("A file of a reply could not be made.\n%s", log_text(error))
            failed = {"key": "unexpected"}
        else:
            named = {"content-disposition": f'attachment; filename="{what}-{message.id[:12]}.{ending}"'}
            return Response(file, headers={**_PRIVATE, **named}, media_type=f"application/{ending}")
        return JSONResponse({"failed": words.error(failed)}, 503, _PRIVATE)
