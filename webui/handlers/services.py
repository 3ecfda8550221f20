"""Services with an OpenAPI document, in the dialog about tools: routes of our own, as those of the other tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from starlette.responses import JSONResponse
from starlette.routing import Route

from core.toolbox.user_openapi import KEY_KINDS, ServiceKey
from webui.context import json_body, text_of
from webui.handlers.tools import Asked, ToolRoutes
from webui.panels.servers import draft_data, service_data, trial_said

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from core.workspace.workspace import Workspace
    from webui.words import Words

_LONGEST = 3 * 1024 * 1024  # bytes of a request: a document may be pasted
_PRIVATE = {"cache-control": "no-store"}


class ServiceRoutes(ToolRoutes):
    """`GET /tools/services/state`, `POST /tools/services/add` and so on, each for the owner of the request."""

    def table(self) -> list[BaseRoute]:
        """All of them."""
        works = {
            "read": self.read,
            "test": self.test,
            "add": self.add,
            "key": self.key,
            "enable": self.enable,
            "tool": self.tool,
            "remove": self.remove,
        }
        return [
            Route("/tools/services/state", self.state, methods=["GET"]),
            *(
                Route(f"/tools/services/{name}", self._answering(work), methods=["POST"])
                for name, work in works.items()
            ),
        ]

    async def read(self, workspace: Workspace, asked: Asked, words: Words) -> dict[str, Any]:
        """What a document says of keys, before anything is set up."""
        del words
        source, server = text_of(asked.get("source")), text_of(asked.get("server"))
        return {"draft": draft_data(await workspace.tools.openapi.draft(source, server))}

    async def test(self, workspace: Workspace, asked: Asked, words: Words) -> dict[str, Any]:
        """Try a service with the key that was typed, or with its own; neither is kept by that."""
        key, service = _key(asked.get("key")), text_of(asked.get("service"))
        if service:
            trial = await workspace.tools.openapi.try_key(service, key)
        else:
            source, server = text_of(asked.get("source")), text_of(asked.get("server"))
            trial = await workspace.tools.openapi.try_draft(source, server, key)
        return {"said": trial_said(trial, words)}

    async def add(self, workspace: Workspace, asked: Asked, words: Words) -> dict[str, Any]:
        """Set one up."""
        made = await workspace.tools.openapi.add(
            text_of(asked.get("source")),
            name=text_of(asked.get("name")),
            server=text_of(asked.get("server")),
            key=_key(asked.get("key")),
        )
        return {"added": made.id, "said": words("services.added", name=made.name, n=len(made.tools))}

    async def key(self, workspace: Workspace, asked: Asked, words: Words) -> dict[str, Any]:
        """Another key."""
        await workspace.tools.openapi.set_key(text_of(asked.get("service")), _key(asked.get("key")))
        return {"said": words("tools.saved")}

    async def enable(self, workspace: Workspace, asked: Asked, words: Words) -> None:
        """Offer its operations, or no more."""
        del words
        await workspace.tools.openapi.enable(text_of(asked.get("service")), on=asked.get("on") is True)

    async def tool(self, workspace: Workspace, asked: Asked, words: Words) -> None:
        """Offer an operation, or no more."""
        del words
        service, tool = text_of(asked.get("service")), text_of(asked.get("tool"))
        await workspace.tools.openapi.switch(service, tool, on=asked.get("on") is True)

    async def remove(self, workspace: Workspace, asked: Asked, words: Words) -> None:
        """Remove a service."""
        del words
        await workspace.tools.openapi.remove(text_of(asked.get("service")))

    # ---- inside

    async def _shown(self, workspace: Workspace, opened: str, talk: str, words: Words) -> dict[str, Any]:
        del opened, talk
        return {"services": [service_data(one, words) for one in await workspace.tools.openapi.list()]}

    def _answering(
        self, work: Callable[[Workspace, Asked, Words], Awaitable[dict[str, Any] | None]]
    ) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            wanted = await json_body(request, _LONGEST)
            if wanted is None:
                return JSONResponse({}, 400, _PRIVATE)

            async def done(workspace: Workspace, words: Words) -> dict[str, Any]:
                said = await work(workspace, wanted, words)
                return {**await self._shown(workspace, "", "", words), **(said or {})}

            return await self._told(request, done)

        return answer


def _key(given: Any) -> ServiceKey:
    """How a service knows who asks, as it was typed."""
    row = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    kind = KEY_KINDS.get(text_of(row.get("kind")), "none")
    name, value, token_url, scope = (text_of(row.get(one)) for one in ("name", "value", "token_url", "scope"))
    return ServiceKey(kind, name, value, token_url=token_url, scope=scope)
