"""Whatever a request says of proxies, it is read without failing, and believed from a named proxy alone."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webui.middleware.proxy import ProxyMiddleware, client_address

NAMES = [b"x-forwarded-for", b"X-Forwarded-Proto", b"x-forwarded-host", b"Forwarded", b"via", b"x-real-ip", b"host"]
HOPS = st.sampled_from(
    ["203.0.113.9", "10.0.0.1", "[2001:db8::1]:80", "2001:db8::1", "unknown", "", "x:1", '"1.2.3.4"']
)
VALUES = st.one_of(st.binary(max_size=60), st.lists(HOPS, max_size=5).map(lambda hops: ",".join(hops).encode()))
HEADERS = st.lists(st.tuples(st.sampled_from(NAMES), VALUES), max_size=8)


def scope(headers: list[tuple[bytes, bytes]], peer: str) -> dict[str, Any]:
    return {"type": "http", "scheme": "http", "headers": headers, "client": (peer, 5)}


async def nothing(*_: Any) -> None:
    return


@given(HEADERS)
def test_any_headers_of_a_named_proxy_give_an_address_and_a_scheme(headers: list[tuple[bytes, bytes]]) -> None:
    seen = ProxyMiddleware(nothing, ["10.0.0.0/8"]).seen(scope(headers, "10.0.0.9"))
    assert ip_address(client_address(seen))
    assert seen["scheme"] in {"http", "https"}
    assert {name.lower() for name, _ in seen["headers"]} <= {b"host"}


@given(HEADERS)
def test_nobody_else_changes_who_asks_or_where(headers: list[tuple[bytes, bytes]]) -> None:
    seen = ProxyMiddleware(nothing, ["10.0.0.0/8"]).seen(scope(headers, "203.0.113.77"))
    assert (client_address(seen), seen["scheme"]) == ("203.0.113.77", "http")
    assert seen["headers"] == [(name, value) for name, value in headers if name == b"host"]
    assert (seen["relayed"] == "no") is all(name == b"host" for name, _ in headers)


@pytest.mark.parametrize(
    ("hops", "client"),
    [
        ("203.0.113.9", "203.0.113.9"),
        ("6.6.6.6, 203.0.113.9", "203.0.113.9"),
        ("203.0.113.9, 10.1.1.1, 10.2.2.2", "203.0.113.9"),
        ("10.1.1.1, 10.2.2.2", "10.1.1.1"),
        ("6.6.6.6, unknown, 10.2.2.2", "10.2.2.2"),
        ("unknown", "10.0.0.9"),
        ("::ffff:203.0.113.9", "203.0.113.9"),
        ("[2001:db8::1]:4711", "2001:db8::1"),
    ],
)
def test_the_nearest_address_that_is_no_named_proxy_is_the_client(hops: str, client: str) -> None:
    seen = ProxyMiddleware(nothing, ["10.0.0.0/8"]).seen(scope([(b"x-forwarded-for", hops.encode())], "10.0.0.9"))
    assert client_address(seen) == client


@pytest.mark.parametrize(("peer", "told"), [("::ffff:10.0.0.9", "10.0.0.9"), ("fe80::1%eth0", "fe80::1"), ("", "")])
def test_an_address_has_one_spelling(peer: str, told: str) -> None:
    assert client_address(scope([], peer)) == told
    assert client_address({"client": None}) == ""


@pytest.mark.parametrize(
    ("said", "scheme"), [("https", "https"), ("https, http", "http"), ("http, https", "https"), ("https, ftp", "http")]
)
def test_of_what_several_say_the_last_is_the_named_proxys_own_word(said: str, scheme: str) -> None:
    headers = [(b"x-forwarded-proto", said.encode()), (b"x-forwarded-host", b"evil.example, chat.example")]
    seen = ProxyMiddleware(nothing, ["10.0.0.0/8"]).seen(scope(headers, "10.0.0.9"))
    assert (seen["scheme"], seen["headers"]) == (scheme, [(b"host", b"chat.example")])
    twice = [(b"x-forwarded-proto", one.encode()) for one in said.split(", ")]
    assert ProxyMiddleware(nothing, ["10.0.0.0/8"]).seen(scope(twice, "10.0.0.9"))["scheme"] == scheme
