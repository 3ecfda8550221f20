"""Serper: results of Google."""

from __future__ import annotations

from typing import Any

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

_PLACES = {"zh": {"gl": "cn", "hl": "zh-cn"}, "en": {}}


class Serper(SearchService):
    """https://serper.dev."""

    label = "Serper"
    home = "https://google.serper.dev"
    needs_key = True
    get_a_key = "serper.dev"

    async def pages(self, wanted: SearchRequest) -> list[SearchHit]:
        """Pages."""
        said = await self._asked("search", wanted)
        return [
            SearchHit(text_of(row.get("title")), url, text_of(row.get("snippet")), text_of(row.get("date"), 40))
            for row in rows(said, "organic")
            if (url := address_of(row.get("link")))
        ]

    async def pictures(self, wanted: SearchRequest) -> list[FoundPicture]:
        """Pictures."""
        said = await self._asked("images", wanted)
        return [
            FoundPicture(
                text_of(row.get("title")),
                address_of(row.get("link")),
                image,
                address_of(row.get("thumbnailUrl")),
                (number_of(row.get("imageWidth")), number_of(row.get("imageHeight"))),
            )
            for row in rows(said, "images")
            if (image := address_of(row.get("imageUrl")))
        ]

    async def _asked(self, kind: str, wanted: SearchRequest) -> dict[str, Any]:
        body = {"q": wanted.query, "num": wanted.count, **_PLACES[wanted.lang]}
        key = {"x-api-key": self.account.api_key}
        return await answer_of(self.label, f"{self.address}/{kind}", body=body, headers=key, reach=self.account.reach)
