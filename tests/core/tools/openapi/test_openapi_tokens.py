"""OAuth 2 for programs: a token is got once, kept until its end, and neither it nor the secret is ever shown."""

from __future__ import annotations

import asyncio
import json
import logging
from base64 import b64encode
from collections.abc import AsyncIterator
from typing import Any

import pytest

from core.errors import SettingsError
from core.tools.openapi import credentials as tokens
from core.tools.openapi.as_tools import ApiTool
from tests.core.tools.openapi.test_openapi_calls import Service, call, tool_of

pytestmark = pytest.mark.anyio

SECRET, TOKEN = "s3cret-CANARY/+", "tok-CANARY-42"
CLIENT = {"client_id": "parlour", "client_secret": SECRET}


def root(url: str = "/token") -> dict[str, Any]:
    flows = {"clientCredentials": {"tokenUrl": url, "scopes": {}}}
    return {"components": {"securitySchemes": {"app": {"type": "oauth2", "flows": flows}}}, "security": [{"app": []}]}


def gives(service: Service, token: str = TOKEN, **more: Any) -> None:
    service.answers["/token"] = service.made(
        json.dumps({"access_token": token, "token_type": "Bearer", **more}).encode()
    )


def made(service: Service, client: dict[str, Any] | None = None, url: str = "/token") -> ApiTool:
    return tool_of(service, {}, credentials={"app": CLIENT if client is None else client}, root=root(url))


@pytest.fixture
async def service(anyio_backend: str) -> AsyncIterator[Service]:
    made = Service()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    yield made
    server.close()
    await server.wait_closed()


@pytest.fixture
def shop(service: Service) -> Service:
    """One that gives tokens."""
    gives(service, expires_in=3600)
    return service


def paths(service: Service) -> list[str]:
    return [head.split()[1] for head in service.heads]


async def test_a_token_is_got_once_and_goes_with_every_call(shop: Service) -> None:
    tool = made(shop, {**CLIENT, "scope": "read"})
    for _ in range(2):
        assert (await call(tool)).content == '{"ok": true}'
        assert shop.header("authorization") == f"Bearer {TOKEN}"
    assert paths(shop) == ["/token", "/x", "/x"]
    assert shop.bodies[0] == b"grant_type=client_credentials&scope=read"
    pair = b64encode(b"parlour:s3cret-CANARY%2F%2B").decode()
    assert f"authorization: basic {pair}".lower() in shop.heads[0].lower()


async def test_by_the_plain_name_the_address_is_given_with_it(shop: Service) -> None:
    given = {"oauth2": {**CLIENT, "token_url": shop.url() + "/token"}}
    assert (await call(tool_of(shop, {}, credentials=given))).content == '{"ok": true}'
    assert shop.header("authorization") == f"Bearer {TOKEN}"


async def test_a_token_near_its_end_is_renewed(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    gives(service, expires_in=100)
    now = [1000.0]
    monkeypatch.setattr(tokens, "monotonic", lambda: now[0])
    tool = made(service)
    for later in (0.0, 60.0, 20.0):
        now[0] += later
        await call(tool)
    assert paths(service) == ["/token", "/x", "/x", "/token", "/x"]


async def test_a_token_that_ended_early_is_renewed_once(shop: Service) -> None:
    tool = made(shop)
    await call(tool)
    shop.answers["/x"] = shop.made(b"No.", status="401 Unauthorized")
    message = await call(tool)
    assert (message.extra or {})["failed"] == "service_refused"
    assert paths(shop) == ["/token", "/x", "/x", "/token", "/x"]


async def test_calls_that_come_together_get_one_token(shop: Service) -> None:
    tool = made(shop)
    told = await asyncio.gather(*(call(tool) for _ in range(4)))
    assert {str(one.content) for one in told} == {'{"ok": true}'}
    assert sorted(paths(shop)) == ["/token", "/x", "/x", "/x", "/x"]


async def test_a_call_that_is_given_up_takes_nobody_elses_token_away(shop: Service) -> None:
    tool = made(shop)
    first, second = (asyncio.create_task(call(tool)) for _ in range(2))
    while not shop.heads:
        await asyncio.sleep(0)
    first.cancel()
    assert (await second).content == '{"ok": true}'
    assert paths(shop) == ["/token", "/x"]


async def test_of_a_token_that_ended_early_every_call_hears_once_and_one_is_got_for_all(shop: Service) -> None:
    tool = made(shop)
    await call(tool)
    gives(shop, "tok-new", expires_in=3600)
    shop.answers[f"/x {TOKEN.lower()}"] = shop.made(b"No.", status="401 Unauthorized")
    told = await asyncio.gather(*(call(tool) for _ in range(3)))
    assert {str(one.content) for one in told} == {'{"ok": true}'}
    assert paths(shop).count("/token") == 2


async def test_a_service_that_wants_both_in_the_body_gets_them_there(service: Service) -> None:
    service.answers["/token"] = service.made(b'{"error": "invalid_client"}', status="401 Unauthorized")
    message = await call(made(service))
    assert "gave no token (401): invalid_client" in str(message.content)
    assert paths(service) == ["/token", "/token"]
    assert b"client_id=parlour&client_secret=s3cret-CANARY%2F%2B" in service.bodies[1]


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"[]",
        b'"x"',
        b'{"access_token": 7}',
        b'{"access_token": ""}',
        b"{" * 3000,
        b'{"access_token": "a", "token_type": "mac"}',
    ],
)
async def test_an_answer_without_a_token_is_told_and_nothing_is_called(service: Service, answer: bytes) -> None:
    service.answers["/token"] = service.made(answer)
    message = await call(made(service))
    assert (message.extra or {})["failed"] == "service_refused"
    assert paths(service) == ["/token"]


async def test_the_secret_is_not_sent_on_nor_shown_nor_logged(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    service.sends_to("/token", f"{service.url('evil.example')}/token", 307)
    told = [await call(made(service))]
    assert paths(service) == ["/token"]
    pair = b64encode(b"parlour:s3cret-CANARY%2F%2B").decode()
    service.answers["/token"] = service.made(json.dumps({"error": f"bad {SECRET} {pair}"}).encode(), status="400 Bad")
    told.append(await call(made(service)))
    gives(service)
    service.answers["/x"] = service.made(f"You are {TOKEN} with {SECRET}".encode())
    told.append(await call(made(service)))
    tool = made(service)
    seen = f"{told}{caplog.text}{tool!r}{tool.__dict__['_keys']!r}{tool.function}"
    assert "CANARY" not in seen
    assert pair not in seen
    assert "You are … with …" in str(told[-1].content)


@pytest.mark.parametrize(
    ("client", "url", "why"),
    [
        ({"client_id": "parlour"}, "/token", "client_secret"),
        ({**CLIENT, "client_id": ""}, "/token", "client_id"),
        (CLIENT, "", "token_url"),
        (CLIENT, "http://evil.example/token", "https://"),
        ({**CLIENT, "token_url": "http://evil.example/token"}, "/token", "https://"),
    ],
)
async def test_what_is_missing_or_would_travel_openly_is_refused_before(
    service: Service, client: dict[str, Any], url: str, why: str
) -> None:
    tool = made(service, client, url)
    with pytest.raises(SettingsError, match=why) as caught:
        tool.validate_credentials(tool.credentials)
    assert "CANARY" not in str(caught.value)
    await call(tool)
    assert service.heads == []
