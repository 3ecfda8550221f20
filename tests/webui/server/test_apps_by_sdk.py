"""The SDK's own client is let in at a port of this machine: it finds out how by itself, and a person says yes."""

from __future__ import annotations

import contextlib
import re
from collections.abc import AsyncGenerator, AsyncIterator
from html import unescape
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import httpx
import httpx2
import pytest
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl, SecretStr

from core.engine import Engine
from core.settings import Settings
from core.testing.scripted_model import ScriptedModel
from tests.webui.server.consent_pages import BACK, said_yes, told
from tests.webui.server.served_app import Served, served

pytestmark = pytest.mark.anyio

TOKEN = "correct horse battery staple"


class Kept:
    """What the client keeps."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.info: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.info

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.info = client_info


class Person:
    """Who is asked, and agrees.

    Args:
        browser: Theirs.
        scopes: What they let programs in for.
    """

    def __init__(self, browser: httpx.AsyncClient, scopes: tuple[str, ...] = ("search", "ask")) -> None:
        self.browser = browser
        self.scopes = scopes
        self.asked: list[str] = []
        self.auth: OAuthClientProvider
        self._back: dict[str, str] = {}

    async def open(self, address: str) -> None:
        self.asked.append(address)
        shown = await self.browser.get(address, headers={"accept": "text/html"})
        if shown.status_code == 401:  # the token of the house first
            address = await self._show_token(address, shown.text)
        self._back = told(await said_yes(self.browser, address, scopes=self.scopes))

    async def come_back(self) -> AuthorizationCodeResult:
        return AuthorizationCodeResult(
            code=self._back["code"], state=self._back.get("state"), iss=self._back.get("iss")
        )

    async def _show_token(self, address: str, page: str) -> str:
        action = re.search(r'action="([^"]+)"', page)
        then = re.search(r'name="then" value="([^"]*)"', page)
        assert action is not None
        assert then is not None
        place = urljoin(address, action[1])
        led = await self.browser.post(place, data={"token": TOKEN, "then": unescape(then[1])})
        assert led.status_code == 303, led.text
        return urljoin(place, led.headers["location"])


@contextlib.asynccontextmanager
async def client(address: str, person: Person, kept: Kept, mode: str = "auto") -> AsyncIterator[Client]:
    """The SDK's own."""
    said = OAuthClientMetadata(
        client_name="The SDK", redirect_uris=[AnyUrl(BACK)], token_endpoint_auth_method="none", scope=None
    )
    auth = person.auth = OAuthClientProvider(f"{address}/mcp", said, kept, person.open, person.come_back)
    async with (
        httpx2.AsyncClient(auth=auth, timeout=60) as http,
        Client(streamable_http_client(f"{address}/mcp", http_client=http), mode=mode) as opened,
    ):
        yield opened


@pytest.fixture
async def here(tmp_path: Path) -> AsyncGenerator[Served]:
    settings = Settings(home=tmp_path / "home", retrieval="keyword", check_claims=False, secret=SecretStr("key"))
    async with (
        Engine(settings, model=ScriptedModel(*["With heliotrope."] * 9)) as engine,
        served(engine, settings) as house,
    ):
        yield house


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_sdks_client_is_let_in_and_asks_and_is_known_again(here: Served, mode: str) -> None:
    kept = Kept()
    async with httpx.AsyncClient(headers={"origin": here.address}) as browser:
        person = Person(browser)
        async with client(here.address, person, kept, mode) as asked:
            answer = await asked.call_tool("ask", {"question": "With which word does the vault open?"})
            assert answer.content[0].text == "With heliotrope."  # type: ignore[union-attr]
            assert {tool.name for tool in (await asked.list_tools()).tools} == {"ask", "search_library"}
        assert len(person.asked) == 1
        async with client(here.address, person, kept, mode) as asked:  # by the tokens that it kept
            assert (await asked.list_tools()).tools
        assert len(person.asked) == 1
    (key,) = await here.engine.stores.of("local").api_keys.list()
    assert (key.name, key.app is not None) == ("The SDK", True)


async def test_a_token_that_ran_out_is_renewed_without_the_person(here: Served) -> None:
    kept = Kept()
    async with httpx.AsyncClient(headers={"origin": here.address}) as browser:
        person = Person(browser)
        async with client(here.address, person, kept) as asked:
            first, person.auth.context.token_expiry_time = kept.tokens, 1.0
            assert (await asked.list_tools()).tools
    assert first is not None
    assert kept.tokens is not None
    assert (kept.tokens.access_token != first.access_token, kept.tokens.refresh_token != first.refresh_token) == (
        True,
        True,
    )
    assert len(person.asked) == 1


async def test_a_program_asks_for_more_where_a_tool_wants_it(here: Served) -> None:
    kept = Kept()
    async with httpx.AsyncClient(headers={"origin": here.address}) as browser:
        person = Person(browser, ("search",))
        async with client(here.address, person, kept) as asked:
            assert [tool.name for tool in (await asked.list_tools()).tools] == ["search_library"]
            person.scopes = ("search", "ask")
            answer = await asked.call_tool("ask", {"question": "With which word?"})
            assert answer.content[0].text == "With heliotrope."  # type: ignore[union-attr]
    assert len(person.asked) == 2


async def test_the_owner_of_this_machine_shows_the_token_of_the_house_first(tmp_path: Path) -> None:
    settings = Settings(
        home=tmp_path / "home", retrieval="keyword", check_claims=False, secret=SecretStr("key"), token=SecretStr(TOKEN)
    )
    async with (
        Engine(settings, model=ScriptedModel("With heliotrope.")) as engine,
        served(engine, settings, whole=True) as house,
        httpx.AsyncClient(headers={"origin": house.address}) as browser,
    ):
        person = Person(browser)
        async with client(house.address, person, Kept()) as asked:
            answer = await asked.call_tool("ask", {"question": "With which word?"})
            assert answer.content[0].text == "With heliotrope."  # type: ignore[union-attr]
        assert urlsplit(person.asked[0]).path == "/oauth/authorize"
        stranger = httpx.AsyncClient()
        async with stranger:
            assert (await stranger.post(person.asked[0], data={"answer": "yes"})).status_code == 401
