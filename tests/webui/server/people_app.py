"""Parlour's own routes for people with accounts, behind all that looks at a request, without Gradio's page."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from argon2 import PasswordHasher
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from core.engine import Engine
from core.people.passwords import Passwords
from core.people.people import checked_role, new_person
from core.settings import Settings
from core.testing.scripted_model import ScriptedModel
from webui.app import with_accounts
from webui.auth import Cookies
from webui.context import WebContext
from webui.middleware.accounts import SESSION, AccountsMiddleware
from webui.middleware.gate import GateMiddleware
from webui.routes import Routes
from webui.serving import guarded
from webui.uploads import Uploads
from webui.views import Views
from webui.words import Words

AT = "http://10.0.0.5:7860"
GOOD = "a sentence that nobody guesses"


async def _page(request: Request) -> Response:
    return HTMLResponse(f"<p>{request.scope['owner']}</p>")


@dataclass
class House:
    """The application, and what makes browsers for it."""

    engine: Engine
    app: Any
    accounts: AccountsMiddleware
    first: str = ""
    browsers: list[httpx.AsyncClient] = field(default_factory=list[httpx.AsyncClient])

    def browser(self, peer: str = "10.0.0.9", **headers: str) -> httpx.AsyncClient:
        """Another browser, without a cookie; it names its origin as browsers do."""
        transport = httpx.ASGITransport(self.app, client=(peer, 1))
        client = httpx.AsyncClient(transport=transport, base_url=AT, headers={"origin": AT, **headers})
        self.browsers.append(client)
        return client

    async def owner(self, name: str = "Jan") -> httpx.AsyncClient:
        """The first owner's browser."""
        return await self.by_link(self.first, name)

    async def by_link(self, token: str, name: str, password: str = GOOD) -> httpx.AsyncClient:
        """The browser of somebody new."""
        client = self.browser()
        answer = await client.post(f"/link/{token}", data={"name": name, "password": password})
        assert answer.status_code == 303, answer.text
        return client

    async def person(self, name: str, role: str = "member") -> httpx.AsyncClient:
        """The browser of somebody new with a role, who is signed in and has no password: nothing is hashed."""
        people, client = self.engine.people, self.browser()
        person = await people.store.add(new_person(name, checked_role(role)), "terminal")
        token = (await people.open_session(person, browser="")).token
        client.cookies.set(f"{Cookies('key').name}{SESSION}", token)
        return client

    async def id_of(self, client: httpx.AsyncClient) -> str:
        """Who somebody is."""
        return re.sub("<.*?>", "", (await client.get("/")).text)


async def signed_in(client: httpx.AsyncClient, name: str, password: str = GOOD) -> httpx.Response:
    """The answer to a name and a password."""
    return await client.post("/sign-in", data={"name": name, "password": password})


@asynccontextmanager
async def house(home: Path, *replies: str, **settings: Any) -> AsyncGenerator[House]:
    """A house that people sign in to."""
    told: list[str] = []
    read = Settings.load(
        **{"home": home, "secret": "key", "host": "0.0.0.0", "accounts": "accounts", "code": "off", **settings}
    )
    async with Engine(read, model=ScriptedModel(*(replies or ("Yes.",) * 20))) as engine:
        engine.people.passwords = Passwords(PasswordHasher(1, 8, 1))  # the cost is tried where passwords are
        context, uploads = WebContext(engine, read, Words.of), Uploads(home / "tmp", 1024 * 1024)
        routes = [Route("/", _page), *Routes(context, uploads, Views(Words.of)).table()]
        inner = await with_accounts(
            GateMiddleware(Starlette(routes=routes), uploads, public=read.public_ask > 0, accounts=True),
            context,
            told.append,
        )
        made = House(engine, guarded(inner, read, "key", read.page_token()), inner, "".join(told))
        try:
            yield made
        finally:
            for client in made.browsers:
                await client.aclose()
            uploads.close()
