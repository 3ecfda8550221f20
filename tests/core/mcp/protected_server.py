"""A real server of MCP that wants a sign-in, and the real service that signs in, each at a port of this machine.

Both are the `mcp` package's; here stands what it leaves to its user: who is known, and which tokens are good.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import uvicorn
from mcp.server import MCPServer
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    RefreshToken,
    TokenError,
    construct_redirect_uri,
)
from mcp.server.auth.routes import create_auth_routes
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl
from starlette.applications import Starlette

from tests.prompt_server import PromptServer
from webui.server import bind


class Accounts:
    """What the service knows, and how it behaves.

    Attributes:
        seconds: How long a token is good.
        refuses: What the user says to the question; "" for a yes.
        lies: What the two documents say instead, by field: `server` is the service's, `resource` the server's; `None`
            where there is no document.
    """

    def __init__(self) -> None:
        self.seconds = 3600
        self.refuses = ""
        self.lies: dict[str, dict[str, Any] | None] = {"server": {}, "resource": {}}
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.access: dict[str, AccessToken] = {}
        self.fresh: dict[str, RefreshToken] = {}
        self.asked: list[AuthorizationParams] = []
        self.seen: list[tuple[str, str]] = []  # host and path of each request
        self.renewed = 0

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.clients[str(client_info.client_id)] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        self.asked.append(params)
        back = str(params.redirect_uri)
        if self.refuses:
            return construct_redirect_uri(back, error=self.refuses, state=params.state)
        code = f"CODE-{secrets.token_hex(20)}"
        self.codes[code] = AuthorizationCode(
            code=code,
            client_id=str(client.client_id),
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            **params.model_dump(
                include={"code_challenge", "redirect_uri", "redirect_uri_provided_explicitly", "resource"}
            ),
        )
        return construct_redirect_uri(back, code=code, state=params.state)

    async def load_authorization_code(self, client: Any, authorization_code: str) -> AuthorizationCode | None:
        del client
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(self, client: Any, authorization_code: AuthorizationCode) -> OAuthToken:
        del self.codes[authorization_code.code]
        return self._tokens(str(client.client_id), authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(self, client: Any, refresh_token: str) -> RefreshToken | None:
        known = self.fresh.get(refresh_token)
        return known if known is not None and known.client_id == client.client_id else None

    async def exchange_refresh_token(self, client: Any, refresh_token: RefreshToken, scopes: list[str]) -> OAuthToken:
        if self.fresh.pop(refresh_token.token, None) is None:
            raise TokenError("invalid_grant")
        self.renewed += 1
        return self._tokens(str(client.client_id), scopes, refresh_token.resource)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.access.get(token)

    async def verify_token(self, token: str) -> AccessToken | None:
        known = self.access.get(token)
        return known if known is not None and (known.expires_at or 0) > time.time() else None

    async def exchange_identity_assertion(self, client: Any, params: Any) -> OAuthToken:
        raise NotImplementedError

    async def revoke_token(self, token: Any) -> None:
        self.forget()

    def forget(self, *, access_alone: bool = False) -> None:
        """No token that was given is good any more."""
        self.access.clear()
        if not access_alone:
            self.fresh.clear()

    def _tokens(self, client: str, scopes: list[str], resource: str | None) -> OAuthToken:
        access, fresh = (f"CANARY-{kind}-{secrets.token_hex(16)}" for kind in ("access", "refresh"))
        until = int(time.time() + self.seconds)
        self.access[access] = AccessToken(
            token=access, client_id=client, scopes=scopes, expires_at=until, resource=resource
        )
        self.fresh[fresh] = RefreshToken(token=fresh, client_id=client, scopes=scopes, resource=resource)
        return OAuthToken(access_token=access, refresh_token=fresh, expires_in=self.seconds, scope=" ".join(scopes))


class Protected:
    """The two of them.

    Attributes:
        accounts: What the service knows.
        issuer: Where it is.
        url: Where the server of MCP is.
    """

    def __init__(self, accounts: Accounts, issuer: str, url: str) -> None:
        self.accounts = accounts
        self.issuer = issuer
        self.url = url

    async def user_agrees(self, address: str) -> str:
        """A user's browser: it opens the page, and is sent back to the address that this gives."""
        async with httpx.AsyncClient(timeout=60) as browser:
            answer = await browser.get(address)
        assert answer.status_code == 302, answer.text
        return answer.headers["location"]


@contextmanager
def protected() -> Iterator[Protected]:
    """Both, as long as the block runs."""
    accounts = Accounts()
    here, there = bind("127.0.0.1", 0), bind("127.0.0.1", 0)
    issuer, home = (f"http://127.0.0.1:{sock.getsockname()[1]}" for sock in (here, there))
    wanted = AuthSettings(
        issuer_url=AnyHttpUrl(issuer),
        resource_server_url=AnyHttpUrl(f"{home}/mcp"),
        required_scopes=["notes"],
        validate_token_resource=True,
    )
    server = MCPServer("notes", token_verifier=accounts, auth=wanted)

    here_now: list[str] = []
    met = asyncio.Event()

    @server.tool()
    async def whose(word: str, others: int = 1) -> str:
        """Says it again, and how the caller signed in; once so many calls are under way."""
        here_now.append(word)
        if len(here_now) >= others:
            met.set()
        await met.wait()
        return f"{word}: {', '.join(accounts.access)}"

    registration = ClientRegistrationOptions(enabled=True, valid_scopes=["notes"], default_scopes=["notes"])
    service = Starlette(
        routes=create_auth_routes(accounts, AnyHttpUrl(issuer), client_registration_options=registration)
    )
    apps = (
        (_lying(service, accounts, "server"), here),
        (_lying(server.streamable_http_app(), accounts, "resource"), there),
    )
    running = [PromptServer(uvicorn.Config(app, log_config=None, lifespan="auto")) for app, _ in apps]
    threads = [
        threading.Thread(target=one.run, kwargs={"sockets": [sock]})
        for one, (_, sock) in zip(running, apps, strict=True)
    ]
    for thread in threads:
        thread.start()
    try:
        yield Protected(accounts, issuer, f"{home}/mcp")
    finally:
        for one in running:
            one.should_exit = one.force_exit = True
        for thread in threads:
            thread.join()


def _lying(app: Any, accounts: Accounts, whose: str) -> Any:
    """The application, with a document that says what it is told to; without one for `None`."""

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        accounts.seen.append((whose, scope["path"]))
        lies = accounts.lies[whose]
        if lies is None and "/.well-known/" in scope["path"]:
            scope = {**scope, "path": "/nothing", "raw_path": b"/nothing"}
        if not lies or "/.well-known/" not in scope["path"]:
            await app(scope, receive, send)
            return
        pieces: list[bytes] = []
        start: dict[str, Any] = {}

        async def kept(message: Any) -> None:
            if message["type"] == "http.response.start":
                start.update(message)
            else:
                pieces.append(message.get("body", b""))

        await app(scope, receive, kept)
        if start["status"] != 200:
            await send(start)
            await send({"type": "http.response.body", "body": b"".join(pieces)})
            return
        body = json.dumps({**json.loads(b"".join(pieces)), **lies}).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return answer
