"""An engine whose links are asked for over HTTP, by any owner or by nobody."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
from starlette.applications import Starlette

from core.engine import Engine
from core.settings import Settings
from core.testing.scripted_model import ScriptedModel
from tests.webui.server.tabs_of_engine import Tabs
from webui.context import WebContext
from webui.handlers.preferences import PreferenceRoutes
from webui.handlers.send import start
from webui.handlers.sharing import ShareRoutes
from webui.middleware.headers import HeadersMiddleware
from webui.uploads import Uploads
from webui.views import View
from webui.words import Words


class Sharing(Tabs):
    """An engine whose routes are asked over HTTP, by any owner or by nobody."""

    def __init__(self, engine: Engine, uploads: Uploads) -> None:
        super().__init__(engine, uploads)
        self.asks: str | None = self.owner
        context = WebContext(engine, engine.settings, Words.of, deletions=self.desk.deletions)
        table = [*ShareRoutes(context).table(), *PreferenceRoutes(context).table()]
        routes = HeadersMiddleware(Starlette(routes=table))

        async def app(scope: Any, receive: Any, send: Any) -> None:
            await routes({**scope, "owner": self.asks}, receive, send)

        self.client = httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://127.0.0.1")

    async def call(self, act: str, **body: Any) -> dict[str, Any]:
        answer = await self.client.post(f"/shares/{act}", json=body)
        return {"status": answer.status_code, **answer.json()}

    async def opened(self, path: str, **headers: str) -> httpx.Response:
        self.asks = None
        answer = await self.client.get(path, headers=headers)
        self.asks = self.owner
        return answer

    async def links(self) -> list[dict[str, Any]]:
        """What the settings list."""
        return (await self.client.get("/preferences/page")).json()["links"]

    async def talk(self, text: str = "Where is the harbour?") -> View:
        view = self.tab(text)
        await self.say(view, text)
        return view

    async def say(self, view: View, text: str, files: tuple[Path, ...] = ()) -> None:
        await start(self.desk, view, text, [(file, file.name) for file in files])
        await self.over(view)


@asynccontextmanager
async def sharing(folder: Path, model: ScriptedModel, **given: Any) -> AsyncIterator[Sharing]:
    settings = Settings.load(home=folder / "home", retrieval="keyword", titles=False, **given)
    async with Engine(settings, model=model) as engine:
        made = Sharing(engine, Uploads(folder / "tmp", 1_000_000))
        yield made
        await made.client.aclose()
