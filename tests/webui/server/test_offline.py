"""The service worker: small, in its reader's language, for whoever is let in, and under policies of its own."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from contextlib import closing
from hashlib import sha256

import httpx
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from tests.e2e.app_process import AppProcess
from webui.middleware.headers import HeadersMiddleware
from webui.offline import offline_routes
from webui.words import LANGUAGES, Words, sentences

MOST_BYTES = 8 * 1024


@pytest.fixture
def client() -> TestClient:
    return TestClient(HeadersMiddleware(Starlette(routes=offline_routes())))


def held(worker: str) -> tuple[str, dict[str, str]]:
    """The page that the worker holds, and its headers."""
    found = [re.search(rf"^const {name} = (.*);$", worker, re.MULTILINE) for name in ("PAGE", "HEADERS")]
    page, headers = (json.loads(one[1]) for one in found if one is not None)
    return page, headers


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_page_is_in_the_language_that_is_asked_for(client: TestClient, lang: str) -> None:
    page, _ = held(client.get(f"/offline.js?lang={lang}").text)
    assert f'<html lang="{Words(lang)("lang.tag")}">' in page
    for key in ("title", "say", "now", "trying", "none"):
        assert sentences(lang)[f"offline.{key}"] in page


@pytest.mark.parametrize("asked", ["", "?lang=", "?lang=xx", "?lang=../en", "?lang=en%22", "?lang=" + "z" * 5000])
def test_for_any_other_language_it_is_in_english(client: TestClient, asked: str) -> None:
    assert client.get(f"/offline.js{asked}").text == client.get("/offline.js?lang=en").text


@pytest.mark.parametrize("lang", LANGUAGES)
def test_it_weighs_little_and_is_sent_again_only_where_it_changed(client: TestClient, lang: str) -> None:
    first = client.get(f"/offline.js?lang={lang}")
    assert 1000 < len(first.content) <= MOST_BYTES
    assert first.headers["cache-control"] == "no-cache"
    again = client.get(f"/offline.js?lang={lang}", headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_the_page_runs_its_own_script_alone_and_loads_nothing(client: TestClient) -> None:
    page, headers = held(client.get("/offline.js").text)
    [script] = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    fingerprint = b64encode(sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{fingerprint}';" in headers["content-security-policy"]
    assert headers["content-security-policy"].startswith("default-src 'none';")
    assert re.findall(r"""(?:src|href)="(?!data:)[^"]*\"""", page) == []


def test_the_worker_may_ask_parlour_alone_and_is_no_document(client: TestClient) -> None:
    headers = client.get("/offline.js").headers
    assert headers["content-security-policy"] == "default-src 'none'; connect-src 'self'"
    assert headers["content-type"].startswith("text/javascript")
    assert headers["x-content-type-options"] == "nosniff"


def test_where_a_token_is_asked_for_nobody_gets_it_without(app: AppProcess) -> None:
    assert httpx.get(f"{app.url}/offline.js").status_code == 401
    with closing(app.client()) as reader:
        assert "const PAGE" in reader.get("/offline.js?lang=zh").text
        assert reader.get("/offline.js/x").status_code == 404
