"""Brave Search: an index of its own."""

from __future__ import annotations

from typing import Any, cast

from core.tools.web.base import (
    FoundPicture,
    SearchHit,
    SearchRequest,
    SearchService,
    address_of,
    answer_of,
    number_of,
    rows,
    text_of,
)

_LONGEST_QUERY = 400
_MOST_WORDS = 50
_LANGUAGES = {"en": {}, "zh": {"search_lang": "zh-hans"}}


class Brave(SearchService):
    """https://brave.com/search/api."""

    label = "Brave Search"
    home = "https://api.search.brave.com"
    needs_key = True
    get_a_key = "api-dashboard.search.brave.com"

    async def pages(self, wanted: SearchRequest) -> list[SearchHit]:
        """Pages."""
        said = await self._asked("web", wanted)
        return [
            SearchHit(text_of(row.get("title")), url, text_of(row.get("description")), text_of(row.get("age"), 40))
            for row in rows(said, "web", "results")
            if (url := address_of(row.get("url")))
        ]

    async def pictures(self, wanted: SearchRequest) -> list[FoundPicture]:
        """Pictures; those that its own filter lets through."""
        said = await self._asked("images", wanted)
        found: list[FoundPicture] = []
        for row in rows(said, "results"):
            about, small = _object(row.get("properties")), _object(row.get("thumbnail"))
            thumbnail = address_of(small.get("src"))
            image = address_of(about.get("url")) or thumbnail
            size = (number_of(about.get("width")), number_of(about.get("height")))
            if image:
                found.append(
                    FoundPicture(text_of(row.get("title")), address_of(row.get("url")), image, thumbnail, size)
                )
        return found

    async def _asked(self, kind: str, wanted: SearchRequest) -> dict[str, Any]:
        short = " ".join(wanted.query.split()[:_MOST_WORDS])[:_LONGEST_QUERY]
        query = {"q": short, "count": str(min(wanted.count, 20)), **_LANGUAGES[wanted.lang]}
        headers = {"x-subscription-token": self.account.api_key, "cache-control": "no-cache"}
        url = f"{self.address}/res/v1/{kind}/search"
        return await answer_of(self.label, url, query=query, headers=headers, reach=self.account.reach)


def _object(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
