"""Links to snapshots of conversations: made, listed and revoked by their owner, and opened by whoever has one."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from core.errors import ConflictError, NotFoundError, ParlourError, QuotaError, StorageError, UnsupportedFormatError
from core.export.sharing import page_of
from webui.context import json_body, text_of
from webui.middleware.entrance import plain_page
from webui.middleware.owner import SHARED
from webui.panels.settings import size_said

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.routing import BaseRoute

    from core.storage.shares import Held, Share
    from core.workspace.workspace import Workspace
    from webui.context import WebContext
    from webui.words import Words

    Work = Callable[[Workspace, dict[str, Any], Words], Awaitable[dict[str, Any]]]

_PRIVATE: Final = {"cache-control": "no-store"}
_DAY: Final = 24 * 3600.0
_BODY: Final = b"<body>\n"
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
_STATUS: Final = {NotFoundError: 404, ConflictError: 409, QuotaError: 507}
_AT_ONCE: Final = 2  # copies: each is read and checked whole, as a file that is brought in


class ShareRoutes:
    """`POST /shares/look`, `make`, `revoke`, `held` and `copy`, `GET /shares/preview`, for the owner of the request.

    `GET /shared/<token>` is for whoever has the link.
    """

    def __init__(self, context: WebContext) -> None:
        self._engine = context.engine
        self._words = context.words
        self._on = context.settings.share
        self._deletions = context.deletions
        self._copies = asyncio.Semaphore(_AT_ONCE)

    def table(self) -> list[BaseRoute]:
        """All of them."""
        works: dict[str, Work] = {"look": self.look, "make": self.make, "revoke": self.revoke}
        works |= {"held": self.held, "copy": self.copy}
        return [
            Route(f"{SHARED}{{token}}", self.shown, methods=["GET"]),
            Route("/shares/preview", self.preview, methods=["GET"]),
            *(Route(f"/shares/{name}", self._answering(work), methods=["POST"]) for name, work in works.items()),
        ]

    async def look(self, workspace: Workspace, asked: dict[str, Any], words: Words) -> dict[str, Any]:
        """What a snapshot of the conversation `{"id"}` would hold, and the links that it has."""
        made = await workspace.conversation(text_of(asked.get("id"))).snapshot(words.spoken)
        size = size_said(len(made.bundle))
        return {
            "holds": [*_holds(made.held, words, rated=made.rated), size],
            "links": await self._links(workspace, text_of(asked.get("id")), words),
        }

    async def make(self, workspace: Workspace, asked: dict[str, Any], words: Words) -> dict[str, Any]:
        """A link to a snapshot of the conversation `{"id"}` that `lasts`: its path, and the links that there are."""
        lasts, conversation = text_of(asked.get("lasts")), text_of(asked.get("id"))
        if lasts not in LASTS:
            raise NotFoundError("There is no such time.", kind="share")
        made = await workspace.conversation(conversation).snapshot(words.spoken)
        seconds = LASTS[lasts]
        ends_at = time.time() + seconds if seconds is not None else None
        shares = workspace.stores.shares
        token, share = await shares.add(conversation, made.title, made.bundle, ends_at=ends_at, held=made.held)
        try:
            await workspace.conversations.get(conversation)
            self._check_leads(share)
        except NotFoundError:  # deleted meanwhile, when the link was not there to be deleted with it
            await shares.remove(share.id)
            raise
        return {"path": f"{SHARED}{token}", "links": await self._links(workspace, conversation, words)}

    async def revoke(self, workspace: Workspace, asked: dict[str, Any], words: Words) -> dict[str, Any]:
        """Let the link `{"share"}` lead nowhere; the links that the conversation `{"id"}` still has, or its owner."""
        await workspace.stores.shares.remove(text_of(asked.get("share")))
        return {"links": await self._links(workspace, text_of(asked.get("id")), words)}

    async def held(self, workspace: Workspace, asked: dict[str, Any], words: Words) -> dict[str, Any]:
        """What a copy of the snapshot behind `{"link"}` would hold."""
        del workspace
        share, is_whole = await self._engine.stores.shares.kept(text_of(asked.get("link")))
        self._check_leads(share)
        _check_may_be_copied(is_whole=is_whole)
        return {"title": share.title, "made": share.made_at, "holds": _holds(share.held, words)}

    async def copy(self, workspace: Workspace, asked: dict[str, Any], words: Words) -> dict[str, Any]:
        """A conversation of the reader's own that begins with the snapshot behind `{"link"}`: which it is."""
        del words
        token, shares = text_of(asked.get("link")), self._engine.stores.shares
        async with self._copies:
            share, is_whole = await shares.kept(token)
            self._check_leads(share)
            _check_may_be_copied(is_whole=is_whole)
            try:
                async with shares.bundle(token) as path:
                    made = await workspace.taking.bring_in(path, name=share.title, used_at=time.time())
            except UnsupportedFormatError as error:
                await shares.kept(token)  # revoked while it was read
                hint = "Whoever shared it can make a new link."
                raise StorageError("The snapshot is damaged.", hint=hint, key="share_damaged") from error
        return {"open": made.conversations[0]}

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
            page = await asyncio.to_thread(page_of, made.bundle)
        except ParlourError as error:
            return _said(words.error(error), words, 404 if isinstance(error, NotFoundError) else 503)
        return Response(page, media_type=_HTML, headers=_SHOWN)

    async def shown(self, request: Request) -> Response:
        """The page behind a link; a sentence where it leads nowhere any more.

        It says when it ends, and who has conversations here finds on it how to go on in a copy.
        """
        words = self._words(request.headers.get("accept-language", ""))
        if not self._on:
            return _gone(words, 404)
        try:
            token = request.path_params["token"]
            share, kept = await self._engine.stores.shares.content(token)
            self._check_leads(share)
            page = await asyncio.to_thread(page_of, kept)
        except NotFoundError:
            return _gone(words, 404)
        except ParlourError as error:
            return _said(words.error(error), words, 503)
        if page is not kept:
            over = _over(share, token if request.scope["owner"] is not None else "", words)
            page = page.replace(_BODY, _BODY + over.encode(), 1)
        return Response(page, media_type=_HTML, headers=_SHOWN)

    def _check_leads(self, share: Share) -> None:
        """Raises NotFoundError: what it was made of is gone in a moment, unless that is taken back."""
        if self._deletions.is_going(share.conversation_id):
            raise NotFoundError("This link leads nowhere any more.", key="share_gone")

    async def _links(self, workspace: Workspace, conversation: str, words: Words) -> list[dict[str, Any]]:
        return [one for one in await links_data(workspace, words) if conversation in {"", one["id"]}]

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
                status = next((code for kind, code in _STATUS.items() if isinstance(error, kind)), 503)
                return JSONResponse({"failed": words.error(error)}, status, _PRIVATE)

        return answer


