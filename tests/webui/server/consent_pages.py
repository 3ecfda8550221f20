"""A person's browser at the page where programs are let in, and programs that ask there."""

from __future__ import annotations

import re
import secrets
from base64 import urlsafe_b64encode
from dataclasses import dataclass, field
from hashlib import sha256
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx

BACK = "http://127.0.0.1:4711/back"
"""Where the program of these tests waits."""


@dataclass
class Program:
    """A program that asks by hand, as an attacker does, too.

    Attributes:
        http: Asks without a cookie.
        base: The address of Parlour.
        id: Its name, once it has introduced itself.
        verifier: What proves that it began.
    """

    http: httpx.AsyncClient
    base: str
    id: str = ""
    secret: str = ""
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(32))

    async def introduce(self, **more: Any) -> Program:
        """Say who it is."""
        said = {"client_name": "Editor", "redirect_uris": [BACK], "token_endpoint_auth_method": "none", **more}
        answer = await self.http.post(f"{self.base}/oauth/register", json=said)
        assert answer.status_code == 201, answer.text
        self.id, self.secret = answer.json()["client_id"], answer.json().get("client_secret") or ""
        return self

    def asking(self, **more: str | None) -> str:
        """The query of the page, with some of it another, or left out."""
        challenge = urlsafe_b64encode(sha256(self.verifier.encode()).digest()).decode().rstrip("=")
        usual = {
            "response_type": "code",
            "client_id": self.id,
            "redirect_uri": BACK,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
            "state": "a state",
            "scope": "search ask",
            "resource": f"{self.base}/mcp",
        }
        return urlencode({name: value for name, value in {**usual, **more}.items() if value is not None})

    async def tokens(self, **form: str | None) -> httpx.Response:
        """Ask for tokens by a code, or as `form` has it."""
        usual = {
            "grant_type": "authorization_code",
            "client_id": self.id,
            "redirect_uri": BACK,
            "code_verifier": self.verifier,
            "resource": f"{self.base}/mcp",
        }
        data = {name: value for name, value in {**usual, **form}.items() if value is not None}
        return await self.http.post(f"{self.base}/oauth/token", data=data)

    async def renewed(self, refresh: str, **form: str | None) -> httpx.Response:
        """Ask for other tokens."""
        none = dict.fromkeys(("redirect_uri", "code_verifier"))
        return await self.tokens(grant_type="refresh_token", refresh_token=refresh, **none, **form)

    async def listed(self, token: str) -> httpx.Response:
        """Ask at the door which tools there are, in the manner of 2026-07-28."""
        return await self.at_the_door("tools/list", token)

    async def at_the_door(self, method: str, token: str, **params: Any) -> httpx.Response:
        """Ask at the door."""
        meta = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "editor", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
        headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2026-07-28"}
        headers |= {"mcp-method": method, **({"mcp-name": params["name"]} if "name" in params else {})}
        if token:
            headers["authorization"] = f"Bearer {token}"
        return await self.http.post(f"{self.base}/mcp", json=body, headers=headers)


async def said_yes(
    browser: httpx.AsyncClient, address: str, *, answer: str = "yes", scopes: tuple[str, ...] = ("search", "ask")
) -> httpx.Response:
    """The person's word at the page: what leads back to the program."""
    page = await browser.get(address, headers={"accept": "text/html"})
    assert page.status_code == 200, page.text
    return await sent(browser, address, ticket_of(page.text), answer=answer, scopes=scopes)


async def sent(
    browser: httpx.AsyncClient,
    address: str,
    ticket: str,
    *,
    answer: str = "yes",
    scopes: tuple[str, ...] = ("search", "ask"),
) -> httpx.Response:
    """The form of the page, filled in."""
    form = {"ticket": ticket, "answer": answer, "scope": list(scopes)}
    return await browser.post(address, data=form)


def ticket_of(page: str) -> str:
    """What the form of the page holds."""
    found = re.search(r'name="ticket" value="([^"]+)"', page)
    assert found is not None, page
    return unescape(found[1])


def told(answer: httpx.Response) -> dict[str, str]:
    """What an answer that leads back tells the program."""
    assert answer.status_code == 303, answer.text
    return {name: values[0] for name, values in parse_qs(urlsplit(answer.headers["location"]).query).items()}
