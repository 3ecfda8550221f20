"""The search that needs no key: the real package, with engines that ask a server on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest
from ddgs.base import BaseSearchEngine
from ddgs.exceptions import DDGSException, RatelimitException, TimeoutException
from ddgs.results import ImagesResult, TextResult

from core.errors import ToolError
from core.tools.web.base import SearchHit, SearchRequest
from core.tools.web.catalog import service_of

pytestmark = pytest.mark.anyio

WANTED = SearchRequest("reactor cooling", 3)


class _Engine(BaseSearchEngine[Any]):
    """An engine as the package has them, at an address of this machine."""

    name = "here"
    provider = "here"
    search_method = "GET"
    items_xpath = "//li"
    elements_xpath: ClassVar[Mapping[str, str]] = {
        "title": ".//a//text()",
        "href": ".//a/@href",
        "body": ".//p//text()",
    }

    def build_payload(
        self, query: str, region: str, safesearch: str, timelimit: str | None, page: int = 1, **kwargs: str
    ) -> dict[str, Any]:
        return {"q": query}


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch, service: Any) -> type[_Engine]:
    import ddgs.ddgs

    class Here(_Engine):
        category = "text"
        search_url = f"{service.address}/html"

    class Pictures(_Engine):
        category = "images"
        search_url = f"{service.address}/html"
        elements_xpath: ClassVar[Mapping[str, str]] = {
            "title": ".//a//text()",
            "image": ".//a/@href",
            "url": ".//p//text()",
        }

        @property
        def result_type(self) -> type[ImagesResult]:
            return ImagesResult

    monkeypatch.setattr(ddgs.ddgs, "ENGINES", {"text": {"here": Here}, "images": {"here": Pictures}})
    return Here


async def test_pages_come_from_the_engines_of_the_package(service: Any, engine: type[_Engine]) -> None:
    assert TextResult  # the package's own kind of result
    page = b"<ul><li><a href='https://a.example/x'>Reactor cooling</a><p>Water &amp; heat</p></li></ul>"
    service.says("/html", page, content_type="text/html")
    assert await service_of({}).pages(WANTED) == [SearchHit("Reactor cooling", "https://a.example/x", "Water & heat")]
    assert service.requests[0].query == {"q": "reactor cooling"}


async def test_pictures_too(service: Any, engine: type[_Engine]) -> None:
    page = b"<ul><li><a href='https://a.example/x.png'>Reactor cooling</a><p>https://a.example/page</p></li></ul>"
    service.says("/html", page, content_type="text/html")
    (picture,) = await service_of({}).pictures(WANTED)
    assert (picture.image, picture.page) == ("https://a.example/x.png", "https://a.example/page")


async def test_nothing_found_is_no_error(service: Any, engine: type[_Engine]) -> None:
    service.says("/html", b"<ul></ul>", content_type="text/html")
    assert await service_of({}).pages(WANTED) == []


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (TimeoutException("timed out"), "can be reached"),
        (RatelimitException("202"), "too often"),
        (DDGSException("ConnectError: dns"), "can be reached"),
    ],
)
async def test_what_goes_wrong_is_one_sentence(monkeypatch: pytest.MonkeyPatch, error: Exception, said: str) -> None:
    import ddgs

    def raising(*_args: Any, **_more: Any) -> None:
        raise error

    monkeypatch.setattr(ddgs.DDGS, "text", raising, raising=False)
    with pytest.raises(ToolError, match=said):
        await service_of({}).pages(WANTED)
