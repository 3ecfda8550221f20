"""Services of owners: their keys are sealed, nobody's are anybody else's, and a broken one has no tools."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import pytest

from core.errors import ConflictError, FetchError, NotFoundError, SettingsError
from core.settings import Settings
from core.storage.database import Database
from core.storage.sealing import Sealer
from core.toolbox.toolbox import Toolbox
from core.toolbox.user_openapi import ServiceKey
from core.tools.openapi.as_tools import ApiTool
from tests.core.stores import stores_over
from tests.core.toolbox.conftest import Services

pytestmark = pytest.mark.anyio

KEY = "sk-CANARY-0123456789abcdef"
SHOP = """
openapi: 3.0.0
info: {title: Pet shop}
servers: [{url: https://pets.example/v1}]
paths:
  /pets: {get: {operationId: list}, post: {operationId: add}}
"""


def many(count: int) -> str:
    paths = {f"/a{number}": {"get": {"operationId": f"op{number:03}"}} for number in range(count)}
    return json.dumps({"openapi": "3.1.0", "servers": [{"url": "https://x.example"}], "paths": paths})


@pytest.fixture
async def database(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Database]:
    database = await Database.open(tmp_path / "parlour.db")
    yield database
    await database.aclose()


@pytest.fixture
def services(database: Database) -> Services:
    return Services(database)


async def names(services: Services, owner: str = "ann") -> list[str]:
    return [tool.name for tool in await services.of(owner).tools()]


async def test_a_pasted_document_becomes_tools_that_carry_the_key(services: Services):
    made = await services.of("ann").add(SHOP, key=ServiceKey("header", "X-Key", KEY))
    assert (made.name, made.address, made.on) == ("Pet_shop", "https://pets.example", True)
    assert (made.key.kind, made.key.name, made.key.value, made.key.end) == ("header", "X-Key", "", "cdef")
    assert await names(services) == ["Pet_shop-list", "Pet_shop-add"]
    tool = (await services.of("ann").tools())[0]
    assert isinstance(tool, ApiTool)
    assert tool.credentials == {"header": {"X-Key": KEY}}
    await services.of("ann").set_key(made.id, ServiceKey("header", "X-Other"))
    assert (await services.of("ann").tools())[0].credentials == {"header": {"X-Other": KEY}}
    with pytest.raises(SettingsError):
        await services.of("ann").set_key(made.id, ServiceKey("bearer"))
    await services.of("ann").set_key(made.id, ServiceKey("basic", "ann", KEY[::-1]))
    assert (await services.of("ann").tools())[0].credentials == {"basic": {"username": "ann", "password": KEY[::-1]}}


async def test_l5_the_key_is_in_the_database_sealed_and_nowhere_shown(
    services: Services, database: Database, tmp_path: Path
):
    made = await services.of("ann").add(SHOP, key=ServiceKey("bearer", value=KEY))
    shown = repr(made) + repr(await services.of("ann").list()) + repr((await services.of("ann").tools())[0].__dict__)
    await database.aclose()
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"pets.example" in kept
    assert KEY.encode() not in kept
    assert KEY not in shown


async def test_what_is_somebody_else_s_does_not_exist(services: Services):
    made = await services.of("ann").add(SHOP)
    assert await names(services, "bob") == []
    for attempt in (
        services.of("bob").enable(made.id, on=False),
        services.of("bob").switch(made.id, "list", on=False),
        services.of("bob").set_key(made.id, ServiceKey("bearer", value=KEY)),
        services.of("bob").remove(made.id),
    ):
        with pytest.raises(NotFoundError):
            await attempt
    assert len(await names(services)) == 2


async def test_operations_and_services_are_switched_and_removed(services: Services, database: Database):
    made = await services.of("ann").add(SHOP)
    await services.of("ann").switch(made.id, "add", on=False)
    assert await names(services) == ["Pet_shop-list"]
    await services.of("ann").enable(made.id, on=False)
    assert await names(services) == []
    await services.of("ann").enable(made.id, on=True)
    await services.of("ann").switch(made.id, "add", on=True)
    assert len(await names(services)) == 2
    await services.of("ann").remove(made.id)
    assert await services.of("ann").list() == []
    assert await stores_over(database).of("ann").settings.get(f"service:{made.id}") is None


async def test_what_was_made_of_a_document_to_add_it_is_not_made_again_to_show_it(services: Services):
    made = await services.of("ann").add(SHOP)
    [shown] = await services.of("ann").list()
    assert shown.tools[0] is made.tools[0]


async def test_of_very_many_operations_only_the_first_are_offered_until_others_are_chosen(services: Services):
    made = await services.of("ann").add(many(30))
    assert (len(made.tools), len(await names(services))) == (30, 20)
    await services.of("ann").switch(made.id, "op029", on=True)
    assert (await names(services))[-1] == "API-op029"


@pytest.mark.parametrize(
    ("source", "more", "key"),
    [
        ("no document", {}, "openapi_unreadable"),
        ("/etc/passwd", {}, "openapi_unreadable"),
        (many(501), {}, "openapi_too_many"),
        ('{"openapi": "3.0.0", "paths": {}}', {}, "openapi_empty"),
        ('{"openapi": "3.0.0", "paths": {"/a": {"get": {}}}}', {}, "openapi_no_server"),
        (SHOP, {"key": ServiceKey("bearer")}, "openapi_key_empty"),
        (SHOP, {"key": ServiceKey("header", "X-Key")}, "openapi_key_empty"),
        (SHOP, {"key": ServiceKey("header", value=KEY)}, "openapi_key_name"),
        (SHOP, {"key": ServiceKey("header", "a b", KEY)}, "settings"),
    ],
)
async def test_what_cannot_be_set_up_is_told_and_nothing_stays(
    services: Services, source: str, more: dict[str, ServiceKey], key: str
):
    with pytest.raises(SettingsError) as caught:
        await services.of("ann").add(source, **more)  # type: ignore[arg-type]
    assert caught.value.words_key == key
    assert KEY not in str(caught.value)
    assert await services.of("ann").list() == []


async def test_a_file_of_this_machine_is_never_read_for_an_owner(services: Services, tmp_path: Path):
    path = tmp_path / "shop.yaml"
    path.write_text(SHOP, "utf-8")
    with pytest.raises(SettingsError):
        await services.of("home").add(str(path))


async def test_only_the_owner_of_the_machine_names_services_inside_it(services: Services):
    with pytest.raises(FetchError) as caught:
        await services.of("ann").add("http://127.0.0.1:9/openapi.json")
    assert caught.value.words_key == "fetch_private"
    with pytest.raises(FetchError) as caught:
        await services.of("home").add("http://127.0.0.1:9/openapi.json")
    assert caught.value.words_key == "fetch_unreachable"


async def test_two_services_have_two_names(services: Services):
    await services.of("ann").add(SHOP)
    with pytest.raises(ConflictError) as caught:
        await services.of("ann").add(SHOP)
    assert caught.value.words_key == "server_name_taken"
    await services.of("ann").add(SHOP, name="second")
    assert len(await names(services)) == 4


async def test_a_key_that_cannot_be_read_any_more_costs_its_service_alone(services: Services, database: Database):
    await services.of("ann").add(SHOP, key=ServiceKey("bearer", value=KEY))
    await services.of("ann").add(SHOP, name="open")
    other = Services(database, "another secret")
    assert await names(other) == ["open-list", "open-add"]
    first = (await other.of("ann").list())[0]
    assert first.error is not None
    assert first.error.words_key == "key_unreadable"


async def test_an_owner_s_tools_include_those_of_the_services(database: Database, tmp_path: Path):
    toolbox = Toolbox(stores_over(database), Sealer("secret"), Settings.load(home=tmp_path))
    await toolbox.of("ann").openapi.add(SHOP)
    assert "Pet_shop-add" in [tool.name for tool in await toolbox.of("ann").for_model("talk")]
    assert "Pet_shop-add" not in [tool.name for tool in await toolbox.of("bob").for_model("talk")]
    await toolbox.aclose()


@pytest.mark.parametrize(
    ("url", "server", "reached"),
    [
        ("https://evil.example/openapi.json", "", False),
        ("https://evil.example/openapi.json", "http://127.0.0.1:9", True),
        ("http://127.0.0.1:9/openapi.json", "", True),
        ("", "", True),
    ],
)
async def test_a_document_of_the_open_internet_does_not_lead_inside(
    services: Services, monkeypatch: pytest.MonkeyPatch, url: str, server: str, reached: bool
):
    inside = SHOP.replace("https://pets.example/v1", "http://127.0.0.1:9")

    async def fetched(address: str, reach: object) -> tuple[str, str]:
        return inside, address

    monkeypatch.setattr("core.toolbox.user_openapi.fetched_text", fetched)
    await services.of("home").add(url or inside, server=server)
    tool = (await services.of("home").tools())[0]
    with pytest.raises(FetchError) as caught:
        await cast("ApiTool", tool).call({})
    assert caught.value.words_key == ("fetch_unreachable" if reached else "fetch_private")
