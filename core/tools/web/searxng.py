"""SearXNG: a server that somebody runs, which asks other search engines."""

from __future__ import annotations

from typing import Any

from core.errors import ToolError
from core.tools.web.base import (
    FoundPicture,
    SearchHit,
    SearchRequest,
    SearchService,
    address_of,
    asked,
    number_of,
    object_of,
    refusal,
    rows,
    text_of,
)

_LANGUAGES = {"en": "en", "zh": "zh-CN"}


class SearXNG(SearchService):
    """https://docs.searxng.org; its address is the server's, without `/search`."""

    label = "SearXNG"

    async def pages(self, wanted: SearchRequest) -> list[SearchHit]:
        """Pages."""
        said = await self._asked("general", wanted)
        return [
            SearchHit(
                text_of(row.get("title")), url, text_of(row.get("content")), text_of(row.get("publishedDate"), 10)
            )
            for row in rows(said, "results")
            if (url := address_of(row.get("url")))
        ]

    async def pictures(self, wanted: SearchRequest) -> list[FoundPicture]:
        """Pictures."""
        said = await self._asked("images", wanted)
        found: list[FoundPicture] = []
        for row in rows(said, "results"):
            if image := address_of(_whole(row.get("img_src"))):
                sides = str(row.get("resolution") or "").replace("×", "x").partition("x")
                size = (number_of(sides[0].strip()), number_of(sides[2].strip().partition(" ")[0]))
                thumbnail = address_of(_whole(row.get("thumbnail_src")))
                found.append(
                    FoundPicture(text_of(row.get("title")), address_of(row.get("url")), image, thumbnail, size)
                )
        return found

    async def _asked(self, category: str, wanted: SearchRequest) -> dict[str, Any]:
        query = {
            "q": wanted.query,
            "format": "json",
            "categories": category,
            "language": _LANGUAGES[wanted.lang],
            "safesearch": "1",
        }
        headers = {"authorization": f"Bearer {self.account.api_key}"} if self.account.api_key else {}
        url, reach = f"{self.address}/search", self.account.reach
        answer = await asked(self.label, url, query=query, headers=headers, reach=reach)
        if answer.status == 403 and not self.account.api_key:
            raise ToolError(
                "The SearXNG server does not give out results as JSON (status 403).",
                hint="Add json to search.formats in its settings.yml.",
            )
        if answer.status != 200:
            raise refusal(self.label, answer)
        return object_of(self.label, answer)


def _whole(address: object) -> object:
    """An address without its scheme gets one."""
    return f"https:{address}" if isinstance(address, str) and address.startswith("//") else address
