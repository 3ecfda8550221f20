"""The owner of a loopback address proves it with the token; nothing that a request merely says makes it the owner's."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from core.net.addresses import MARK_HEADER, mark_header, serving
from core.settings import Settings
from webui.serving import guarded

pytestmark = pytest.mark.anyio

HERE = "http://127.0.0.1:7860"
TOKEN = "correct horse battery"
FORWARDING = [
    {"x-forwarded-for": "203.0.113.9"},
    {"x-forwarded-proto": "https"},
    {"x-forwarded-host": "chat.example"},
    {"x-forwarded-anything": "1"},
    {"forwarded": "for=203.0.113.9"},
    {"x-real-ip": "203.0.113.9"},
    {"via": "1.1 somewhere"},
    {"cf-connecting-ip": "203.0.113.9"},
    {"X-FORWARDED-FOR": ""},
]


async def inside(scope: Scope, receive: Receive, send: Send) -> None:
    """Says what reached it."""
    request = Request(scope, receive)
    told = {name: scope[name] for name in ("owner", "visitor", "trusted", "scheme", "relayed")}
    headers = {name: value for name, value in request.headers.items() if name != "cookie"}
    response: Response = JSONResponse({**told, "headers": headers, "client": scope["client"]})
    if scope["path"] == "/":
        response = HTMLResponse(f"<p>{json.dumps(told)}</p>")
    await response(scope, receive, send)


Browser = Callable[..., httpx.AsyncClient]


@pytest.fixture
async def browser(tmp_path: Path) -> AsyncIterator[Browser]:
    """Makes browsers: of settings, a peer address and the name by which they come."""
    clients: list[httpx.AsyncClient] = []

    def made(peer: str = "127.0.0.1", at: str = HERE, **settings: Any) -> httpx.AsyncClient:
        read = Settings.load(home=tmp_path, secret="key", **settings)
        app: ASGIApp = guarded(inside, read, "key", read.page_token())
        transport = httpx.ASGITransport(app, client=(peer, 1))
        clients.append(httpx.AsyncClient(transport=transport, base_url=at, follow_redirects=False))
        return clients[-1]

    yield made
    for client in clients:
        await client.aclose()


async def opened(client: httpx.AsyncClient, token: str = TOKEN) -> httpx.AsyncClient:
    """A browser that has opened the printed address."""
    answer = await client.get("/?" + urlencode({"token": token}))
    assert answer.status_code == 303
    return client


async def owner(client: httpx.AsyncClient, **more: Any) -> Any:
    return (await client.get("/files/x", **more)).json()["owner"]


async def test_the_printed_address_makes_a_browser_the_owner_and_the_token_disappears_from_it(browser: Browser) -> None:
    client = browser(token=TOKEN)
    answer = await client.get("/?c=conversation&" + urlencode({"token": TOKEN}))
    assert (answer.status_code, answer.headers["location"]) == (303, "./?c=conversation")
    assert answer.headers["cache-control"] == "no-store"
    (cookie,) = answer.headers.get_list("set-cookie")
    assert {"HttpOnly", "SameSite=Lax", "Path=/"} <= set(cookie.split("; "))
    assert TOKEN not in cookie
    assert await owner(client) == "local"
    again = await client.get("/?" + urlencode({"token": "an old one"}))
    assert (again.status_code, again.headers["location"]) == (303, "./"), "whoever is in is not asked again"


async def test_a_token_in_the_address_of_a_part_of_the_settings_leads_to_that_part(browser: Browser) -> None:
    client = browser(token=TOKEN)
    for token, name in ((TOKEN, "data"), (TOKEN, ""), ("an old one", "models")):
        answer = await client.get(f"/settings/{name}?" + urlencode({"c": "one", "token": token}))
        assert (answer.status_code, answer.headers["location"]) == (303, f"./{name}?c=one")
    answer = await client.get("/settings?" + urlencode({"token": TOKEN}))
    assert answer.headers["location"] == "./settings"


async def test_without_the_token_there_is_no_owner_whatever_the_request_says(browser: Browser) -> None:
    client = browser(token=TOKEN)
    for path in ("/files/x", "/tools/state", "/config", "/gradio_api/app_id", "/mcp/signed-in", "/assets/js/x.js"):
        for headers in ({}, {"origin": HERE}, {"cookie": "parlour=1"}, {"authorization": f"Bearer {TOKEN}"}):
            assert (await client.get(path, headers=headers)).status_code == 401
            assert (await client.post(path, headers=headers, json={})).status_code == 401
    assert (await client.get("/files/x", params={"token": TOKEN})).status_code == 401, "it counts in the address alone"


@pytest.mark.parametrize(("language", "words"), [("en-GB", "printed in the terminal"), ("zh-CN", "终端")])
async def test_the_page_says_where_the_token_is_and_takes_it_typed_in_without_any_script(
    browser: Browser, language: str, words: str, tmp_path: Path
) -> None:
    client = browser()
    page = await client.get("/?c=one", headers={"accept-language": language})
    assert page.status_code == 401
    assert words in page.text
    assert "<script" not in page.text
    form = re.search(r'<form method="post" action="([^"]+)">', page.text)
    assert form
    assert 'name="token"' in page.text
    token = (tmp_path / "token").read_text()
    assert token not in page.text
    answer = await client.post(form[1], data={"token": f" {token}\n", "c": "one"}, headers={"origin": HERE})
    assert (answer.status_code, answer.headers["location"]) == (303, "./?c=one")
    assert await owner(client) == "local"


async def test_what_stands_in_the_address_is_text_on_the_page_that_asks_for_the_token(browser: Browser) -> None:
    page = await browser().get("/", params={"c": '"><script>alert(1)</script><b id="'})
    assert page.status_code == 401
    assert "<script" not in page.text
    assert 'name="c" value="&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;&lt;b id=&quot;">' in page.text


async def test_a_wrong_token_is_said_and_so_many_are_enough_for_a_minute(browser: Browser) -> None:
    client = browser(token=TOKEN)
    for _ in range(5):
        assert "not the token" in (await client.post("/token", data={"token": "wrong"})).text
        assert (await client.get("/?token=wrong")).status_code == 401
    refused = await client.post("/token", data={"token": TOKEN})
    assert refused.status_code == 429
    assert int(refused.headers["retry-after"]) <= 60


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
async def test_wrong_tokens_that_another_sites_page_lets_a_browser_show_keep_nobody_out(
    browser: Browser, site: str
) -> None:
    here = browser(token=TOKEN)
    led = {"sec-fetch-site": site, "sec-fetch-dest": "image"}
    assert [(await here.get("/?token=wrong", headers=led)).status_code for _ in range(11)] == [401] * 10 + [429]
    for own in ({}, {"sec-fetch-site": "none"}, {"sec-fetch-site": "same-origin"}):
        assert (await here.get("/", params={"token": TOKEN}, headers=own)).status_code == 303


async def test_nobodys_wrong_tokens_keep_out_whoever_has_the_one_that_parlour_made(
    browser: Browser, tmp_path: Path
) -> None:
    client = browser()  # to the entrance, two accounts of one machine are one address
    assert [(await client.get("/?token=wrong")).status_code for _ in range(11)] == [401] * 10 + [429]
    kept = (tmp_path / "token").read_text("ascii")
    assert (await client.get("/", params={"token": kept})).status_code == 303


@pytest.mark.parametrize("body", [b"", b"token", b"\xff=\xfe&token=%ff", b"a=" + b"x" * 9000, b"&".join([b"a=1"] * 99)])
async def test_whatever_is_sent_as_the_form_is_answered_with_the_form(browser: Browser, body: bytes) -> None:
    assert (await browser(token=TOKEN).post("/token", content=body)).status_code == 401


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:3000"])
async def test_no_other_site_can_send_the_form(browser: Browser, origin: str) -> None:
    answer = await browser(token=TOKEN).post("/token", data={"token": TOKEN}, headers={"origin": origin})
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


async def test_what_follows_the_form_is_always_parlours_own_page(browser: Browser) -> None:
    sent = {"token": TOKEN, "c": "https://evil.example/\r\nx: y"}
    answer = await browser(token=TOKEN).post("/token", data=sent)
    assert answer.headers["location"].startswith("./?c=https%3A")
    assert "x" not in answer.headers


async def test_the_proof_is_of_this_token_and_this_installation(browser: Browser) -> None:
    proof = (await opened(browser(token=TOKEN))).cookies
    for settings in ({"token": "another token"}, {}):
        client = browser(**settings)
        client.cookies = proof
        assert (await client.get("/files/x")).status_code == 401
    again = browser(token=TOKEN)
    again.cookies = proof
    assert await owner(again) == "local"


async def test_a_restart_logs_nobody_out_for_the_token_is_kept_in_the_data_folder(
    browser: Browser, tmp_path: Path
) -> None:
    proof = (await opened(browser(), Settings.load(home=tmp_path).page_token())).cookies
    assert (tmp_path / "token").stat().st_mode & 0o777 == 0o600
    again = browser()
    again.cookies = proof
    assert await owner(again) == "local"
    renewed = await again.get("/")
    assert "Max-Age" in renewed.headers["set-cookie"]


@pytest.mark.parametrize("headers", FORWARDING)
async def test_what_a_proxy_nobody_named_passes_on_is_never_the_local_owners(
    browser: Browser, headers: dict[str, str]
) -> None:
    for settings in ({"token": TOKEN}, {"token": "off"}):
        client = browser(**settings)
        if settings["token"] == TOKEN:
            await opened(client)
        assert await owner(client) == "local"
        refused = await client.get("/files/x", headers=headers)
        assert refused.status_code == 403
        assert "PARLOUR_ALLOWED_HOSTS" in refused.text
        assert "start no programs" in refused.text


async def test_a_browser_that_is_refused_gets_a_page_in_its_language_that_is_no_document_of_this_site(
    browser: Browser,
) -> None:
    client = browser(token=TOKEN)
    reads = {"accept": "text/html,*/*;q=0.8", "accept-language": "zh-CN"}
    for headers in ({"x-forwarded-for": "203.0.113.9"}, {"host": "evil.example"}, {"origin": "https://evil.example"}):
        page = await client.get("/?c=%3Cimg%3E", headers={**reads, **headers})
        assert (page.status_code, page.headers["content-type"]) == (403, "text/html; charset=utf-8")
        assert '<html lang="zh-CN">' in page.text
        assert "无法以这种方式打开 Parlour" in page.text
        assert "<img" not in page.text
        assert page.headers["cache-control"] == "no-store"
        policy = set(page.headers["content-security-policy"].split("; "))
        assert {"default-src 'none'", "frame-ancestors 'none'", "sandbox"} <= policy
        assert "set-cookie" not in page.headers
        for path in ("/config", "/files/x"):
            other = await client.get(path, headers={**reads, **headers})
            assert (other.status_code, other.headers["content-type"]) == (403, "text/plain; charset=utf-8")


async def test_who_comes_by_an_allowed_name_is_an_owner_of_their_own_and_never_the_local_one(browser: Browser) -> None:
    client = browser(token=TOKEN, allowed_hosts="chat.example,localhost", at="http://chat.example")
    await opened(client)  # a token that was given is asked of everybody
    page = await client.get("/")
    assert '"visitor": true' in page.text
    visitor = await owner(client)
    assert visitor.startswith("b-")
    assert await owner(client, headers={"x-forwarded-for": "203.0.113.9"}) == visitor
    assert await owner(browser(allowed_hosts="chat.example", at="https://chat.example")) is None
    here = await opened(browser(token=TOKEN, allowed_hosts="chat.example,localhost", at="http://localhost:7860"))
    assert await owner(here) == "local", "a name of this machine stays one"


async def test_a_page_of_an_allowed_name_cannot_ask_as_the_local_owner(browser: Browser) -> None:
    client = await opened(browser(token=TOKEN, allowed_hosts="chat.example"))
    assert (await client.post("/tools/save", headers={"origin": "https://chat.example"})).status_code == 403


async def test_a_proxy_that_is_named_tells_who_asks_and_over_what(browser: Browser) -> None:
    client = browser(peer="10.0.0.2", trusted_proxies="10.0.0.0/8,::1", owners="cookie", allowed_hosts="chat.example")
    said = {"x-forwarded-for": "6.6.6.6, 203.0.113.9:5000, 10.1.1.1", "x-forwarded-proto": "https"}
    told = (await client.get("/files/x", headers={**said, "x-forwarded-host": "chat.example"})).json()
    assert (told["client"][0], told["scheme"], told["relayed"]) == ("203.0.113.9", "https", "trusted")
    assert told["headers"]["host"] == "chat.example"
    page = await client.get("/", headers=said)
    (cookie,) = page.headers.get_list("set-cookie")
    assert cookie.startswith("__Host-parlour-")
    assert "Secure" in cookie.split("; ")
    assert (await client.get("/files/x", headers={"x-forwarded-host": "evil.example"})).status_code == 403


async def test_nobody_else_is_believed_and_no_header_of_a_proxy_goes_on(browser: Browser) -> None:
    client = browser(peer="203.0.113.7", trusted_proxies="10.0.0.0/8", owners="cookie")
    said = {"x-forwarded-for": "10.0.0.1", "x-forwarded-proto": "https", "x-forwarded-host": "evil.example"}
    told = (await client.get("/files/x", headers={**said, "x-gradio-server": "http://evil.example", "via": "x"})).json()
    assert (told["client"][0], told["scheme"]) == ("203.0.113.7", "http")
    assert not [name for name in told["headers"] if name.startswith(("x-", "via", "forwarded"))]
    assert "evil" not in str(told["headers"])


async def test_the_owner_comes_through_a_named_proxy_with_the_token_and_never_without(browser: Browser) -> None:
    named = {"trusted_proxies": "127.0.0.1"}
    client = browser(token=TOKEN, **named)
    through = {"x-forwarded-for": "203.0.113.9"}
    assert (await client.get("/files/x", headers=through)).status_code == 401
    assert await owner(await opened(client), headers=through) == "local"
    assert (await browser(token="off", **named).get("/files/x", headers=through)).status_code == 403


async def test_without_a_token_whoever_reaches_the_port_is_the_owner(browser: Browser) -> None:
    assert await owner(browser(token="off")) == "local"


async def test_on_a_network_a_token_is_asked_only_where_one_was_given(browser: Browser) -> None:
    free = browser(peer="10.0.0.9", host="0.0.0.0", at="http://10.0.0.5:7860")
    assert (await free.get("/")).status_code == 200
    guarded_by_token = browser(peer="10.0.0.9", host="0.0.0.0", at="http://10.0.0.5:7860", token=TOKEN)
    assert (await guarded_by_token.get("/")).status_code == 401
    await opened(guarded_by_token)
    assert (await guarded_by_token.get("/")).status_code == 200
    assert (await owner(guarded_by_token)).startswith("b-")


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
async def test_probes_are_answered_by_any_name_and_trust_the_token_alone(browser: Browser, path: str) -> None:
    client = browser(token=TOKEN)
    for headers in ({"host": "parlour:7860"}, {"host": ""}, {"x-forwarded-for": "1.2.3.4"}, {}):
        told = (await client.get(path, headers=headers)).json()
        assert (told["trusted"], told["owner"]) == (False, None)
    bearer = {"authorization": f"Bearer {TOKEN}"}
    assert (await client.get(path, headers=bearer)).json()["trusted"] is True
    assert (await client.get(path, headers={**bearer, "host": "parlour"})).json()["trusted"] is False
    assert (await (await opened(client)).get(path)).json()["trusted"] is True


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
async def test_a_token_cannot_be_found_by_trying_it_at_a_probe(browser: Browser, path: str) -> None:
    client = browser(token=TOKEN)
    for _ in range(10):
        told = (await client.get(path, headers={"authorization": "Bearer wrong"})).json()
        assert told["trusted"] is False
    right = {"authorization": f"Bearer {TOKEN}"}
    assert (await client.get(path, headers=right)).json()["trusted"] is False
    assert (await client.get("/", params={"token": TOKEN})).status_code == 303  # a stale probe keeps nobody out


async def test_whoever_has_a_whole_network_of_addresses_has_no_more_tries(browser: Browser) -> None:
    proxy = browser(peer="10.0.0.1", at="http://10.0.0.5:7860", host="::", trusted_proxies="10.0.0.1", token=TOKEN)
    for number in range(10):
        near = {"x-forwarded-for": f"2001:db8::{number + 1:x}"}
        assert (await proxy.get("/?token=wrong", headers=near)).status_code == 401
    for address, status in (("2001:db8::ffff", 429), ("2001:db8:1::1", 303)):
        came = await proxy.get("/", params={"token": TOKEN}, headers={"x-forwarded-for": address})
        assert came.status_code == status


async def test_other_programs_still_show_their_own_token_at_their_own_door(browser: Browser) -> None:
    told = (await browser(token=TOKEN).post("/mcp")).json()
    assert (told["owner"], told["visitor"]) == (None, False)
    by_name = browser(allowed_hosts="chat.example", at="http://chat.example")
    assert (await by_name.post("/mcp")).json()["visitor"] is True


async def test_what_an_own_tool_asks_is_refused_whoever_it_seems_to_be(browser: Browser) -> None:
    client = await opened(browser(token=TOKEN))
    with serving(1, "secret of this installation"):
        mark = mark_header()[MARK_HEADER]
        for marks in ([mark], ["", mark]):
            refused = await client.get("/files/x", headers=[(MARK_HEADER, mark) for mark in marks])
            assert refused.status_code == 403
        assert await owner(client, headers={MARK_HEADER: "another installation's"}) == "local"


async def test_gradios_script_gets_refusals_that_it_can_read(browser: Browser) -> None:
    answer = await browser(token=TOKEN).post("/gradio_api/queue/join", headers={"accept-language": "zh"})
    assert answer.status_code == 401
    assert "令牌" in answer.json()["detail"]


async def test_a_cookie_that_cannot_be_read_is_told_and_never_overwritten(browser: Browser) -> None:
    client = browser(owners="cookie")
    name = (await client.get("/")).headers["set-cookie"].partition("=")[0]
    client.cookies.clear()
    client.cookies.set(name, "damaged", domain="127.0.0.1", path="/")
    page = await client.get("/", headers={"accept-language": "en"})
    assert page.status_code == 409
    assert "Your conversations are still there" in page.text
    assert "set-cookie" not in page.headers
    assert await owner(client) is None
    form = re.search(r'<form method="post" action="([^"]+)">', page.text)
    assert form
    assert (await client.post(form[1], headers={"origin": "https://evil.example"})).status_code == 403
    answer = await client.post(form[1], headers={"origin": HERE})
    assert answer.status_code == 303
    kept = {one.name: one.value for one in client.cookies.jar}
    assert "damaged" in kept.values(), "the old value is kept under another name"
    fresh = await owner(client)
    assert fresh.startswith("b-")
    assert "set-cookie" not in (await client.post(form[1])).headers, "whoever has an owner keeps it"
    assert await owner(client) == fresh


async def test_each_visit_renews_the_cookie_of_the_same_owner(browser: Browser) -> None:
    client = browser(owners="cookie")
    await client.get("/")
    before = await owner(client)
    answer = await client.get("/")
    assert "Max-Age" in answer.headers["set-cookie"]
    assert await owner(client) == before


async def test_of_browsers_of_one_address_only_so_many_may_be_new_in_a_minute(browser: Browser) -> None:
    shared = browser("203.0.113.9", "http://203.0.113.1", host="0.0.0.0", new_owners_per_minute=3)
    for _ in range(3):
        shared.cookies.clear()
        assert (await shared.get("/")).status_code == 200
    known = dict(shared.cookies)
    shared.cookies.clear()
    for lang, said in (("en", "Too many new visitors"), ("zh", "新访客太多")):
        refused = await shared.get("/", headers={"accept-language": lang})
        assert refused.status_code == 429
        assert 0 < int(refused.headers["retry-after"]) <= 20
        assert said in refused.text
        assert "set-cookie" not in refused.headers
    shared.cookies.update(known)
    assert (await shared.get("/")).status_code == 200  # whoever is known comes in


async def test_addresses_have_a_count_each_and_behind_a_named_proxy_it_is_the_visitors(browser: Browser) -> None:
    settings = {"host": "0.0.0.0", "new_owners_per_minute": 1, "trusted_proxies": "203.0.113.9"}
    shared = browser("203.0.113.9", "http://203.0.113.1", **settings)
    seen: list[int] = []
    # Two neighbours of one IPv6 network are one client, two IPv4 addresses are two.
    for address in ("198.51.100.1", "198.51.100.2", "198.51.100.1", "2001:db8::1", "2001:db8::2", "2001:db8:0:1::1"):
        shared.cookies.clear()
        seen.append((await shared.get("/", headers={"x-forwarded-for": address})).status_code)
    assert seen == [200, 200, 429, 200, 429, 200]


def test_in_a_space_whose_proxy_is_not_named_more_may_be_new() -> None:
    assert Settings.load().new_owners == 30
    assert Settings.load(space_host="someone.hf.space").new_owners == 600
    assert Settings.load(space_host="someone.hf.space", trusted_proxies="10.0.0.0/8").new_owners == 30
    assert Settings.load(new_owners_per_minute=0).new_owners is None
