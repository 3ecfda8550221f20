"""Each search service against a server that answers in its shape: what is asked and understood, what goes wrong."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from core.errors import FetchError, SettingsError, ToolError, UnknownNameError
from core.tools.web.base import FoundPicture, SearchHit, SearchRequest
from core.tools.web.catalog import DEFAULT, SEARCH_SERVICES, service_of

pytestmark = pytest.mark.anyio

KEY = "key-CANARY-4711"
WANTED = SearchRequest("how reactors are cooled", 5)
PAGE = SearchHit("Reactor cooling", "https://energy.example/cooling", "Water carries the heat away & out.")
PATHS = {
    "serper": ("/search", "/images"),
    "tavily": ("/search", "/search"),
    "brave": ("/res/v1/web/search", "/res/v1/images/search"),
    "searxng": ("/search", "/search"),
}
KEYED = ["serper", "tavily", "brave"]
PAGES: dict[str, Any] = {
    "serper": {
        "searchParameters": {"q": WANTED.query, "type": "search", "engine": "google"},
        "organic": [
            {"title": PAGE.title, "link": PAGE.url, "snippet": PAGE.snippet, "position": 1},
            {"title": "Script", "link": "javascript:alert(1)", "snippet": "x", "position": 2},
        ],
        "peopleAlsoAsk": [],
        "credits": 1,
    },
    "tavily": {
        "query": WANTED.query,
        "answer": None,
        "images": [],
        "results": [
            {"title": PAGE.title, "url": PAGE.url, "content": PAGE.snippet, "score": 0.98, "raw_content": None},
            {"title": "Nowhere", "url": None, "content": "x"},
        ],
        "response_time": 1.1,
    },
    "brave": {
        "type": "search",
        "query": {"original": WANTED.query},
        "web": {
            "type": "search",
            "results": [
                {
                    "title": PAGE.title,
                    "url": PAGE.url,
                    "description": "<strong>Water</strong> carries the heat away &amp; out.",
                    "meta_url": {"hostname": "energy.example"},
                },
                "broken",
            ],
        },
    },
    "searxng": {
        "query": WANTED.query,
        "number_of_results": 0,
        "results": [
            {"url": PAGE.url, "title": PAGE.title, "content": PAGE.snippet, "engine": "bing", "score": 1.0},
            {"url": "ftp://files.example/x", "title": "Files", "content": ""},
        ],
        "answers": [],
        "unresponsive_engines": [],
    },
}
PICTURES: dict[str, Any] = {
    "serper": {
        "images": [
            {
                "title": "A tower",
                "imageUrl": "https://pictures.example/tower.jpg",
                "imageWidth": 800,
                "imageHeight": 600,
                "thumbnailUrl": "https://small.example/t.jpg",
                "source": "Pictures",
                "link": "https://pictures.example/page",
            }
        ]
    },
    "tavily": {"results": [], "images": [{"url": "https://pictures.example/tower.jpg", "description": "A tower"}]},
    "brave": {
        "type": "images",
        "results": [
            {
                "title": "A tower",
                "url": "https://pictures.example/page",
                "thumbnail": {"src": "https://small.example/t.jpg"},
                "properties": {"url": "https://pictures.example/tower.jpg", "width": 800, "height": 600},
            }
        ],
    },
    "searxng": {
        "results": [
            {
                "title": "A tower",
                "url": "https://pictures.example/page",
                "img_src": "//pictures.example/tower.jpg",
                "thumbnail_src": "https://small.example/t.jpg",
                "resolution": "800 x 600",
            }
        ]
    },
}

services = pytest.mark.parametrize("name", sorted(PATHS))


def made(name: str, address: str, **more: Any) -> Any:
    return service_of({"provider": name, "base_url": address, "api_key": KEY, "own_network": True, **more})


@services
async def test_pages_are_found_in_the_shape_of_each_service(service: Any, name: str) -> None:
    service.says(PATHS[name][0], PAGES[name])
    assert await made(name, service.address).pages(WANTED) == [PAGE]
    (request,) = service.requests
    asked = request.body or request.query
    assert WANTED.query in asked.values()
    assert KEY in str(request.headers)
    assert KEY not in str(asked)


@services
async def test_pictures_are_found_in_the_shape_of_each_service(service: Any, name: str) -> None:
    service.says(PATHS[name][1], PICTURES[name])
    (picture,) = await made(name, service.address).pictures(WANTED)
    assert isinstance(picture, FoundPicture)
    assert (picture.title, picture.image) == ("A tower", "https://pictures.example/tower.jpg")
    if name != "tavily":  # which names neither page nor size
        assert (picture.page, picture.size) == ("https://pictures.example/page", (800, 600))
        assert picture.thumbnail == "https://small.example/t.jpg"


@services
@pytest.mark.parametrize(
    ("status", "said"),
    [
        (401, "refuses the key"),
        (402, "no searches left"),
        (429, "too often"),
        (500, "out of order"),
        (302, "refuses the request"),
        (400, "refuses the request"),
    ],
)
async def test_a_refusal_is_one_sentence_and_never_says_the_key_again(
    service: Any, name: str, status: int, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    elsewhere = f"{service.address}/elsewhere"
    service.says(PATHS[name][0], {"error": f"bad key {KEY}"}, status=status, location=elsewhere, retry_after="30")
    with pytest.raises(ToolError, match=said) as caught:
        await made(name, service.address).pages(WANTED)
    assert KEY not in f"{caught.value!r} {caught.value} {caught.value.details} {caplog.text}"
    assert caught.value.hint
    assert len(service.requests) == 1  # the key goes along with no redirect
    if status == 429:
        assert "30 seconds" in caught.value.hint


@services
@pytest.mark.parametrize("body", [b"<html>Sign in</html>", b"[1, 2]", b"", b"[" * 100_000])
async def test_an_answer_that_is_none_is_one_sentence(service: Any, name: str, body: bytes) -> None:
    service.says(PATHS[name][0], body, content_type="text/html")
    with pytest.raises(ToolError, match="cannot be read"):
        await made(name, service.address).pages(WANTED)


@services
@pytest.mark.parametrize("body", [{}, {"results": None, "organic": {}, "web": []}, {"results": [1], "organic": [None]}])
async def test_an_answer_without_results_finds_nothing(service: Any, name: str, body: Any) -> None:
    service.says(PATHS[name][0], body)
    assert await made(name, service.address).pages(WANTED) == []


@services
async def test_nobody_there_is_one_sentence(name: str) -> None:
    with pytest.raises(FetchError, match="cannot be reached"):
        await made(name, "http://127.0.0.1:9").pages(WANTED)


@services
async def test_s9_a_server_of_the_own_network_is_asked_only_where_its_owner_says_so(service: Any, name: str) -> None:
    service.says(PATHS[name][0], PAGES[name])
    cfg = {"provider": name, "base_url": service.address, "api_key": KEY}
    for unsaid in (cfg, {**cfg, "own_network": False}):
        with pytest.raises(ToolError, match="own_network"):
            await service_of(unsaid).pages(WANTED)
    assert service.requests == []


@pytest.mark.parametrize("name", KEYED)
def test_without_a_key_it_is_said_where_to_get_one(name: str) -> None:
    with pytest.raises(SettingsError, match="needs a key") as caught:
        service_of({"provider": name})
    assert "." in caught.value.hint


def test_searxng_needs_the_address_of_its_server() -> None:
    with pytest.raises(SettingsError, match="address of a server"):
        service_of({"provider": "searxng"})


async def test_searxng_that_gives_no_json_is_told_what_to_change(service: Any) -> None:
    service.says("/search", b"Forbidden", status=403)
    with pytest.raises(ToolError, match=r"search\.formats"):
        await made("searxng", service.address, api_key="").pages(WANTED)


def test_a_key_that_no_request_can_carry_is_refused_without_being_shown() -> None:
    for key in ("schlüssel-geheim", "two\nlines"):
        with pytest.raises(SettingsError) as caught:
            service_of({"provider": "serper", "api_key": key})
        assert key[:8] not in str(caught.value)


def test_an_unknown_service_names_the_near_ones() -> None:
    with pytest.raises(UnknownNameError, match="serper"):
        service_of({"provider": "serpr"})
    assert set(SEARCH_SERVICES) == {DEFAULT, *PATHS}


def test_the_free_one_needs_nothing() -> None:
    assert service_of({}).label == "The free web search"


def test_an_account_shows_no_key() -> None:
    assert KEY not in repr(service_of({"provider": "serper", "api_key": KEY}).account)
