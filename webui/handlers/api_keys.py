"""Keys for programs: made, listed and revoked by their owner on the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from starlette.responses import JSONResponse
from starlette.routing import Route

from core.errors import ConflictError, NotFoundError, ParlourError, SettingsError
from core.storage.api_keys import NewKey
from webui.context import json_body, text_of
from webui.panels.api_keys import keys_data, off_note

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from core.workspace.workspace import Workspace
    from webui.context import WebContext
    from webui.words import Words

    Work = Callable[[Workspace, dict[str, Any], Words], Awaitable[dict[str, Any]]]

_PRIVATE: Final = {"cache-control": "no-store"}
_FIELDS: Final = {
    "api_key_unnamed": "name",
    "api_key_taken": "name",
    "api_key_scopes": "scopes",
    "api_key_embed": "models",
}
"""Which field of the form an error is about, by its key."""
_STATUS: Final = {NotFoundError: 404, ConflictError: 409, SettingsError: 400}


class ApiKeyRoutes:
    """`POST /keys/make` and `/keys/revoke`, for the owner of the request."""

    def __init__(self, context: WebContext) -> None:
        self._engine = context.engine
        self._words = context.words

    def table(self) -> list[BaseRoute]:
        """All of them."""
        works: dict[str, Work] = {"make": self.make, "revoke": self.revoke}
        return [Route(f"/keys/{name}", self._answering(work), methods=["POST"]) for name, work in works.items()]

    async def make(self, workspace: Workspace, asked: dict[str, Any], words: Words) -> dict[str, Any]:
        """A key that is called `{"name"}`, with what it is for: itself, this once, and the keys that there are.

        `note` says of one that lets nobody in yet why.
        """
        key, kept = await workspace.stores.api_keys.create(NewKey.checked(asked))
        note = off_note(kept, self._engine.settings, words)
        return {"key": key, "name": kept.name, "note": note, "keys": await keys_data(workspace, words)}

    async def revoke(self, workspace: Workspace, asked: dict[str, Any], words: Words) -> dict[str, Any]:
        """Let nobody in with the key `{"id"}`; the keys that there are."""
        await workspace.stores.api_keys.revoke(text_of(asked.get("id")))
        return {"keys": await keys_data(workspace, words), "said": words("api_keys.revoked")}

    def _answering(self, work: Work) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            owner = request.scope["owner"]
            if owner is None:
                return JSONResponse({}, 401, _PRIVATE)
            words = self._words(request.headers.get("accept-language", ""))
            asked = await json_body(request)
            if asked is None:
                return JSONResponse({}, 400, _PRIVATE)
            try:
                async with self._engine.workspaces.open(owner) as workspace:
                    return JSONResponse(await work(workspace, asked, words), headers=_PRIVATE)
            except ParlourError as error:
                status = next((code for kind, code in _STATUS.items() if isinstance(error, kind)), 503)
                about = _FIELDS.get(error.words_key, "")
                return JSONResponse({"failed": words.error(error), "field": about}, status, _PRIVATE)

        return answer
