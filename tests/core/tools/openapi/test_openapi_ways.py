"""The ways in which a document says that a service knows who asks: what its form shows."""

from __future__ import annotations

from typing import Any

import pytest

from core.tools.openapi.credentials import AuthScheme, auth_schemes
from core.tools.openapi.document import Document

HOME = "https://pets.example/v1"


def ways(**schemes: Any) -> list[AuthScheme]:
    return auth_schemes(Document({"components": {"securitySchemes": schemes}}), HOME)


def client(**flow: Any) -> dict[str, Any]:
    return {"type": "oauth2", "flows": {"clientCredentials": flow}}


@pytest.mark.parametrize(
    ("scheme", "expected"),
    [
        ({"type": "apiKey", "in": "header", "name": "X-Key"}, [AuthScheme("header", "X-Key")]),
        ({"type": "apiKey", "in": "query", "name": "key"}, [AuthScheme("query", "key")]),
        ({"type": "apiKey", "in": "cookie", "name": "sid"}, [AuthScheme("cookie", "sid")]),
        ({"type": "http", "scheme": "Bearer"}, [AuthScheme("bearer")]),
        ({"type": "http", "scheme": "basic"}, [AuthScheme("basic")]),
        ({"type": "oauth2", "flows": {"authorizationCode": {"tokenUrl": "/t"}}}, [AuthScheme("bearer")]),
        (
            {"type": "openIdConnect", "openIdConnectUrl": "https://id.example"},
            [AuthScheme("bearer"), AuthScheme("oauth2")],
        ),
        ({"type": "mutualTLS"}, []),
        ({"type": "apiKey", "in": "header"}, []),
        ("nonsense", []),
    ],
)
def test_each_scheme_of_a_document_is_a_way_to_know_who_asks(scheme: Any, expected: list[AuthScheme]) -> None:
    assert ways(one=scheme) == expected


def test_of_a_client_the_token_address_and_the_scopes_are_told() -> None:
    (way,) = ways(app=client(tokenUrl="/token", scopes={"read": "Look", "write": None}))
    assert (way.kind, way.token_url, dict(way.scopes)) == (
        "oauth2",
        "https://pets.example/token",
        {"read": "Look", "write": ""},
    )


def test_a_way_stands_there_once_and_there_are_never_very_many() -> None:
    assert ways(a={"type": "http", "scheme": "bearer"}, b={"type": "http", "scheme": "bearer"}) == [
        AuthScheme("bearer")
    ]
    many = {f"k{number}": {"type": "apiKey", "in": "header", "name": f"X-{number}"} for number in range(50)}
    assert len(ways(**many)) == 12


def test_what_a_document_says_has_no_signs_that_steer_a_page() -> None:
    (way,) = ways(app=client(tokenUrl="https://t.example", scopes={"a\u202eb\n": "c\x1b[31m"}))
    assert dict(way.scopes) == {"ab": "c [31m"}
