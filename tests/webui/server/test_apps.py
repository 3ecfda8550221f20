"""Programs that a person lets in at a page: what they get, what they may then, and the ways in which they are cheated.

The whole is asked as it stands behind all that looks at a request; the SDK's own client goes the whole way in
`test_apps_by_sdk.py`.
"""

from __future__ import annotations

import asyncio
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import httpx
import pytest

from core.errors import StorageError
from tests.webui.server.consent_pages import BACK, Program, said_yes, sent, ticket_of, told
from tests.webui.server.people_app import GOOD, House, house
from webui.auth import Cookies
from webui.middleware.accounts import SESSION

pytestmark = pytest.mark.anyio

AT = "https://10.0.0.5:7860"


class Here:
    """A house over HTTPS, with people's browsers and programs."""

    def __init__(self, made: House) -> None:
        self.house = made

    def browser(self, at: str = AT, **headers: str) -> httpx.AsyncClient:
        """Another browser."""
        transport = httpx.ASGITransport(self.house.app, client=("10.0.0.9", 1))
        client = httpx.AsyncClient(transport=transport, base_url=at, headers={"origin": at, **headers})
        self.house.browsers.append(client)
        return client

    async def person(self, name: str, role: str = "member") -> httpx.AsyncClient:
        """The browser of somebody who is signed in."""
        plain = await self.house.person(name, role)
        client = self.browser()
        client.cookies.set(f"{Cookies('key').name}{SESSION}", next(iter(plain.cookies.values())))
        return client

    async def program(self, at: str = AT, **more: Any) -> Program:
        """A program that has introduced itself."""
        transport = httpx.ASGITransport(self.house.app, client=("10.0.0.9", 1))
        client = httpx.AsyncClient(transport=transport)
        self.house.browsers.append(client)
        return await Program(client, at).introduce(**more)

    async def let_in(self, program: Program, person: httpx.AsyncClient, **more: Any) -> dict[str, Any]:
        """The first tokens of a program."""
        back = told(await said_yes(person, f"/oauth/authorize?{program.asking()}", **more))
        answer = await program.tokens(code=back["code"])
        assert answer.status_code == 200, answer.text
        return answer.json()


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Here]:
    async with house(tmp_path) as made:
        yield Here(made)


# ---- the way in


async def test_a_program_learns_at_the_door_how_it_is_let_in(here: Here) -> None:
    program = await here.program()
    answer = await program.listed("")
    assert answer.status_code == 401
    said = answer.headers["www-authenticate"]
    place = f"{AT}/.well-known/oauth-protected-resource/mcp"
    assert said == f'Bearer realm="parlour", scope="search ask", resource_metadata="{place}"'
    resource = (await program.http.get(place)).json()
    assert (resource["resource"], resource["authorization_servers"]) == (f"{AT}/mcp", [AT])
    assert (await program.http.get(f"{AT}/.well-known/oauth-protected-resource")).json() == resource
    server = (await program.http.get(f"{AT}/.well-known/oauth-authorization-server")).json()
    assert (server["issuer"], server["code_challenge_methods_supported"]) == (AT, ["S256"])
    assert server["client_id_metadata_document_supported"] is True
    assert server["authorization_response_iss_parameter_supported"] is True
    assert {server[f"{name}_endpoint"] for name in ("authorization", "token", "registration", "revocation")} == {
        f"{AT}/oauth/{name}" for name in ("authorize", "token", "register", "revoke")
    }


async def test_a_person_lets_a_program_in_for_what_she_chose_and_shuts_it_out_in_the_settings(here: Here) -> None:
    program, person = await here.program(), await here.person("Mara")
    page = await person.get(f"/oauth/authorize?{program.asking()}")
    for words in ("Let Editor in?", "a program on this computer", "Mara", "10.0.0.5:7860", "ask your assistant"):
        assert words in page.text
    given = await here.let_in(program, person, scopes=("search",))
    assert (given["token_type"], given["expires_in"], given["scope"]) == ("Bearer", 3600, "search")
    tools = (await program.listed(given["access_token"])).json()["result"]["tools"]
    assert [tool["name"] for tool in tools] == ["search_library"]
    (listed,) = (await person.get("/preferences/page")).json()["keys"]
    assert (listed["name"], listed["shown"]) == ("Editor", "127.0.0.1")
    assert listed["may"] == "let in over MCP: may search your libraries"
    assert (await person.post("/keys/revoke", json={"id": listed["id"]})).status_code == 200
    assert (await program.listed(given["access_token"])).status_code == 401
    assert (await program.renewed(given["refresh_token"])).json()["error"] == "invalid_grant"


