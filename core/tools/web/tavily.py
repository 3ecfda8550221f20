"""Tavily: a search service made for models."""

from __future__ import annotations

from typing import Any

from core.tools.web.base import (
    FoundPicture,
    SearchHit,
    SearchRequest,
    SearchService,
    address_of,
    answer_of,
    rows,
    text_of,
)

_LONGEST_QUERY = 400


class Tavily(SearchService):
    """https://tavily.com."""

    label = "Tavily"
    home = "https://api.tavily.com"
    needs_key = True
    get_a_key = "app.tavily.com"

    async def pages(self, wanted: SearchRequest) -> list[SearchHit]:
        """Pages; its snippets are longer than others'."""
        said = await self._asked(wanted)
        return [
            SearchHit(
                text_of(row.get("title")), url, text_of(row.get("content")), text_of(row.get("published_date"), 40)
            )
            for row in rows(said, "results")
            if (url := address_of(row.get("url")))
        ]

    async def pictures(self, wanted: SearchRequest) -> list[FoundPicture]:
        """Pictures that stand on the pages found."""
        said = await self._asked(wanted, include_images=True, include_image_descriptions=True)
        listed: list[Any] = said.get("images") if isinstance(said.get("images"), list) else []  # pyright: ignore[reportAssignmentType]
        plain = [{"url": one} for one in listed if isinstance(one, str)]
        return [
            FoundPicture(text_of(row.get("description"), 200), "", image)
            for row in [*plain, *rows(said, "images")]
            if (image := address_of(row.get("url")))
        ]

    async def _asked(self, wanted: SearchRequest, **more: Any) -> dict[str, Any]:
        body = {"query": wanted.query[:_LONGEST_QUERY], "max_results": min(wanted.count, 20), **more}
        key = {"authorization": f"Bearer {self.account.api_key}"}
        return await answer_of(self.label, f"{self.address}/search", body=body, headers=key, reach=self.account.reach)
