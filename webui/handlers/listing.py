"""The list of conversations beyond its beginning, part by part, as the page asks for it while it is scrolled."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import JSONResponse
from starlette.routing import Route

from core.errors import NotFoundError, ParlourError
from core.storage.conversation_list import Place
from webui.context import log_text, text_of
from webui.frames import asking_of
from webui.histories import REFRESH
from webui.panels.history import rows_html, states_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from core.storage.conversation_list import ConversationList
    from core.workspace.workspace import Workspace
    from webui.context import WebContext
    from webui.views import Views
    from webui.words import Words

    _Answer = Callable[[Workspace, Words], Awaitable[dict[str, Any]]]

_log = logging.getLogger(__name__)

_PRIVATE: Final = {"cache-control": "no-store"}


class ListRoutes:
    """`GET /conversations/list/…`, for what the owner has: nothing is changed by asking.

    `parts?after=PLACE` says where each part ends that follows a place, and with `holding=ID` which of them holds a
    conversation; `rows?after=PLACE&to=PLACE` is the markup of a part; `ids` names every conversation that is listed,
    with its folder. With `archived=on` it is the list of the archived ones.
    """

    def __init__(self, context: WebContext, views: Views) -> None:
        self._engine = context.engine
        self._words = context.words
        self._views = views
        self._hidden = context.deletions.planned_of

    def table(self) -> list[BaseRoute]:
        """All of them."""
        acts = {"parts": self.parts, "rows": self.rows, "ids": self.ids}
        return [Route(f"/conversations/list/{name}", act, methods=["GET"]) for name, act in acts.items()]

    async def parts(self, request: Request) -> JSONResponse:
        """Where the parts end; all of them without `after`."""
        archived, after = _is_archive(request), text_of(request.query_params.get("after", ""))
        holding = text_of(request.query_params.get("holding", ""))

        async def found(workspace: Workspace, _: Words) -> dict[str, Any]:
            place = Place.read(after) if after else None
            cut = await self._list(workspace).parts(place, archived=archived, holding=holding)
            return {"parts": [[one.end, one.rows] for one in cut.parts], "at": cut.at}

        return await self._answered(request, found)

    async def rows(self, request: Request) -> JSONResponse:
        """The rows between two places, as markup."""
        asked, archived = request.query_params, _is_archive(request)
        owner, here = request.scope["owner"], text_of(asked.get("here", ""))

        async def found(workspace: Workspace, words: Words) -> dict[str, Any]:
            after, to = Place.read(text_of(asked.get("after", ""))), Place.read(text_of(asked.get("to", "")))
            history = await self._list(workspace).between(after, to, archived=archived)
            live = workspace.runs.live_conversations()
            await self._views.replies_unread.refresh(owner, REFRESH)
            states = states_of(live, self._views.unread(owner), asking_of(workspace, live))
            return {"markup": rows_html(history, after, here, states, words)}

        return await self._answered(request, found)

    async def ids(self, request: Request) -> JSONResponse:
        """Every conversation that is listed, in its order, each with its folder."""
        archived = _is_archive(request)

        async def found(workspace: Workspace, _: Words) -> dict[str, Any]:
            return {"ids": await self._list(workspace).ids(archived=archived)}

        return await self._answered(request, found)

    def _list(self, workspace: Workspace) -> ConversationList:
        return workspace.conversation_list.without(self._hidden(workspace.owner))

    async def _answered(self, request: Request, answer: _Answer) -> JSONResponse:
        owner = request.scope["owner"]
        if owner is None:
            return JSONResponse({}, 401, _PRIVATE)
        words = self._words(request.headers.get("accept-language", ""))
        failed: ParlourError | dict[str, Any]
        status = 503
        try:
            async with self._engine.workspaces.open(owner) as workspace:
                return JSONResponse(await answer(workspace, words), headers=_PRIVATE)
        except NotFoundError as error:
            failed, status = error, 404
        except ParlourError as error:
            failed = error
        except Exception as error:
            _log.error("The list of conversations failed.\n%s", log_text(error))
            failed = {"key": "unexpected"}
        return JSONResponse({"failed": words.error(failed)}, status, _PRIVATE)


def _is_archive(request: Request) -> bool:
    return request.query_params.get("archived") == "on"