async def test_the_page_speaks_chinese_to_who_reads_it(here: Here) -> None:
    program, person = await here.program(), await here.person("Mara")
    page = await person.get(f"/oauth/authorize?{program.asking()}", headers={"accept-language": "zh"})
    assert "允许 Editor 进入？" in page.text
    assert "这台电脑上的程序" in page.text


async def test_who_refuses_sends_the_program_back_with_that(here: Here) -> None:
    program, person = await here.program(), await here.person("Mara")
    answer = await said_yes(person, f"/oauth/authorize?{program.asking()}", answer="no")
    assert answer.headers["location"].startswith(f"{BACK}?")
    back = told(answer)
    assert (back["error"], back["state"], back["iss"]) == ("access_denied", "a state", AT)
    assert (await person.get("/preferences/page")).json()["keys"] == []


async def test_who_is_not_signed_in_is_asked_after_that(here: Here) -> None:
    await here.house.owner("Jan")
    program, browser = await here.program(), here.browser()
    asked = f"/oauth/authorize?{program.asking()}"
    sent_away = await browser.get(asked, headers={"accept": "text/html"})
    assert (sent_away.status_code, sent_away.headers["location"]) == (303, "../sign-in")
    signed_in = await browser.post("/sign-in", data={"name": "Jan", "password": GOOD})
    assert signed_in.headers["location"] == f".{asked}"
    assert told(await said_yes(browser, asked))["iss"] == AT
    again = await browser.post("/sign-in", data={"name": "Jan", "password": GOOD})
    assert again.headers["location"] == "./", "once"


async def test_what_a_browser_keeps_meanwhile_leads_nowhere_else(here: Here) -> None:
    await here.house.owner("Jan")
    for planted in ("https://evil.example", "//evil.example", "\r\nlocation: https://evil.example", "x y", "ä"):
        browser = here.browser()
        name = f"{Cookies('key').name}-then"
        browser.cookies.set(name, urlsafe_b64encode(planted.encode("latin-1")).decode())
        answer = await browser.post("/sign-in", data={"name": "Jan", "password": GOOD})
        place = answer.headers["location"]
        assert place == "./" or place.startswith("./oauth/authorize?"), place


async def test_tokens_are_renewed_and_the_one_before_ends_all_when_it_comes_again(here: Here) -> None:
    program, person = await here.program(), await here.person("Mara")
    given = await here.let_in(program, person)
    fresh = (await program.renewed(given["refresh_token"])).json()
    assert (await program.listed(fresh["access_token"])).status_code == 200
    less = (await program.renewed(fresh["refresh_token"], scope="search")).json()
    assert less["scope"] == "search"
    stolen = await program.renewed(given["refresh_token"])
    assert (stolen.status_code, stolen.json()["error"]) == (400, "invalid_grant")
    assert (await program.listed(less["access_token"])).status_code == 401
    assert (await program.renewed(less["refresh_token"])).json()["error"] == "invalid_grant"


async def test_a_program_may_say_that_it_is_over(here: Here) -> None:
    program, person = await here.program(), await here.person("Mara")
    for name in ("access_token", "refresh_token"):
        given = await here.let_in(program, person)
        other = await here.program(client_name="Other")
        revoking = {"token": given[name]}
        for who in (other, program):
            answer = await who.http.post(f"{AT}/oauth/revoke", data={**revoking, "client_id": who.id})
            assert answer.status_code == 200
            assert (await program.listed(given["access_token"])).status_code == (200 if who is other else 401)


async def test_a_program_with_a_secret_needs_it(here: Here) -> None:
    person = await here.person("Mara")
    for method in ("client_secret_post", "client_secret_basic"):
        program = await here.program(token_endpoint_auth_method=method)
        code = told(await said_yes(person, f"/oauth/authorize?{program.asking()}"))["code"]
        for wrong in (None, "", "wrong"):
            answer = await program.tokens(code=code, client_secret=wrong)
            assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client")
        if method == "client_secret_post":
            answer = await program.tokens(code=code, client_secret=program.secret)
        else:
            form = {"grant_type": "authorization_code", "code": code, "redirect_uri": BACK}
            form |= {"code_verifier": program.verifier}
            answer = await program.http.post(f"{AT}/oauth/token", data=form, auth=(program.id, program.secret))
        assert answer.status_code == 200, answer.text


