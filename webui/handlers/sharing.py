"""Links to snapshots of conversations: made, listed and revoked by their owner, and opened by whoever has one."""

from __future__ import annotations

import time
from html import escape
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from core.errors import ConflictError, NotFoundError, ParlourError
from webui.context import json_body, text_of
from webui.middleware.entrance import plain_page
from webui.middleware.owner import SHARED

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from core.storage.shares import Share
    from core.workspace.workspace import Workspace
    from webui.context import WebContext
    from webui.words import Words

    Work = Callable[[Workspace, dict[str, Any], Words], Awaitable[dict[str, Any]]]

_PRIVATE: Final = {"cache-control": "no-store"}
_DAY: Final = 24 * 3600.0
LASTS: Final = {"day": _DAY, "week": 7 * _DAY, "month": 30 * _DAY, "ever": None}
"""How long a link leads somewhere, in seconds."""
_POLICY: Final = (
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; sandbox allow-top-navigation-by-user-activation"
)
_SHOWN: Final = {
    **_PRIVATE,
    "content-security-policy": _POLICY,
    "x-robots-tag": "noindex, nofollow, noarchive",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}
_HTML: Final = "text/html; charset=utf-8"


class ShareRoutes:
    """`POST /shares/look`, `make` and `revoke`, `GET /shares/preview`, for the owner of the request.

    `GET /shared/<token>` is for whoever has the link.
    """

    def __init__(self, context: WebContext) -> None:
        self._engine = context.engine
        self._words = context.words
        self._on = context.settings.share

    def table(self) -> list[BaseRoute]:
        """All of them."""
        works: dict[str, Work] = {"look": self.look, "make": self.make, "revoke": self.revoke}
        return [
            Route(f"{SHARED}{{token}}", self.shown, methods=["GET"]),
            Route("/shares/preview", self.preview, methods=["GET"]),
            *(Route(f"/shares/{name}", self._answering(work), methods=["POST"]) for name, work in works.items()),
        ]

    async def look(self, workspace: Workspace, asked: dict[str, Any], words: Words) -> dict[str, Any]:
        """What a snapshot of the conversation `{"id"}` would hold, and the links that it has."""
        made = await workspace.conversation(text_of(asked.get("id"))).snapshot(words.spoken)
        names = words("attach.comma").join(made.files)
        holds = [
            words("share.messages", n=made.messages),
            *([words("share.pages", n=made.pages)] if made.pages else []),
            *([words("share.files", names=names)] if names else []),
        ]
        return {"holds": holds, "links": await self._links(workspace, text_of(asked.get("id")))}

    async def make(self, workspace: Workspace, asked: dict[str, Any], words: Words) -> dict[str, Any]:
        """A link to a snapshot of the conversation `{"id"}` that `lasts`: its path, and the links that there are."""
        lasts, conversation = text_of(asked.get("lasts")), text_of(asked.get("id"))
        if lasts not in LASTS:
            raise NotFoundError("There is no such time.", kind="share")
        made = await workspace.conversation(conversation).snapshot(words.spoken)
        seconds = LASTS[lasts]
        ends_at = time.time() + seconds if seconds is not None else None
        token, share = await workspace.stores.shares.add(conversation, made.title, made.page, ends_at=ends_at)
        try:
            await workspace.conversations.get(conversation)
        except NotFoundError:  # deleted meanwhile, when the link was not there to be deleted with it
            await workspace.stores.shares.remove(share.id)
            raise
        return {"path": f"{SHARED}{token}", "links": await self._links(workspace, conversation)}

    async def revoke(self, workspace: Workspace, asked: dict[str, Any], words: Words) -> dict[str, Any]:
        """Let the link `{"share"}` lead nowhere; the links that the conversation `{"id"}` still has."""
        del words
        await workspace.stores.shares.remove(text_of(asked.get("share")))
        return {"links": await self._links(workspace, text_of(asked.get("id")))}

    async def preview(self, request: Request) -> Response:
        """The page that a link would lead to, for its owner alone."""
        owner = request.scope["owner"]
        words = self._words(request.headers.get("accept-language", ""))
        if owner is None or not self._on:
            return _gone(words, 401 if owner is None else 403)
        try:
            async with self._engine.workspaces.open(owner) as workspace:
                conversation = workspace.conversation(request.query_params.get("id", ""))
                made = await conversation.snapshot(words.spoken)
        except ParlourError as error:
            return _said(words.error(error), words, 404 if isinstance(error, NotFoundError) else 503)
        return Response(made.page, media_type=_HTML, headers=_SHOWN)

    async def shown(self, request: Request) -> Response:
        """The page behind a link; a sentence where it leads nowhere any more."""
        words = self._words(request.headers.get("accept-language", ""))
        if not self._on:
            return _gone(words, 404)
        try:
            page = await self._engine.stores.shares.page(request.path_params["token"])
        except NotFoundError:
            return _gone(words, 404)
        except ParlourError as error:
            return _said(words.error(error), words, 503)
        return Response(page, media_type=_HTML, headers=_SHOWN)

    async def _links(self, workspace: Workspace, conversation: str) -> list[dict[str, Any]]:
        listed = await workspace.stores.shares.list()
        return [_link(one) for one in listed if one.conversation_id == conversation]

    def _answering(self, work: Work) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            owner = request.scope["owner"]
            if owner is None:
                return JSONResponse({}, 401, _PRIVATE)
            words = self._words(request.headers.get("accept-language", ""))
            if not self._on:
                return JSONResponse({"failed": words("share.off")}, 403, _PRIVATE)
            try:
                async with self._engine.workspaces.open(owner) as workspace:
                    return JSONResponse(await work(workspace, await json_body(request) or {}, words), headers=_PRIVATE)
            except ParlourError as error:
                known = {NotFoundError: 404, ConflictError: 409}
                status = next((code for kind, code in known.items() if isinstance(error, kind)), 503)
                return JSONResponse({"failed": words.error(error)}, status, _PRIVATE)

        return answer


def _link(share: Share) -> dict[str, Any]:
    return {"share": share.id, "made": share.made_at, "ends": share.ends_at}


def _gone(words: Words, status: int) -> Response:
    return _said(words("share.gone"), words, status)


def _said(sentence: str, words: Words, status: int) -> Response:
    page = plain_page(sentence, f"<main><h1>{escape(sentence)}</h1></main>", words)
    return Response(page, status, media_type=_HTML, headers=_SHOWN)