async def links_data(workspace: Workspace, words: Words) -> list[dict[str, Any]]:
    """All links of an owner, the newest first, as the page's script takes them. Raises StorageError."""
    shares = workspace.stores.shares
    return [_link(one, shares.token_of(one), words) for one in await shares.list()]


def _link(share: Share, token: str | None, words: Words) -> dict[str, Any]:
    size = [size_said(share.size)] if share.size else []
    return {
        "share": share.id,
        "id": share.conversation_id,
        "title": share.title,
        "made": share.made_at,
        "ends": share.ends_at,
        "path": f"{SHARED}{token}" if token else "",
        "holds": " · ".join([*_counted(share.held, words), *size]),
    }


def _counted(held: Held | None, words: Words) -> list[str]:
    if held is None:
        return []
    pages = [words(_one_or_more("share.n_pages", held.pages), n=held.pages)] if held.pages else []
    return [words(_one_or_more("share.n_messages", held.messages), n=held.messages), *pages]


def _one_or_more(key: str, count: int) -> str:
    return f"{key}_one" if count == 1 else key


def _holds(held: Held | None, words: Words, *, rated: bool = False) -> list[str]:
    """What is in a snapshot, a sentence for each; `rated` where the page tells what its owner thinks of a reply."""
    if held is None:
        return []
    names = words("attach.comma").join(held.files)
    return [
        words("share.messages" if rated else "share.messages_copied", n=held.messages),
        *([words(_one_or_more("share.pages", held.pages), n=held.pages)] if held.pages else []),
        *([words("share.files", names=names)] if names else []),
    ]


def _check_may_be_copied(*, is_whole: bool) -> None:
    """Raises ConflictError."""
    if not is_whole:
        hint = "Ask for a new link."
        raise ConflictError("This link is from before there were copies.", hint=hint, key="share_only_page")


def _over(share: Share, token: str, words: Words) -> str:
    """What stands over the page, which runs nothing and sends no form: when it ends, and the way to a copy.

    Args:
        token: Of the link, for who may have a copy; else "".
    """
    parts: list[str] = []
    if share.ends_at is not None:
        at = datetime.fromtimestamp(share.ends_at, UTC)
        parts.append(f'<p class="note">{escape(words("share.ends", when=f"{at:%Y-%m-%d %H:%M} UTC"))}</p>')
    if token:
        href = escape(f"../?copy={quote(token, safe='')}")
        parts.append(f'<a href="{href}">{escape(words("share.copy"))}</a>')
    return f'<nav class="over">{"".join(parts)}</nav>\n' if parts else ""


def _gone(words: Words, status: int) -> Response:
    return _said(words("share.gone"), words, status)


def _said(sentence: str, words: Words, status: int) -> Response:
    page = plain_page(sentence, f"<main><h1>{escape(sentence)}</h1></main>", words)
    return Response(page, status, media_type=_HTML, headers=_SHOWN)
