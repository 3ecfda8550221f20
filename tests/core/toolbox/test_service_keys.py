"""A client's id and secret for a service: typed once, sealed, tried before it is kept, and never sent elsewhere."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from core.errors import NotFoundError, SettingsError, ToolError
from core.storage.database import Database
from core.toolbox.user_openapi import ServiceKey
from tests.core.toolbox.conftest import Services
from tests.core.tools.openapi.test_openapi_calls import Service
from webui.panels.servers import service_data
from webui.words import Words

pytestmark = pytest.mark.anyio

SECRET, TOKEN = "s3cret-CANARY-0123", "tok-CANARY-4567"


@pytest.fixture
async def shop(anyio_backend: str) -> AsyncIterator[Service]:
    """A service on this machine that gives tokens and wants one."""
    made = Service()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    token = {"access_token": TOKEN, "token_type": "Bearer", "expires_in": 3600}
    made.answers["/token"] = made.made(json.dumps(token).encode())
    made.answers["/v1/pets"] = made.made(b"{}", status="401 No")
    made.answers[f"/v1/pets {TOKEN.lower()}"] = made.made(b"[]")
    yield made
    server.close()
    await server.wait_closed()


@pytest.fixture
async def services(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Services]:
    database = await Database.open(tmp_path / "parlour.db")
    yield Services(database)
    await database.aclose()


def document(shop: Service, method: str = "get") -> str:
    flow = {"clientCredentials": {"tokenUrl": "/token", "scopes": {"read": "Look"}}}
    root = {
        "openapi": "3.0.0",
        "info": {"title": "Pets"},
        "servers": [{"url": f"http://127.0.0.1:{shop.port}/v1"}],
        "components": {"securitySchemes": {"app": {"type": "oauth2", "flows": flow}}},
        "security": [{"app": ["read"]}],
        "paths": {"/pets": {method: {"operationId": "pets", "summary": "List pets"}}},
    }
    return json.dumps(root)


def client(shop: Service, **other: Any) -> ServiceKey:
    given = {"name": "parlour", "value": SECRET, "token_url": f"http://127.0.0.1:{shop.port}/token", "scope": "read"}
    return ServiceKey("oauth2", **{**given, **other})


def paths(shop: Service) -> list[str]:
    return [head.split()[1] for head in shop.heads]


async def test_what_the_document_declares_is_known_before_anything_is_set_up(services: Services, shop: Service) -> None:
    draft = await services.of("home").draft(document(shop))
    (way,) = draft.ways
    assert (draft.title, draft.address) == ("Pets", f"http://127.0.0.1:{shop.port}/v1")
    assert (way.kind, way.token_url) == ("oauth2", f"http://127.0.0.1:{shop.port}/token")
    assert await services.of("home").list() == []
    assert shop.heads == []


async def test_a_client_is_kept_sealed_and_its_tools_get_a_token(
    services: Services, shop: Service, tmp_path: Path
) -> None:
    made = await services.of("home").add(document(shop), key=client(shop))
    assert (made.key.name, made.key.value, made.key.end, made.key.scope) == ("parlour", "", SECRET[-4:], "read")
    tool = (await services.of("home").tools())[0]
    assert (await tool.call({})).text == "[]"  # type: ignore[union-attr, misc]
    assert shop.bodies[0] == b"grant_type=client_credentials&scope=read"
    assert SECRET in await services.of("home").secrets()
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"/token" in kept
    assert SECRET.encode() not in kept
    assert SECRET not in repr(made) + repr(await services.of("home").list())


async def test_a_service_is_tried_with_what_is_typed_and_nothing_of_it_is_kept(
    services: Services, shop: Service
) -> None:
    trial = await services.of("home").try_draft(document(shop), "", client(shop))
    assert (trial.asked, trial.has_token) == ("List pets", True)
    assert paths(shop) == ["/token", "/v1/pets"]
    assert await services.of("home").list() == []
    with pytest.raises(ToolError) as caught:
        await services.of("home").try_draft(document(shop), "", ServiceKey("bearer", value="wrong-CANARY"))
    assert caught.value.words_key == "service_refused"
    assert "CANARY" not in str(caught.value)


async def test_trying_changes_nothing_at_the_service(services: Services, shop: Service) -> None:
    for method in ("post", "delete"):
        trial = await services.of("home").try_draft(document(shop, method), "", client(shop))
        assert (trial.asked, trial.has_token) == ("", True)
    assert paths(shop) == ["/token", "/token"]


async def test_a_service_that_stands_is_tried_with_another_key_before_it_is_kept(
    services: Services, shop: Service
) -> None:
    made = await services.of("home").add(document(shop), key=client(shop))
    assert (await services.of("home").try_key(made.id)).has_token
    assert (await services.of("home").try_key(made.id, client(shop, value="", scope="write"))).has_token
    assert shop.bodies[-2] == b"grant_type=client_credentials&scope=write"
    with pytest.raises(ToolError):
        await services.of("home").try_key(made.id, ServiceKey("bearer", value="another-key"))
    assert (await services.of("home").list())[0].key.scope == "read"
    with pytest.raises(NotFoundError):
        await services.of("ann").try_key(made.id, client(shop))


async def test_a_secret_that_is_kept_goes_to_no_other_token_address(services: Services, shop: Service) -> None:
    made = await services.of("home").add(document(shop), key=client(shop))
    elsewhere = client(shop, value="", token_url="https://evil.example/token")
    for attempt in (services.of("home").set_key(made.id, elsewhere), services.of("home").try_key(made.id, elsewhere)):
        with pytest.raises(SettingsError) as caught:
            await attempt
        assert caught.value.words_key == "openapi_client"
    await services.of("home").set_key(made.id, client(shop, value="", name="other"))
    one = (await services.of("home").list())[0]
    assert (one.key.name, one.key.end) == ("other", SECRET[-4:])


@pytest.mark.parametrize(
    ("other", "key"),
    [
        ({"name": ""}, "openapi_client"),
        ({"value": ""}, "openapi_client"),
        ({"token_url": ""}, "openapi_client"),
        ({"token_url": "http://other.example/token"}, "openapi_token_address"),
    ],
)
async def test_a_client_that_is_not_whole_is_refused_with_a_reason(
    services: Services, shop: Service, other: dict[str, str], key: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        await services.of("home").add(document(shop), key=client(shop, **other))
    assert caught.value.words_key == key
    assert SECRET not in str(caught.value)
    assert shop.heads == []


async def test_a_service_that_wants_several_keys_at_once_says_so(services: Services, shop: Service) -> None:
    root = json.loads(document(shop))
    root["components"]["securitySchemes"]["id"] = {"type": "apiKey", "in": "header", "name": "X-Id"}
    for security, expected in (([{"app": [], "id": []}], ("app", "id")), ([{"app": [], "id": []}, {"app": []}], ())):
        made = await services.of("home").add(json.dumps({**root, "security": security}), key=client(shop))
        assert made.wants_together == expected
        for words, said in ((Words("en"), "several keys at once (app, id)"), (Words("zh"), "多个密钥（app, id）")):
            assert (said in service_data(made, words)["said"]) is bool(expected)
        await services.of("home").remove(made.id)


async def test_another_key_that_cannot_be_sent_is_refused_and_the_one_there_stays(
    services: Services, shop: Service
) -> None:
    made = await services.of("home").add(document(shop), key=client(shop))
    with pytest.raises(SettingsError):
        await services.of("home").set_key(made.id, ServiceKey("header", "a b", "x-key-1"))
    assert (await services.of("home").list())[0].key.kind == "oauth2"
