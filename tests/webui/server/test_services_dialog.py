"""Services in the dialog about tools, over HTTP: each owner's own, and no key comes back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.webui.server.raw_page import RawPage

KEY = "sk-CANARY-0123456789abcdef"
SHOP = {
    "openapi": "3.0.0",
    "info": {"title": "Pet <b>shop</b>"},
    "servers": [{"url": "https://pets.example/v1"}],
    "paths": {"/pets": {"get": {"operationId": "list", "summary": "List pets"}, "delete": {"operationId": "clear"}}},
}


def ask(tab: RawPage, what: str, **asked: Any) -> dict[str, Any]:
    answer = tab.client.post(f"{tab.url}/tools/services/{what}", json=asked)
    assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store")
    assert "CANARY" not in answer.text
    return dict(answer.json())


def listed(tab: RawPage) -> list[dict[str, Any]]:
    return list(tab.client.get(f"{tab.url}/tools/services/state").json()["services"])


def test_a_service_is_added_switched_and_removed_and_its_key_never_comes_back(alice: RawPage, bob: RawPage) -> None:
    key = {"kind": "header", "name": "X-Key", "value": KEY}
    made = ask(alice, "add", source=json.dumps(SHOP), key=key)
    assert made["said"] == "“Pet_b_shop_b” added, with 2 operations."
    (one,) = made["services"]
    assert one["key"] == {"kind": "header", "name": "X-Key", "end": "cdef", "token_url": "", "scope": ""}
    assert [(tool["id"], tool["about"], tool["on"]) for tool in one["tools"]] == [
        ("list", "GET /pets", True),
        ("clear", "DELETE /pets", True),
    ]
    assert "delete" in one["tools"][1]["may"]
    switched = ask(alice, "tool", service=one["id"], tool="clear", on=False)
    assert switched["services"][0]["said"] == "1 of 2 operations offered"
    assert ask(alice, "enable", service=one["id"], on=False)["services"][0]["on"] is False
    assert listed(bob) == []
    for what in ("enable", "tool", "key", "remove"):
        assert "failed" in ask(bob, what, service=one["id"], tool="list", on=True, key=key)
    assert len(listed(alice)) == 1
    assert ask(alice, "remove", service=one["id"])["services"] == []


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("nothing", "This is not an OpenAPI document"),
        ('{"swagger": "2.0"}', "Swagger 2"),
        ("http://127.0.0.1:9/openapi.json", "is not on the public internet"),
        (json.dumps({**SHOP, "servers": []}), "does not say where the service is"),
    ],
)
def test_what_cannot_be_added_is_told_in_a_sentence(alice: RawPage, source: str, said: str) -> None:
    assert said in ask(alice, "add", source=source)["failed"]
    assert listed(alice) == []


def test_the_form_of_another_site_adds_nothing(alice: RawPage) -> None:
    answer = alice.client.post(f"{alice.url}/tools/services/add", data={"source": "x"})
    assert answer.status_code in {400, 403}


def test_what_is_wrong_is_said_with_what_it_is_about(
    alice: RawPage,
) -> None:
    nowhere = {name: value for name, value in SHOP.items() if name != "servers"}
    failed = ask(alice, "add", source=json.dumps(nowhere))
    assert failed["key"] == "openapi_no_server"
    assert ask(alice, "add", source="http://127.0.0.1:9/openapi.json")["key"] == "fetch_private"


def test_the_form_is_told_what_the_document_declares_and_a_test_keeps_nothing(page: RawPage, alice: RawPage) -> None:
    flow = {"clientCredentials": {"tokenUrl": "http://127.0.0.1:9/token", "scopes": {"read": "<b>Look</b>"}}}
    schemes = {"app": {"type": "oauth2", "flows": flow}}
    inside = {**SHOP, "servers": [{"url": "http://127.0.0.1:9"}], "components": {"securitySchemes": schemes}}
    source = json.dumps(inside)
    draft = ask(page, "read", source=source)["draft"]
    way = {"kind": "oauth2", "name": "", "token_url": "http://127.0.0.1:9/token", "scopes": [["read", "<b>Look</b>"]]}
    assert draft == {"title": "Pet <b>shop</b>", "address": "http://127.0.0.1:9", "ways": [way]}
    key = {"kind": "oauth2", "name": "parlour", "value": KEY, "token_url": way["token_url"], "scope": "read"}
    for tab, failed in ((page, "fetch_unreachable"), (alice, "fetch_private")):
        assert ask(tab, "test", source=source, key=key)["key"] == failed
        assert listed(tab) == []
    assert ask(page, "test", source=source, key={**key, "value": ""})["key"] == "openapi_client"
    made = ask(page, "add", source=source, key=key)["services"][0]
    assert made["key"] == {
        "kind": "oauth2",
        "name": "parlour",
        "end": "cdef",
        "token_url": way["token_url"],
        "scope": "read",
    }
    assert made["ways"] == [way]
    assert ask(page, "test", service=made["id"], key={**key, "value": ""})["key"] == "fetch_unreachable"
    ask(page, "remove", service=made["id"])
