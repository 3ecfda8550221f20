"""Signing in to a server that wants it: the whole way, what is renewed, and what leads nowhere."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import httpx2
import pytest
from mcp.shared.auth import OAuthToken

from core.errors import ServerUnreachableError, SignInNeededError
from core.mcp.authorization import Authorization
from core.mcp.journal import ServerLog
from core.mcp.pool import MCPClient, MCPManager
from core.mcp.settings import ServerSettings
from core.mcp.sign_in import NOBODY, BrowserSignIn, MemoryTokens, SignIn
from core.net.addresses import Reach
from tests.core.mcp.protected_server import Protected, protected

pytestmark = pytest.mark.anyio

BACK = "http://127.0.0.1:9/signed-in"


@pytest.fixture
def notes() -> Iterator[Protected]:
    with protected() as both:
        yield both


class User:
    """Somebody who signs in, and counts how often they were asked."""

    def __init__(self, notes: Protected, tokens: MemoryTokens | None = None) -> None:
        self.asked: list[str] = []
        self.notes = notes
        self.tokens = tokens or MemoryTokens()
        self.sign_in = SignIn(self.ask, redirect_uri=BACK, storage=lambda url: self.tokens)

    async def ask(self, address: str) -> str:
        self.asked.append(address)
        return await self.notes.user_agrees(address)

    def client(self, **more: Any) -> MCPClient:
        return MCPClient("notes", {"url": self.notes.url, **more}, sign_in=self.sign_in)


async def refused(client: MCPClient) -> SignInNeededError:
    with pytest.raises(SignInNeededError) as caught:
        await client.connect()
    assert client.is_open is False
    assert "CANARY" not in str(caught.value)
    return caught.value


async def test_a_user_signs_in_and_calls_a_tool(notes: Protected) -> None:
    user = User(notes)
    async with user.client() as client:
        assert "hello" in str(await client.call("whose", {"word": "hello"}))
    (address,) = user.asked
    asked = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
    assert (asked["redirect_uri"], asked["code_challenge_method"], asked["scope"]) == (BACK, "S256", "notes")
    assert asked["resource"] == notes.url
    assert [one.client_name for one in notes.accounts.clients.values()] == ["Parlour"]


async def test_without_a_way_to_sign_in_it_is_said_that_one_is_wanted(notes: Protected) -> None:
    error = await refused(MCPClient("notes", {"url": notes.url}, sign_in=NOBODY))
    assert error.words_key == "mcp_sign_in"
    assert "sign_in" in error.hint
    assert {path for _, path in notes.accounts.seen} == {"/mcp"}  # nobody was asked for anything in vain


async def test_who_signed_in_once_is_not_asked_again(notes: Protected) -> None:
    user = User(notes)
    for _ in range(3):
        async with user.client():
            pass
    assert len(user.asked) == 1
    async with MCPClient("notes", {"url": notes.url}, sign_in=SignIn(None, storage=lambda url: user.tokens)) as client:
        assert client.tools


async def test_a_token_that_has_ended_is_renewed_while_it_is_used(notes: Protected) -> None:
    notes.accounts.seconds = 1
    user = User(notes)
    async with user.client() as client:
        while await _is_good(notes, user):
            await asyncio.sleep(0.05)
        assert "once more" in str(await client.call("whose", {"word": "once more"}))
    assert (len(user.asked), notes.accounts.renewed >= 1) == (1, True)


async def test_a_token_that_has_ended_is_renewed_after_a_restart(notes: Protected) -> None:
    user = User(notes)
    async with user.client():
        pass
    notes.accounts.forget(access_alone=True)
    user.sign_in = SignIn(None, storage=lambda url: user.tokens)  # nobody is there any more
    async with user.client() as client:
        assert client.tools
    assert (len(user.asked), notes.accounts.renewed) == (1, 1)


async def test_calls_at_once_wait_for_no_other_and_renew_once(notes: Protected) -> None:
    user = User(notes)
    async with user.client(timeout=20) as client:
        notes.accounts.forget(access_alone=True)
        words = ["one", "two", "three"]
        answers = await asyncio.gather(*(client.call("whose", {"word": word, "others": 3}) for word in words))
        assert [word in str(answer) for word, answer in zip(words, answers, strict=True)] == [True] * 3
    assert (len(user.asked), notes.accounts.renewed) == (1, 1)


async def test_a_sign_in_that_is_worth_nothing_any_more_is_asked_for_again(notes: Protected) -> None:
    user = User(notes)
    async with user.client():
        pass
    notes.accounts.forget()
    async with user.client() as client:
        assert client.tools
    assert len(user.asked) == 2
    notes.accounts.forget()
    error = await refused(MCPClient("notes", {"url": notes.url}, sign_in=SignIn(None, storage=lambda url: user.tokens)))
    assert error.words_key == "mcp_sign_in"


async def test_a_user_may_say_no(notes: Protected) -> None:
    notes.accounts.refuses = "access_denied"
    error = await refused(User(notes).client())
    assert (error.words_key, error.details["why"]) == ("mcp_sign_in_refused", "access_denied")


async def test_an_answer_to_another_question_is_none(notes: Protected) -> None:
    user = User(notes)

    async def ask(address: str) -> str:
        back = await notes.user_agrees(address)
        state = parse_qs(urlsplit(back).query)["state"][0]
        return back.replace(state, "another")

    user.sign_in = SignIn(ask, redirect_uri=BACK, storage=lambda url: user.tokens)
    assert (await refused(user.client())).words_key == "mcp_sign_in_failed"
    assert await user.tokens.get_tokens() is None


async def test_whoever_does_not_answer_is_not_waited_for_without_end(
    notes: Protected, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.mcp.authorization.PATIENCE", 0.2)

    async def ask(address: str) -> str:
        return await asyncio.get_running_loop().create_future()

    client = MCPClient("notes", {"url": notes.url}, sign_in=SignIn(ask, redirect_uri=BACK))
    assert (await refused(client)).words_key == "mcp_sign_in_late"


async def test_no_time_runs_out_while_a_user_signs_in(notes: Protected) -> None:
    user = User(notes)
    ends: list[float | None] = []

    async def ask(address: str) -> str:
        asker: Any = vars(vars(client)["_session"])["_asker"]
        ends.extend(clock.when() for clock in vars(asker)["_clocks"])
        return await notes.user_agrees(address)

    user.sign_in = SignIn(ask, redirect_uri=BACK)
    client = user.client()
    async with client:
        assert client.tools
    assert ends == [None]


# ---- documents that lie

LIES: dict[str, tuple[str, dict[str, Any], str]] = {
    "another issuer": ("server", {"issuer": "https://auth.example"}, "mcp_sign_in_failed"),
    "a page that is a script": ("server", {"authorization_endpoint": "javascript:alert(1)//x"}, "mcp_sign_in_unknown"),
    "a page without encryption": ("server", {"authorization_endpoint": "http://auth.example/a"}, "mcp_sign_in_unsafe"),
    "a page with a password": ("server", {"authorization_endpoint": "https://a:b@x.example/"}, "mcp_sign_in_unsafe"),
    "another server's resource": ("resource", {"resource": "https://mcp.example/mcp"}, "mcp_sign_in_failed"),
    "a service of the cloud": (
        "resource",
        {"authorization_servers": ["https://169.254.169.254/latest"]},
        "mcp_sign_in_unsafe",
    ),
}


@pytest.mark.parametrize(("whose", "lie", "key"), LIES.values(), ids=LIES)
async def test_a_description_that_lies_leads_nowhere(
    notes: Protected, whose: str, lie: dict[str, Any], key: str
) -> None:
    notes.accounts.lies[whose] = lie
    user = User(notes)
    assert (await refused(user.client())).words_key == key
    assert user.asked == []
    assert notes.accounts.access == {}


@pytest.mark.parametrize("reach", [None, Reach()], ids=["the owner of the machine", "a reader of a shared page"])
@pytest.mark.parametrize(
    "address",
    [
        *("https://127.0.0.1:9/", "https://localhost:9/", "https://[::1]:9/", "https://2130706433:9/"),
        *("https://169.254.169.254/", "http://auth.example/", "javascript:alert(1)", "file:///etc/passwd"),
    ],
)
async def test_a_server_of_the_open_internet_leads_to_no_private_address(address: str, reach: Reach | None) -> None:
    settings = ServerSettings.model_validate({"url": "https://mcp.example/mcp"})
    signs = Authorization(
        "far", settings, sign_in=NOBODY, reach=reach, journal=ServerLog(), waiting=contextlib.nullcontext
    )
    asks: Any = vars(Authorization)["_beside"]
    with pytest.raises(SignInNeededError) as caught:
        await asks(signs, httpx2.Request("GET", address))
    assert caught.value.words_key == "mcp_sign_in_unsafe"


async def test_a_server_that_offers_no_sign_in_wants_a_key(notes: Protected) -> None:
    notes.accounts.lies["resource"] = None
    error = await refused(User(notes).client())
    assert error.words_key == "mcp_sign_in_none"
    assert "Authorization" in error.hint


async def test_where_a_key_was_given_nobody_is_asked_to_sign_in(notes: Protected) -> None:
    client = MCPClient(
        "keyed", {"url": notes.url, "headers": {"Authorization": "Bearer wrong-key"}}, sign_in=User(notes).sign_in
    )
    with pytest.raises(ServerUnreachableError) as caught:
        await client.connect()
    assert caught.value.words_key == "mcp_login"


# ---- as whom


async def test_a_client_that_the_user_registered_signs_in_with_its_secret(notes: Protected) -> None:
    registered = await _registered(notes)
    user = User(notes)
    given = {"clientId": registered["client_id"], "clientSecret": registered["client_secret"], "scopes": ["notes"]}
    async with user.client(oauth=given) as client:
        assert client.tools
    assert set(notes.accounts.clients) == {registered["client_id"]}


# ---- what nobody may read


async def test_no_token_stands_in_a_log_or_in_what_the_server_says(
    notes: Protected, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    user = User(notes)
    async with user.client() as client:
        tokens = await user.tokens.get_tokens()
        assert tokens is not None
        client._session.journal.write(f"they gave me {tokens.access_token}")  # pyright: ignore[reportPrivateUsage]
        assert "CANARY" not in str(client.log)
    await user.tokens.set_tokens(OAuthToken(access_token="CANARY-old", refresh_token="CANARY-old-refresh"))
    notes.accounts.lies["server"] = {"issuer": "https://auth.example"}
    await refused(user.client())
    theirs = ("uvicorn", "mcp.server", "asyncio", "httpx.", "httpcore.")  # the server's, and the user's browser
    written = logging.Formatter()  # with the traceback, where there is one
    ours = [written.format(one) for one in caplog.records if not f"{one.name}.".startswith(theirs)]
    assert ours
    assert not [text for text in ours if "CANARY" in text or "CODE-" in text]


# ---- the browser of this machine


async def test_a_program_in_a_terminal_opens_the_browser_and_hears_one_answer(notes: Protected) -> None:
    shown: list[str] = []
    answers: list[httpx.Response] = []

    def browser(address: str) -> None:
        shown.append(address)
        back = httpx.get(address).headers["location"]
        own = back.partition("?")[0]
        assert httpx.get(f"{own}?code=stolen&state=guessed").status_code == 404
        answers.append(httpx.get(back))

    manager = MCPManager(sign_in=BrowserSignIn(show=browser))
    tools = await manager.connect({"mcpServers": {"notes": {"url": notes.url}}})
    assert [tool.name for tool in tools] == ["notes-whose"]
    assert urlsplit(notes.accounts.asked[0].redirect_uri.unicode_string()).hostname == "127.0.0.1"
    assert [answer.status_code for answer in answers] == [200]
    with pytest.raises(httpx.ConnectError):
        httpx.get(str(notes.accounts.asked[0].redirect_uri))
    await manager.aclose()


async def test_a_program_without_a_terminal_opens_nothing(notes: Protected) -> None:
    assert (await refused(MCPClient("notes", {"url": notes.url}))).words_key == "mcp_sign_in"


async def _is_good(notes: Protected, user: User) -> bool:
    tokens = await user.tokens.get_tokens()
    assert tokens is not None
    return await notes.accounts.verify_token(tokens.access_token) is not None


async def _registered(notes: Protected) -> dict[str, Any]:
    wanted = {"redirect_uris": [BACK], "token_endpoint_auth_method": "client_secret_basic", "scope": "notes"}
    async with httpx.AsyncClient() as web:
        return (await web.post(f"{notes.issuer}/register", json=wanted)).json()