# ---- what it may then


async def test_a_tool_that_it_was_not_let_in_for_wants_more(here: Here) -> None:
    program, person = await here.program(), await here.person("Mara")
    given = await here.let_in(program, person, scopes=("search",))
    answer = await program.at_the_door("tools/call", given["access_token"], name="ask", arguments={"question": "Why?"})
    assert answer.status_code == 403
    said = answer.headers["www-authenticate"]
    assert 'error="insufficient_scope"' in said
    assert 'scope="ask"' in said


async def test_what_it_asks_counts_as_the_persons_and_her_limits_hold(tmp_path: Path) -> None:
    async with house(tmp_path, messages_per_day=(200, 1)) as made:
        here = Here(made)
        program, person = await here.program(), await here.person("Mara")
        token = (await here.let_in(program, person))["access_token"]
        question = {"name": "ask", "arguments": {"question": "Why?"}}
        first = (await program.at_the_door("tools/call", token, **question)).json()["result"]
        assert first["content"][0]["text"] == "Yes."
        async with asyncio.timeout(20):
            while not (await person.get("/preferences/page")).json()["keys"][0]["requests"]:
                await asyncio.sleep(0.01)
        second = (await program.at_the_door("tools/call", token, **question)).json()["result"]
        assert second["isError"] is True
        assert "today" in second["content"][0]["text"] or "limit" in second["content"][0]["text"].lower()


async def test_a_person_who_may_no_more_has_no_programs_either(here: Here) -> None:
    owner = await here.house.owner("Jan")
    program, person = await here.program(), await here.person("Mara")
    token = (await here.let_in(program, person))["access_token"]
    who = await here.house.id_of(person)
    await owner.post("/people/role", data={"person": who, "role": "guest"})
    assert (await program.listed(token)).status_code == 401
    refused = await person.get(f"/oauth/authorize?{program.asking()}", headers={"accept": "text/html"})
    assert refused.status_code == 403


# ---- attacks


async def test_nobody_is_sent_to_an_address_that_the_program_did_not_name(here: Here) -> None:
    program, person = await here.program(), await here.person("Mara")
    for evil in ("https://evil.example/", "http://127.0.0.1.evil.example/back", f"{BACK}/x", f"{BACK}?x=1"):
        for more in ({}, {"response_type": "token"}, {"scope": "root"}):
            answer = await person.get(f"/oauth/authorize?{program.asking(redirect_uri=evil, **more)}")
            assert answer.status_code == 400
            assert "location" not in answer.headers
            assert urlsplit(evil).netloc not in answer.text
    twice = f"{program.asking()}&{urlencode({'redirect_uri': 'https://evil.example/'})}"
    assert (await person.get(f"/oauth/authorize?{twice}")).status_code == 400


@pytest.mark.parametrize(
    "back", ["https://App.Example", "https://app.example:443/Back?to=%7E", "com.Example.App:/back"]
)
async def test_an_address_is_compared_and_led_back_to_letter_by_letter_as_the_program_named_it(
    here: Here, back: str
) -> None:
    program, person = await here.program(redirect_uris=[back]), await here.person("Mara")
    answer = await said_yes(person, f"/oauth/authorize?{program.asking(redirect_uri=back)}")
    assert answer.status_code == 303, answer.text
    assert answer.headers["location"].startswith(back)
    got = await program.tokens(code=told(answer)["code"], redirect_uri=back)
    assert got.status_code == 200, got.text
    other = back.swapcase() if back.swapcase() != back else f"{back}/"
    assert (await person.get(f"/oauth/authorize?{program.asking(redirect_uri=other)}")).status_code == 400


async def test_what_is_wrong_is_told_on_a_page_and_leads_nowhere_by_itself(here: Here) -> None:
    program = await here.program(redirect_uris=["https://evil.example/phish"])
    person = await here.person("Mara")
    asked = program.asking(redirect_uri="https://evil.example/phish", code_challenge_method="plain")
    answer = await person.get(f"/oauth/authorize?{asked}")
    assert (answer.status_code, "location" in answer.headers) == (400, False)
    assert "(invalid_request)" in answer.text
    assert 'href="https://evil.example/phish?error=invalid_request' in answer.text, "the person may go there, knowing"


