"""What every search service in the catalog promises, whatever is sent to it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import ddgs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from core.errors import SettingsError, ToolError
from core.net.service import Answer
from core.tools.web import base as answers
from core.tools.web.base import FoundPicture, SearchHit, SearchRequest
from core.tools.web.catalog import DEFAULT, SEARCH_SERVICES, service_of
from tests.tries import tries

names = pytest.mark.parametrize("name", sorted(SEARCH_SERVICES))
KEYS = """results organic images web title link url snippet content description date age publishedDate published_date
    imageUrl thumbnailUrl imageWidth imageHeight properties thumbnail src img_src thumbnail_src resolution href body
    image width height"""
VALUES = some.recursive(
    some.none()
    | some.booleans()
    | some.integers()
    | some.floats()
    | some.text(max_size=20)
    | some.sampled_from(["https://a.example/x", "javascript:alert(1)", "http://[", "//x", "<b>bold</b>", "\ud83d"]),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.sampled_from(KEYS.split()), inner, max_size=6),
    max_leaves=30,
)


@names
def test_it_has_a_label_and_says_what_it_needs(name: str) -> None:
    service = SEARCH_SERVICES[name]
    assert service.label
    assert not service.needs_key or service.get_a_key
    if service.needs_key or not service.home:
        with pytest.raises(SettingsError) as caught:
            service_of({"provider": name})
        assert service.label in str(caught.value)
        assert caught.value.hint
    assert service_of({"provider": name, "api_key": "k", "base_url": "https://a.example/"}).account.base_url[-1] != "/"


def test_the_one_that_is_used_where_nothing_is_said_needs_nothing() -> None:
    assert not SEARCH_SERVICES[DEFAULT].needs_key
    service_of({})


@names
@settings(deadline=None, max_examples=tries(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(said=VALUES)
def test_whatever_is_answered_becomes_results_or_one_sentence(
    name: str, said: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def answered(*_args: Any, **_more: Any) -> Answer:
        return Answer("a.example", 200, None, json.dumps(said).encode())

    rows = [row for row in said if isinstance(row, dict)] if isinstance(said, list) else []
    monkeypatch.setattr(answers, "ask", answered)
    for kind in ("text", "images"):
        monkeypatch.setattr(ddgs.DDGS, kind, lambda *_args, **_more: rows, raising=False)
    service = service_of({"provider": name, "api_key": "k", "base_url": "https://a.example"})
    wanted = SearchRequest("anything", 5, "zh")
    for ask, kind in ((service.pages, SearchHit), (service.pictures, FoundPicture)):
        try:
            found: Any = asyncio.run(ask(wanted))
        except ToolError:
            continue
        assert all(isinstance(one, kind) for one in found)
        addresses = [one.url if kind is SearchHit else one.image for one in found]
        assert all(address.startswith(("http://", "https://")) for address in addresses)
        assert all("<" not in one.title and one.title.isprintable() for one in found)
