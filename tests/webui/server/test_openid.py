"""Signing in by another service: only what this browser began, from the service that was asked, lets anybody in."""

from __future__ import annotations

import time
import warnings
from collections.abc import AsyncIterator, Iterator
from importlib import import_module
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from core.errors import ParlourError
from core.people.openid import Begun, OpenId
from tests.webui.server.people_app import House, house

with warnings.catch_warnings():
    import_module("authlib.deprecate")  # shows its warnings whatever was said before
    warnings.simplefilter("ignore")
    from oidc_provider_mock import User, run_server_in_thread

pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


@pytest.fixture(scope="module")
def service() -> Iterator[str]:
    user = User(sub="mara-1", claims={"name": "Mara Lindqvist"})
    with run_server_in_thread(user_claims=[user]) as server:
        yield f"http://localhost:{server.server_port}"


@pytest.fixture
async def here(tmp_path: Path, service: str) -> AsyncIterator[House]:
    given = {"oidc_issuer": service, "oidc_client_id": "parlour", "oidc_client_secret": "a secret"}
    async with house(tmp_path, guests=True, **given) as made:
        yield made


async def sent(client: httpx.AsyncClient, link: str = "") -> str:
    """The address of the service that a browser is sent to."""
    answer = await client.get(f"/sign-in/openid{f'?link={link}' if link else ''}")
    assert answer.status_code == 303, answer.text
    return answer.headers["location"]


async def agreed(address: str, sub: str = "mara-1") -> str:
    """What the service sends the browser back with, after somebody agreed there."""
    async with httpx.AsyncClient() as browser:
        answer = await browser.post(address, data={"sub": sub})
    return urlsplit(answer.headers["location"]).query


async def back(client: httpx.AsyncClient, query: str) -> httpx.Response:
    return await client.get(f"/login/callback?{query}")


async def test_who_was_invited_comes_in_by_the_service_and_again_without_the_link(here: House) -> None:
    await here.owner()
    token = await here.engine.people.invite(None, "member")
    first = here.browser()
    address = await sent(first, token)
    asked = parse_qs(urlsplit(address).query)
    assert asked["code_challenge_method"] == ["S256"]
    assert {"state", "nonce", "code_challenge"} <= set(asked)
    answer = await back(first, await agreed(address))
    assert (answer.status_code, answer.headers["location"]) == (303, "../")
    who = await here.id_of(first)
    assert [one.name for one in await here.engine.people.store.list()] == ["Jan", "Mara Lindqvist"]
    again = here.browser()
    await back(again, await agreed(await sent(again)))
    assert await here.id_of(again) == who
    other = here.browser()
    assert (await back(other, await agreed(await sent(other, token), "eve-1"))).status_code == 404
    uninvited = await back(other, await agreed(await sent(other), "eve-1"))
    assert (uninvited.status_code, "Nobody here has this account" in uninvited.text) == (400, True)


async def test_an_answer_that_this_browser_did_not_begin_signs_nobody_in(here: House) -> None:
    await here.owner()
    token = await here.engine.people.invite(None, "member")
    attacker, victim = here.browser(), here.browser()
    query = await agreed(await sent(attacker, token))
    assert (await back(victim, query)).status_code == 400, "another's answer, planted"
    await sent(victim)
    assert (await back(victim, query)).status_code == 400, "beside a sign-in of one's own"
    assert (await back(attacker, f"{query}&iss=https://evil.example")).status_code == 400, "from another service"
    assert (await back(attacker, query)).status_code == 400, "what was begun counts once"
    for broken in ("", "state=&code=", "code=x&state=x", "error=access_denied"):
        fresh = here.browser()
        await sent(fresh)
        assert (await back(fresh, broken)).status_code == 400
    assert len(await here.engine.people.store.list()) == 1


async def test_an_answer_of_another_sign_in_is_refused_before_the_service_is_asked(service: str) -> None:
    known = OpenId(service, "parlour", "a secret")
    address, begun = await known.begin("http://10.0.0.5/login/callback")
    _, other = await known.begin("http://10.0.0.5/login/callback")
    query = {name: values[0] for name, values in parse_qs(await agreed(address)).items()}
    with pytest.raises(ParlourError) as refused:
        await known.finish(query, other)
    assert refused.value.words_key == "openid_stale"
    assert (await known.finish(query, begun)).name, "the code was not spent"


async def test_a_code_a_verifier_or_a_nonce_of_another_sign_in_does_not_hold(service: str) -> None:
    known = OpenId(service, "parlour", "a secret")
    address, begun = await known.begin("http://10.0.0.5/login/callback")
    query = {name: values[0] for name, values in parse_qs(await agreed(address)).items()}
    wrong = Begun(begun.state, "another nonce", begun.verifier, begun.back, "", time.time())
    with pytest.raises(ParlourError) as refused:
        await known.finish(query, wrong)
    assert refused.value.words_key == "openid_wrong"
    late = Begun(begun.state, begun.nonce, begun.verifier, begun.back, "", time.time() - 601)
    with pytest.raises(ParlourError) as refused:
        await known.finish(query, late)
    assert refused.value.words_key == "openid_stale"
    for issuer, key in ((f"{service}/", "openid_wrong"), ("http://127.0.0.1:9", "openid_away")):
        with pytest.raises(ParlourError) as refused:
            await OpenId(issuer, "parlour", "a secret").begin("http://10.0.0.5/login/callback")
        assert refused.value.words_key == key


async def test_below_a_path_the_service_leads_back_below_it(tmp_path: Path, service: str) -> None:
    given = {"oidc_issuer": service, "oidc_client_id": "parlour", "oidc_client_secret": "a secret"}
    async with house(tmp_path, root_path="/chat", **given) as here:
        asked = parse_qs(urlsplit(await sent(here.browser())).query)
        assert asked["redirect_uri"] == ["http://10.0.0.5:7860/chat/login/callback"]