async def test_no_weaker_way_is_taken(here: Here) -> None:
    program, person = await here.program(), await here.person("Mara")
    weaker: tuple[dict[str, str | None], ...] = (
        *({"code_challenge": None}, {"code_challenge_method": None}, {"code_challenge_method": "plain"}),
        *({"code_challenge": "short"}, {"response_type": "token"}, {"response_type": None}, {"scope": "root"}),
        *({"resource": "https://other.example/mcp"}, {"resource": f"{AT}/v1"}),
    )
    for one in weaker:
        answer = await person.get(f"/oauth/authorize?{program.asking(**one)}")
        assert (answer.status_code, "ticket" in answer.text) == (400, False), one


async def test_a_code_counts_once_for_who_began_and_at_the_address_it_was_for(here: Here) -> None:
    program, person = await here.program(), await here.person("Mara")
    other = await here.program(client_name="Other")
    code = told(await said_yes(person, f"/oauth/authorize?{program.asking()}"))["code"]
    wrong: list[tuple[Program, dict[str, str | None]]] = [
        (program, {"code_verifier": "x" * 43}),
        (program, {"code_verifier": None}),
        (program, {"code_verifier": ""}),
        (program, {"redirect_uri": "http://127.0.0.1:1/back"}),
        (program, {"redirect_uri": None}),
        (program, {"resource": "https://other.example/mcp"}),
        (program, {"grant_type": "password"}),
        (program, {"client_id": ""}),
        (other, {"code_verifier": program.verifier}),
    ]
    for who, form in wrong:
        answer = await who.tokens(**{"code": code, **form})
        assert answer.status_code == 400, (form, answer.text)
        assert "access_token" not in answer.text
    good = await program.tokens(code=code)
    assert good.status_code == 200
    again = await program.tokens(code=code)
    assert (again.status_code, again.json()["error"]) == (400, "invalid_grant")
    assert (await program.listed(good.json()["access_token"])).status_code == 401, "somebody else had the code, too"


async def test_a_token_is_for_one_address_and_one_door(here: Here) -> None:
    program, person = await here.program(), await here.person("Mara")
    given = await here.let_in(program, person)
    elsewhere = Program(program.http, "https://10.0.0.6:7860", program.id)
    assert (await elsewhere.listed(given["access_token"])).status_code == 401
    moved = await elsewhere.renewed(given["refresh_token"])
    assert moved.json()["error"] == "invalid_target"
    headers = {"authorization": f"Bearer {given['access_token']}"}
    assert (await program.http.get(f"{AT}/v1/models", headers=headers)).status_code == 401
    assert (await program.listed(given["refresh_token"])).status_code == 401
    key = (await person.post("/keys/make", json={"name": "key", "scopes": ["chat"]})).json()["key"]
    assert (await program.listed(key)).status_code == 401
    assert (await program.http.post(f"{AT}/mcp?access_token={given['access_token']}")).status_code == 401


async def test_what_is_wrong_with_a_new_key_says_which_field_it_is_about(here: Here) -> None:
    person = await here.person("Mara")
    told = {"name": "key", "scopes": ["chat"]}
    assert (await person.post("/keys/make", json=told)).status_code == 200
    for wrong, field in (({"name": " "}, "name"), ({}, "name"), ({"name": "b", "scopes": []}, "scopes")):
        answer = await person.post("/keys/make", json={**told, **wrong})
        assert answer.json()["failed"]
        assert (answer.status_code >= 400, answer.json()["field"]) == (True, field)


async def test_a_new_key_for_the_small_chat_says_that_no_site_may_show_it_yet(here: Here) -> None:
    person = await here.person("Mara")
    told = {"name": "blog", "scopes": ["embed"], "models": ["scripted"]}
    assert "PARLOUR_EMBED_SITES" in (await person.post("/keys/make", json=told)).json()["note"]
    assert (await person.post("/keys/make", json={"name": "key", "scopes": ["chat"]})).json()["note"] == ""


