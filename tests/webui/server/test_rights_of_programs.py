"""Every route below `/v1`, asked by whoever holds no key, a wrong one, one for something else, or another's ids."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.webui.server.people_app import House, house
from tests.webui.server.test_rights import own_routes

pytestmark = pytest.mark.anyio

ANY = "any"
"""A key will do whatever it is for, but for one that only lets a page be embedded."""
# What a key must be for, by method and path; a route that is not listed fails.
SCOPES: Mapping[str, str] = {
    "GET /v1/models": ANY,
    "GET /v1/models/{model:path}": ANY,
    "POST /v1/chat/completions": "chat",
    "POST /v1/responses": "chat",
    "GET /v1/responses": "chat",
    "POST /v1/responses/compact": "chat",
    "GET /v1/responses/{response_id}": "chat",
    "DELETE /v1/responses/{response_id}": "chat",
    "GET /v1/responses/{response_id}/input_items": "chat",
    "POST /v1/responses/{response_id}/cancel": "chat",
    "POST /v1/ag-ui": "chat",
    "POST /v1/ag-ui/{model:path}": "chat",
    "POST /v1/embeddings": "embeddings",
    "POST /v1/files": "files",
    "GET /v1/files": "files",
    "GET /v1/files/{file_id}": "files",
    "DELETE /v1/files/{file_id}": "files",
    "GET /v1/files/{file_id}/content": "files",
}
ALL = ("chat", "embeddings", "files")


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[House]:
    async with house(tmp_path, embed_sites=("https://blog.example",)) as made:
        yield made


def program(here: House, key: str = "") -> httpx.AsyncClient:
    """A program: it names no origin, and has no cookie."""
    made = here.browser()
    del made.headers["origin"]
    if key:
        made.headers["authorization"] = f"Bearer {key}"
    return made


async def key_of(browser: httpx.AsyncClient, *scopes: str, name: str = "Editor", **more: Any) -> str:
    answer = await browser.post("/keys/make", json={"name": name, "scopes": [*scopes], **more})
    assert answer.status_code == 200, answer.text
    return answer.json()["key"]


async def answers(by: httpx.AsyncClient, **ids: str) -> dict[str, tuple[int, str]]:
    """What each route says to somebody: the status, and the code of the error."""
    found: dict[str, tuple[int, str]] = {}
    for route in SCOPES:
        method, path = route.split(" ")
        for name in ("model:path", "response_id", "file_id"):
            path = path.replace(f"{{{name}}}", ids.get(name, "x"))
        answer = await by.request(method, path, json={} if method == "POST" else None)
        error = answer.json().get("error") if answer.headers["content-type"] == "application/json" else None
        found[route] = (answer.status_code, error["code"] if isinstance(error, dict) else "")
    return found


async def test_every_route_below_v1_is_in_the_table(here: House) -> None:
    own = own_routes(here)
    there = {f"{method} {path}" for path, methods in own.items() if path.startswith("/v1/") for method in methods}
    assert {one for one in there if not one.endswith("{rest:path}")} == set(SCOPES)


async def test_who_has_no_key_that_is_worth_anything_reaches_nothing(here: House) -> None:
    owner, ada, gus = await here.owner(), await here.person("Ada"), await here.person("Gus")
    kept = await key_of(ada, *ALL)
    assert {status for status, _ in (await answers(program(here))).values()} == {401}
    assert {status for status, _ in (await answers(program(here, "pk-parlour-" + "A" * 43))).values()} == {401}
    assert {status for status, _ in (await answers(owner)).values()} == {401}, "a session is no key"
    revoked, demoted = await key_of(ada, *ALL, name="Old"), await key_of(gus, *ALL)
    hers = await here.engine.stores.of(await here.id_of(ada)).api_keys.list()
    old = next(one.id for one in hers if one.name == "Old")
    assert (await ada.post("/keys/revoke", json={"id": old})).status_code == 200
    await owner.post("/people/role", data={"person": await here.id_of(gus), "role": "guest"})
    for lost in (revoked, demoted):
        assert {status for status, _ in (await answers(program(here, lost))).values()} == {401}
    assert 401 not in {status for status, _ in (await answers(program(here, kept))).values()}
    await owner.post("/people/delete", data={"person": await here.id_of(ada), "name": "Ada"})
    assert {status for status, _ in (await answers(program(here, kept))).values()} == {401}


@pytest.mark.parametrize("scope", ALL)
async def test_a_key_opens_the_routes_that_it_is_for_and_no_other(here: House, scope: str) -> None:
    ada = await here.person("Ada")
    refused = {
        route
        for route, told in (await answers(program(here, await key_of(ada, scope)))).items()
        if told == (403, "insufficient_scope")
    }
    assert refused == {route for route, needed in SCOPES.items() if needed not in {ANY, scope}}


async def test_a_key_that_lets_a_page_be_embedded_opens_none(here: House) -> None:
    ada = await here.person("Ada")
    told = await answers(program(here, await key_of(ada, "embed", models=["parlour"])))
    assert set(told.values()) == {(403, "insufficient_scope")}


async def test_what_is_anothers_is_not_there_and_stays_as_it_is(here: House) -> None:
    ada, bob = await here.person("Ada"), await here.person("Bob")
    hers, his = program(here, await key_of(ada, *ALL)), program(here, await key_of(bob, *ALL))
    file = (await hers.post("/v1/files", files={"file": ("a.txt", b"hers")}, data={"purpose": "user_data"})).json()
    reply = (await hers.post("/v1/responses", json={"model": "parlour", "input": "Well?"})).json()
    told = await answers(his, response_id=reply["id"], file_id=file["id"])
    for route, (status, _) in told.items():
        assert status == 404 or "_id}" not in route, route
    assert (await his.get("/v1/files")).json()["data"] == []
    goes_on = {"model": "parlour", "input": "And?", "previous_response_id": reply["id"]}
    answer = await his.post("/v1/responses", json=goes_on)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "previous_response_not_found")
    assert (await hers.get(f"/v1/files/{file['id']}/content")).content == b"hers"
    assert (await hers.get(f"/v1/responses/{reply['id']}")).json()["status"] == "completed"
