"""Searching without a key: the package `ddgs` asks several public search engines and mixes what they find."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import Any

from core.errors import ToolError, extra_for
from core.tools.web.base import FoundPicture, SearchHit, SearchRequest, SearchService, address_of, number_of, text_of

_SECONDS = 5  # for each engine; several are asked one after another where some do not answer
_REGIONS = {"en": "us-en", "zh": "cn-zh"}


class Metasearch(SearchService):
    """The one that works as it is. Its engines are those of the package; none of them knows whose search it is."""

    label = "The free web search"
    home = "ddgs"

    async def pages(self, wanted: SearchRequest) -> list[SearchHit]:
        """Pages."""
        found = await asyncio.to_thread(self._asked, "text", wanted)
        return [
            SearchHit(text_of(row.get("title")), url, text_of(row.get("body")))
            for row in found
            if (url := address_of(row.get("href")))
        ]

    async def pictures(self, wanted: SearchRequest) -> list[FoundPicture]:
        """Pictures."""
        found = await asyncio.to_thread(self._asked, "images", wanted)
        return [
            FoundPicture(
                text_of(row.get("title")),
                address_of(row.get("url")),
                image,
                address_of(row.get("thumbnail")),
                (number_of(row.get("width")), number_of(row.get("height"))),
            )
            for row in found
            if (image := address_of(row.get("image")))
        ]

    def _asked(self, kind: str, wanted: SearchRequest) -> list[dict[str, Any]]:
        with extra_for("Searching the web without a key"):
            package: Any = import_module("ddgs")
            errors: Any = import_module("ddgs.exceptions")
        try:
            with package.DDGS(timeout=_SECONDS) as engines:
                return getattr(engines, kind)(
                    wanted.query, region=_REGIONS[wanted.lang], safesearch="moderate", max_results=wanted.count
                )
        except errors.TimeoutException as error:
            raise _unreachable() from error
        except errors.RatelimitException as error:
            raise ToolError(
                "The free web search is asked too often at the moment.",
                hint="Try again in a few minutes, or choose a search service with a key.",
            ) from error
        except errors.DDGSException as error:
            if "no results" in str(error).lower():
                return []
            raise _unreachable() from error


def _unreachable() -> ToolError:
    return ToolError(
        "No search engine can be reached.",
        hint="Check that this machine is online, or choose a search service with a key.",
    )