async def test_every_answer_says_who_gave_it_so_that_none_is_taken_for_anothers(here: Here) -> None:
    program, person = await here.program(), await here.person("Mara")
    for word in ("yes", "no"):
        back = told(await said_yes(person, f"/oauth/authorize?{program.asking()}", answer=word))
        assert (back["iss"], back["state"]) == (AT, "a state")
    at_other = here.browser(at="https://10.0.0.6:7860")
    at_other.cookies.update(person.cookies)
    query = program.asking(resource="https://10.0.0.6:7860/mcp")
    other = await said_yes(at_other, f"/oauth/authorize?{query}")
    assert told(other)["iss"] == "https://10.0.0.6:7860"
    assert (await program.tokens(code=told(other)["code"])).json()["error"] == "invalid_target"


async def test_nobody_agrees_for_another_and_no_other_site_for_anybody(here: Here) -> None:
    program, mara, eve = await here.program(), await here.person("Mara"), await here.person("Eve")
    asked = f"/oauth/authorize?{program.asking()}"
    of_eve = ticket_of((await eve.get(asked)).text)
    for planted in (of_eve, "", "x", of_eve[:-2]):
        assert (await sent(mara, asked, planted)).status_code == 400, "another's question, planted"
    of_mara = ticket_of((await mara.get(asked)).text)
    form = {"ticket": of_mara, "answer": "yes", "scope": ["search"]}
    for origin in ("https://evil.example", "null", "https://10.0.0.5"):
        forged = await mara.post(asked, data=form, headers={"origin": origin})
        assert forged.status_code == 403, origin
    silent = here.browser()
    del silent.headers["origin"]
    silent.cookies.update(mara.cookies)
    assert (await sent(silent, asked, of_mara)).status_code == 403
    again = await here.house.person("Mara Two")
    assert (await sent(again, f"{AT}{asked}", of_mara)).status_code in {400, 403}
    assert (await sent(mara, asked, of_mara, scopes=())).status_code == 400, "nothing was chosen"
    assert (await sent(mara, asked, of_mara, scopes=("root",))).status_code == 400


async def test_the_page_stands_in_no_frame_and_leads_to_the_program_alone(here: Here) -> None:
    program, person = await here.program(), await here.person("Mara")
    page = await person.get(f"/oauth/authorize?{program.asking()}")
    policy = page.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in policy
    assert "form-action 'self' http://127.0.0.1:4711;" in policy
    assert page.headers["x-frame-options"] == "DENY"
    assert page.headers["cache-control"] == "no-store"
    assert "default-src 'none'" in policy
    assert policy.split("'nonce-")[1].split("'")[0] in page.text


async def test_the_page_is_the_same_whatever_the_host_that_it_leads_back_to_is_called(here: Here) -> None:
    back = "https://sandbox.example/back"
    program, person = await here.program(redirect_uris=[back]), await here.person("Mara")
    page = await person.get(f"/oauth/authorize?{program.asking(redirect_uri=back)}")
    policy = page.headers["content-security-policy"]
    assert "form-action 'self' https://sandbox.example;" in policy
    assert policy.split("'nonce-")[1].split("'")[0] in page.text
    assert "{nonce}" not in policy


async def test_a_program_that_leaves_in_mid_sentence_is_no_failure_of_the_server(here: Here) -> None:
    sent_back: list[Any] = []

    async def left() -> Any:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent_back.append(message)

    headers = [(b"host", b"10.0.0.5:7860"), (b"content-type", b"application/x-www-form-urlencoded")]
    for path in ("/oauth/register", "/oauth/token", "/oauth/revoke"):
        asked = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b""}
        scope = {**asked, "scheme": "https", "headers": headers, "client": ("10.0.0.9", 1), "http_version": "1.1"}
        await here.house.app(scope, left, send)
    assert [one["status"] for one in sent_back if one["type"] == "http.response.start"] == [413, 400, 400]


async def test_a_program_that_comes_while_the_database_is_away_is_told_to_come_again(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, person = await here.program(), await here.person("Mara")
    given = await here.let_in(program, person)

    async def away(*told: object) -> Any:
        raise StorageError("The database is away.")

    monkeypatch.setattr(here.house.engine.stores.apps, "find", away)
    answer = await program.listed(given["access_token"])
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    assert "www-authenticate" not in answer.headers, "its token is as good as before"
    assert (await program.renewed(given["refresh_token"])).status_code == 503


async def test_an_address_that_is_written_with_what_cannot_be_seen_is_none_of_the_programs(here: Here) -> None:
    program, person = await here.program(), await here.person("Mara")
    for hidden in (f"{BACK}\t", f" {BACK}", f"{BACK}\r\n"):
        answer = await person.get(f"/oauth/authorize?{program.asking(redirect_uri=hidden)}")
        assert answer.status_code == 400, hidden


async def test_what_a_program_calls_itself_stays_text(here: Here) -> None:
    program = await here.program(client_name="<img src=x onerror=alert(1)>\u202e", redirect_uris=["cursor://a/b"])
    person = await here.person("Mara")
    page = await person.get(f"/oauth/authorize?{program.asking(redirect_uri='cursor://a/b')}")
    assert "<img" not in page.text
    assert "cursor:" in page.text
    assert "form-action 'self' cursor:;" in page.headers["content-security-policy"]


async def test_over_plain_http_nobody_is_let_in_but_within_this_machine(here: Here) -> None:
    plain = "http://10.0.0.5:7860"
    person = await here.house.person("Mara")
    program = await here.program()
    program.base = plain
    assert "resource_metadata" not in (await program.listed("")).headers["www-authenticate"]
    for path in ("oauth-protected-resource", "oauth-protected-resource/mcp", "oauth-authorization-server"):
        assert (await program.http.get(f"{plain}/.well-known/{path}")).status_code == 404
    assert (await person.get(f"/oauth/authorize?{program.asking()}")).status_code == 400
    assert (await program.tokens(code="x")).status_code == 400
    assert (await program.http.post(f"{plain}/oauth/register", json={})).status_code == 400


async def test_a_program_that_says_nothing_sensible_of_itself_is_told_so(here: Here) -> None:
    program = await here.program()
    for said in (
        *(b"", b"[]", b"{}", b"{" * 9000, b"x" * 20_000),
        b'{"redirect_uris": ["javascript:alert(1)"]}',
        b'{"redirect_uris": ["http://evil.example/"]}',
        b'{"redirect_uris": ["https://a.example/"], "token_endpoint_auth_method": "private_key_jwt"}',
        b'{"redirect_uris": ["https://a.example/"], "grant_types": ["password"]}',
    ):
        answer = await program.http.post(f"{AT}/oauth/register", content=said)
        assert answer.status_code in {400, 413}, said[:80]
        assert answer.json()["error"] in {"invalid_client_metadata", "invalid_redirect_uri"}


async def test_whatever_is_sent_for_a_token_is_answered_in_oauths_words(here: Here) -> None:
    program = await here.program()
    kind = {"content-type": "application/x-www-form-urlencoded"}
    bodies = (b"", b"x", b"\xff=\xff", b"grant_type=authorization_code&grant_type=x", b"a" * 20_000)
    for body, path in ((body, path) for body in bodies for path in ("token", "revoke")):
        answer = await program.http.post(f"{AT}/oauth/{path}", content=body, headers=kind)
        assert answer.status_code in {200, 400}, body[:40]
        assert answer.status_code == 200 or "error" in answer.json()
    assert (await program.http.post(f"{AT}/oauth/token", json={})).status_code == 400


async def test_an_address_that_asks_without_end_is_told_to_wait_and_others_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("webui.handlers.apps._A_MINUTE", {"register": 2, "token": 2})
    async with house(tmp_path) as made:
        said = {"client_name": "Editor", "redirect_uris": [BACK], "token_endpoint_auth_method": "none"}
        asked: list[tuple[str, dict[str, Any], int]] = [
            ("/oauth/register", {"json": said}, 201),
            ("/oauth/token", {"data": {"grant_type": "refresh_token", "refresh_token": "none"}}, 400),
        ]
        for path, given, once in asked:
            async with Here(made).browser() as program:
                got = [await program.post(path, **given) for _ in range(3)]
                assert [one.status_code for one in got] == [once, once, 429]
                assert got[2].json()["error"] == "temporarily_unavailable"
                assert int(got[2].headers["retry-after"]) > 0
            transport = httpx.ASGITransport(made.app, client=("10.0.1.1", 1))
            async with httpx.AsyncClient(transport=transport, base_url=AT) as other:
                assert (await other.post(path, **given)).status_code == once
